"""What differs between two stored states, as the domain's changes, with the op behind each.

A record that the audience may not see is as absent: a change of which neither side shows is none, and so is a relationship with an
end that does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Protocol

from memory_git.domain import trie
from memory_git.domain.change import Change, EdgeChange, OpRef
from memory_git.domain.claims import CONTRADICTING_KINDS, candidates, claimants_among, contradicts, related
from memory_git.domain.errors import TooLarge
from memory_git.domain.policy import Audience
from memory_git.domain.record import Edge, Record
from memory_git.domain.trie import Entry, Pair, Root
from memory_git.lethe.op_refs import OpRefs, Removals
from memory_git.lethe.session import Roots, StoredState, View, admits
from memory_git.storage import lethe_history
from memory_git.storage.lethe_schema import FIRST_ROW

_READ_AT_ONCE = 500
_FEW = 64


class Refs(Protocol):
    """Says what made a version."""

    def of(self, entry: Entry) -> OpRef:
        """Gives the op that last touched the record of an entry, or its changeset alone."""
        ...


class ChangesetRefs:
    """Says which changeset made a version, and no more: all that conflicts ask."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._refs: dict[int, OpRef] = {}

    def of(self, entry: Entry) -> OpRef:
        """Gives the changeset that last touched the record of an entry."""
        row = entry.changed
        if row not in self._refs:
            view = self._view
            names = lethe_history.changeset_ids(view.connection, view.project_id, [row])
            self._refs[row] = OpRef(names.get(row, ""))
        return self._refs[row]


def changes_between(
    view: View,
    before: Roots,
    after: Roots,
    audience: Audience | None = None,
    refs: Refs | None = None,
    most: int | None = None,
) -> list[Change]:
    """Gives the memories whose records differ, in the order of keys; raises TooLarge `diff_too_large` beyond `most`."""
    refs = refs or OpRefs(view, audience)
    pairs = _loaded(view, iter(differing(view, before[0], after[0])))
    found = (change_of(view, left, right, refs, audience) for left, right in pairs)
    shown = (change for change in found if change is not None)
    changes = list(shown if most is None else islice(shown, most + 1))
    if most is not None and len(changes) > most:
        raise TooLarge(
            "diff_too_large", f"more than {most} memories differ: read it by pages (limit)", most=most
        )
    return changes


def differing(view: View, before: Root, after: Root) -> Iterable[Pair]:
    """Gives the entries of two tries whose digests differ, in the order of keys; where they are few, the tries are walked once."""
    place = (before.row, after.row)
    kept = view.caches.pairs.get(place)
    if kept is not None:
        return kept
    pairs = trie.diff(view, before, after)
    if not view.is_durable or min(place) < FIRST_ROW:
        return pairs
    few = tuple(islice(pairs, _FEW + 1))
    if len(few) > _FEW:
        return chain(few, pairs)
    view.caches.pairs.put(place, few)
    return few


def _loaded(view: View, pairs: Iterator[Pair]) -> Iterator[Pair]:
    """Gives the same pairs, their records read many at a time."""
    while some := list(islice(pairs, _READ_AT_ONCE)):
        if len(some) > _FEW:
            view.load(entry for pair in some for entry in pair if entry is not None)
        yield from some


def change_of(
    view: View, left: Entry | None, right: Entry | None, refs: Refs, audience: Audience | None = None
) -> Change | None:
    """Gives the change between two entries of one memory, or None when the audience may see neither side."""
    before, after = _seen(view, left, audience), _seen(view, right, audience)
    entry, present = right or left, after or before
    if entry is None or present is None:
        return None
    return Change(
        present.memory_id,
        before,
        after,
        refs.of(entry),
        left.digest.hex() if left and before else None,
        right.digest.hex() if right and after else None,
    )


def _seen(view: View, entry: Entry | None, audience: Audience | None) -> Record | None:
    record = view.record(entry) if entry is not None else None
    return record if record is not None and admits(record, audience) else None


