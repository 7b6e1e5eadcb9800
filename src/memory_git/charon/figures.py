"""What the gate counts since it was opened (10-operations, observability; the original's names)."""

from __future__ import annotations

import threading

PROPOSED = "charon_proposals_created_total"
ATTEMPTED = "charon_merge_attempts_total"
MERGE_LOST = "charon_merge_cas_conflicts_total"
REPLAYED = "charon_idempotent_replays_total"
MISMATCHED = "charon_idempotency_mismatches_total"
UNWRITTEN = "charon_ledger_append_failures_total"
_COUNTED = (PROPOSED, ATTEMPTED, MERGE_LOST, REPLAYED, MISMATCHED, UNWRITTEN)
_PROPOSING = ("propose", "propose_revert")


class GateFigures:
    """Counters of one gate; any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = dict.fromkeys(_COUNTED, 0)

    def count(self, name: str) -> None:
        """Counts what happened."""
        with self._lock:
            self._counts[name] += 1

    def settled(self, route: str, code: str | None, *, replayed: bool) -> None:
        """Counts a mutation by its route and what became of it: the code of its refusal, or None."""
        if route == "merge":
            self.count(ATTEMPTED)
        if replayed:
            self.count(REPLAYED)
        elif route in _PROPOSING and code is None:
            self.count(PROPOSED)
        if code == "idempotency_mismatch":
            self.count(MISMATCHED)
        if code == "ref_moved" and route == "merge":
            self.count(MERGE_LOST)

    def told(self) -> dict[str, float]:
        """Gives every counter by its metric's name."""
        with self._lock:
            return {name: float(count) for name, count in self._counts.items()}
