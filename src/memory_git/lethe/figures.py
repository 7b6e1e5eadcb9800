"""What a store counts since it was opened (10-operations, observability; names of the original where it has them).

Two names of the original have no counterpart: `lethe_sqlite_busy_retries_total`, for a write waits in a queue and is not tried again, and
`lethe_context_reconstruction_changesets_total`, for a context reads a stored state and replays no changeset.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from memory_git.domain.errors import Refused

CREATED = "lethe_changesets_created_total"
REJECTED = "lethe_changesets_rejected_total"
REPLAYED = "lethe_idempotent_replays_total"
PERSISTED = "lethe_conflicts_persisted_total"
RESOLVED = "lethe_conflicts_resolved_total"
RETIRED = "lethe_conflicts_retired_total"
AUTHORIZED = "lethe_merge_authorized_total"
CONTEXTS = "lethe_context_reconstructions_total"
CONTEXT_MS = "lethe_context_reconstruction_ms_total"
_BY_CODE = {
    "ref_moved": "lethe_ref_cas_conflicts_total",
    "authorization_replayed": "lethe_merge_replay_rejections_total",
    "invalid_authorization": "lethe_merge_authorization_failures_total",
    "idempotency_mismatch": "lethe_idempotency_mismatches_total",
    "merge_conflicts": "lethe_merges_blocked_by_conflicts_total",
    "busy": "lethe_sqlite_busy_exhausted_total",
}
_COUNTED = (
    CREATED,
    REJECTED,
    REPLAYED,
    PERSISTED,
    RESOLVED,
    RETIRED,
    AUTHORIZED,
    CONTEXTS,
    CONTEXT_MS,
    *_BY_CODE.values(),
)


class Figures:
    """Counters of one store; any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, float] = dict.fromkeys(_COUNTED, 0)

    def count(self, name: str, by: float = 1) -> None:
        """Counts what happened."""
        with self._lock:
            self._counts[name] += by

    @contextmanager
    def refusals(self, *, of_creation: bool = False) -> Iterator[None]:
        """Counts a refusal that comes out of the block, and lets it go on."""
        try:
            yield
        except Refused as refusal:
            self.refused(refusal)
            if of_creation:
                self.count(REJECTED)
            raise

    @contextmanager
    def context(self) -> Iterator[None]:
        """Counts a context, and how long it took to be made."""
        began_s = time.perf_counter()
        yield
        self.count(CONTEXTS)
        self.count(CONTEXT_MS, (time.perf_counter() - began_s) * 1000)

    def refused(self, refusal: Refused) -> None:
        """Counts a refusal that has a counter of its own."""
        if refusal.code in _BY_CODE:
            self.count(_BY_CODE[refusal.code])

    def told(self) -> dict[str, float]:
        """Gives every counter by its metric's name."""
        with self._lock:
            return {name: float(count) for name, count in self._counts.items()}