def edge_changes_between(
    view: View,
    before: Roots,
    after: Roots,
    nodes: trie.NodeReader | None = None,
    audience: Audience | None = None,
    removals: Removals | None = None,
) -> list[EdgeChange]:
    """Gives the relationships that were added or taken away, in the order of keys."""
    refs = OpRefs(view, audience)
    states = (StoredState(view, after, nodes), StoredState(view, before, nodes))
    pairs = trie.diff(nodes or view, before[1], after[1])
    found = (edge_change_of(view, left, right, refs, states, audience, removals) for left, right in pairs)
    return [change for change in found if change is not None]


def edge_change_of(
    view: View,
    left: Entry | None,
    right: Entry | None,
    refs: OpRefs,
    states: Iterable[StoredState],
    audience: Audience | None,
    removals: Removals | None = None,
) -> EdgeChange | None:
    """Gives the change between two entries of one relationship, or None when the audience may not see both its ends."""
    entry = right or left
    if entry is None or (left is not None and right is not None):
        return None
    row = view.edge(entry)
    edge = Edge(row.from_memory_id, row.kind, row.to_memory_id)
    ends = (edge.from_memory_id, edge.to_memory_id)
    if not all(_is_shown(name, states, audience) for name in ends):
        return None
    removal = removals.of(edge) if removals is not None and right is None else None
    return EdgeChange(edge, right is not None, removal or refs.of_edge(row))


def _is_shown(memory_id: str, states: Iterable[StoredState], audience: Audience | None) -> bool:
    if audience is None:
        return True
    records = [record for state in states if (record := state.plain_record(memory_id)) is not None]
    return bool(records) and all(admits(record, audience) for record in records)


def contradicted_in(state: StoredState, audience: Audience | None) -> Callable[[Record], Iterator[Record]]:
    """Gives the look-up for direct contradictions inside one stored state, as far as the audience may see."""
    view, root = state.view, state.memories.row
    is_kept = view.is_durable and root >= FIRST_ROW

    def contradicted(record: Record) -> Iterator[Record]:
        if record.kind not in CONTRADICTING_KINDS:
            return
        place = (view.epoch, root, record.memory_id)
        names = view.caches.contradictions.get(place) if is_kept else None
        if names is None:
            names = tuple(_contradicted(record, state))
            if is_kept:
                view.caches.contradictions.put(place, names)
        for name in names:
            other = state.plain_record(name)
            if other is not None and admits(other, audience):
                yield other

    return contradicted


def _contradicted(record: Record, state: StoredState) -> Iterator[str]:
    for other in candidates(record, state.claimants):
        if contradicts(record, other) and not related(record, other, state.plain_record):
            yield other.memory_id


def contradicted_after(
    state: StoredState, changes: Mapping[str, Change], audience: Audience | None
) -> Callable[[Record], Iterator[Record]]:
    """Gives the look-up for direct contradictions inside what changes make of a stored state, which is not stored."""
    made = claimants_among(change.after for change in changes.values() if change.after is not None)

    def claimants(claims: Collection[str], at_least: int = 1) -> list[Record]:
        below = [record for record in state.claimants(claims, at_least) if record.memory_id not in changes]
        return [*below, *made(claims, at_least)]

    def look_up(memory_id: str) -> Record | None:
        change = changes.get(memory_id)
        return change.after if change else state.plain_record(memory_id)

    def contradicted(record: Record) -> Iterator[Record]:
        found = candidates(record, claimants) if record.kind in CONTRADICTING_KINDS else []
        for other in found:
            if admits(other, audience) and contradicts(record, other) and not related(record, other, look_up):
                yield other

    return contradicted


def by_memory(changes: Iterable[Change]) -> Mapping[str, Change]:
    """Gives changes by memory id."""
    return {change.memory_id: change for change in changes}
