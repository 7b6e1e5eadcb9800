"""What a store counts since it was opened (10-operations, observability; names of the original where it has them)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from memory_git.domain.errors import Refused

CREATED = "lethe_changesets_created_total"
_BY_CODE = {
    "ref_moved": "lethe_ref_cas_conflicts_total",
    "authorization_replayed": "lethe_merge_replay_rejections_total",
    "idempotency_mismatch": "lethe_idempotency_mismatches_total",
    "merge_conflicts": "lethe_merges_blocked_by_conflicts_total",
}


class Figures:
    """Counters of one store; any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys((CREATED, *_BY_CODE.values()), 0)

    def created(self) -> None:
        """Counts a stored changeset; a replay is none."""
        self._count(CREATED)

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Counts a refusal that comes out of the block, and lets it go on."""
        try:
            yield
        except Refused as refusal:
            self.refused(refusal)
            raise

    def refused(self, refusal: Refused) -> None:
        """Counts a refusal that has a counter of its own."""
        if refusal.code in _BY_CODE:
            self._count(_BY_CODE[refusal.code])

    def told(self) -> dict[str, float]:
        """Gives every counter by its metric's name."""
        with self._lock:
            return {name: float(count) for name, count in self._counts.items()}

    def _count(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1
