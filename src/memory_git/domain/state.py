"""What the projector asks of a state, and the overlay on which a changeset's ops see each other's effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from memory_git.domain.record import Conflicted, Edge, Record


class StateView(Protocol):
    """A state to read: one memory, one relationship. Reading never depends on how large the state is."""

    def record(self, memory_id: str) -> Record | Conflicted | None:
        """Gives the record of a memory, the conflict that stands in its place, or None."""
        ...

    def has_edge(self, edge: Edge) -> bool:
        """Decides whether a relationship stands."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryState:
    """A state held in dictionaries: what small states, plans and tests use."""

    records: Mapping[str, Record | Conflicted] = field(default_factory=dict)
    edges: frozenset[Edge] = frozenset()

    def record(self, memory_id: str) -> Record | Conflicted | None:
        """Gives the record of a memory, or None."""
        return self.records.get(memory_id)

    def has_edge(self, edge: Edge) -> bool:
        """Decides whether a relationship stands."""
        return edge in self.edges


@dataclass(slots=True)
class Overlay:
    """A state with changes above it that are not stored yet."""

    below: StateView
    records: dict[str, Record | Conflicted] = field(default_factory=dict)
    edges: dict[Edge, bool] = field(default_factory=dict)
    _read: dict[str, Record | Conflicted | None] = field(default_factory=dict, repr=False)
    """What was read below, once: a state never changes."""

    def record(self, memory_id: str) -> Record | Conflicted | None:
        """Gives the changed record, else the one below."""
        found = self.records.get(memory_id)
        if found is not None:
            return found
        if memory_id not in self._read:
            self._read[memory_id] = self.below.record(memory_id)
        return self._read[memory_id]

    def has_edge(self, edge: Edge) -> bool:
        """Decides whether a relationship stands, changes included."""
        stands = self.edges.get(edge)
        return self.below.has_edge(edge) if stands is None else stands


Salts = Callable[[str], str]
"""Gives a memory's salt, 32 hex digits; the store makes one at first sight."""
EventContent = Callable[[str], str | None]
"""Gives the content of an existing event by its id, or None."""


def freeze(records: Iterable[Record], edges: Iterable[Edge] = ()) -> MemoryState:
    """Gives a state of these records and relationships."""
    return MemoryState({record.memory_id: record for record in records}, frozenset(edges))
