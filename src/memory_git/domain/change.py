"""What differs between two states, one memory or relationship at a time, and which op did it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory_git.domain.record import Edge, Record


@dataclass(frozen=True, slots=True)
class OpRef:
    """The last op that touched a record or relationship, and its changeset. A field merge has no op of its own: ordinal None."""

    changeset_id: str
    ordinal: int | None = None
    op_type: str | None = None
    target_event_id: str | None = None
    resulting_event_id: str | None = None
    payload: Mapping[str, Any] | None = None

    def without_content(self) -> OpRef:
        """Gives its place alone, for who may not see what the op says."""
        return OpRef(self.changeset_id, self.ordinal)


@dataclass(frozen=True, slots=True)
class Change:
    """One memory whose record differs: before (None: not there), after (None: not there), and the op that did it."""

    memory_id: str
    before: Record | None
    after: Record | None
    by: OpRef
    before_digest: str | None = None
    after_digest: str | None = None

    @property
    def present(self) -> Record:
        """Gives the record after, else the one before."""
        found = self.after or self.before
        assert found is not None, "a change has a record on one side"
        return found


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """One relationship that was added (`stands`) or taken away."""

    edge: Edge
    stands: bool
    by: OpRef
