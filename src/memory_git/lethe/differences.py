"""What differs between two stored states, as the domain's changes, with the op behind each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memory_git.domain import trie
from memory_git.domain.canonical import decode
from memory_git.domain.change import Change, EdgeChange, OpRef
from memory_git.domain.conflicts import candidates, contradicts, related
from memory_git.domain.diff import semantic_diff
from memory_git.domain.policy import Audience
from memory_git.domain.record import Edge, Record
from memory_git.domain.trie import Entry
from memory_git.lethe.session import Roots, StoredState, View, admits
from memory_git.storage import lethe_history
from memory_git.storage.lethe_history import OpRow


def changes_between(
    view: View,
    before: Roots,
    after: Roots,
    nodes: trie.NodeReader | None = None,
    audience: Audience | None = None,
) -> list[Change]:
    """Gives the memories whose records differ, in the order of keys; a record that the audience may not see is as absent."""
    refs = OpRefs(view, audience)
    found = []
    for left, right in trie.diff(nodes or view, before[0], after[0]):
        change = change_of(view, left, right, refs, audience)
        if change is not None:
            found.append(change)
    return found


def change_of(
    view: View, left: Entry | None, right: Entry | None, refs: OpRefs, audience: Audience | None = None
) -> Change | None:
    """Gives the change between two entries of one memory, or None when the audience may see neither side."""
    before = view.record(left) if left else None
    after = view.record(right) if right else None
    by = refs.of(right or left)
    before = before if before is not None and admits(before, audience) else None
    after = after if after is not None and admits(after, audience) else None
    present = after or before
    if present is None:
        return None
    return Change(
        present.memory_id,
        before,
        after,
        by,
        left.digest.hex() if left and before else None,
        right.digest.hex() if right and after else None,
    )


def edge_changes_between(
    view: View,
    before: Roots,
    after: Roots,
    nodes: trie.NodeReader | None = None,
    audience: Audience | None = None,
) -> list[EdgeChange]:
    """Gives the relationships that were added or taken away; one whose ends the audience may not see is left out."""
    refs = OpRefs(view, audience)
    states = (StoredState(view, after, nodes), StoredState(view, before, nodes))
    found = []
    for left, right in trie.diff(nodes or view, before[1], after[1]):
        entry = right or left
        assert entry is not None, "a difference has an entry on one side"
        row = view.edge(entry)
        edge = Edge(row.from_memory_id, row.kind, row.to_memory_id)
        if all(_is_shown(name, states, audience) for name in (edge.from_memory_id, edge.to_memory_id)):
            found.append(EdgeChange(edge, right is not None, refs.at(row.changeset_row, row.ordinal)))
    return found


def _is_shown(memory_id: str, states: Iterable[StoredState], audience: Audience | None) -> bool:
    if audience is None:
        return True
    records = [record for state in states if (record := state.plain_record(memory_id)) is not None]
    return bool(records) and all(admits(record, audience) for record in records)


class OpRefs:
    """Finds the op behind a version, each changeset's id and op once. Payloads that the audience may not see are left out."""

    def __init__(self, view: View, audience: Audience | None = None) -> None:
        self._view = view
        self._audience = audience
        self._names: dict[int, str] = {}

    def of(self, entry: Entry | None) -> OpRef:
        """Gives the op that last touched the record of an entry."""
        assert entry is not None, "an op stands behind an entry"
        if entry.row < 0:
            return self.at(entry.changed, None)
        version = self._view.version(entry.row)
        return self.at(version.changeset_row, version.ordinal)

    def at(self, changeset_row: int, ordinal: int | None) -> OpRef:
        """Gives an op by its place."""
        view = self._view
        if changeset_row not in self._names:
            self._names.update(lethe_history.changeset_ids(view.connection, view.project_id, [changeset_row]))
        changeset_id = self._names.get(changeset_row, "")
        row = (
            None
            if ordinal is None
            else lethe_history.op_at(view.connection, view.project_id, changeset_row, ordinal)
        )
        if row is None or not op_is_shown(row, self._audience):
            return OpRef(changeset_id, ordinal)
        payload = decode(row.payload) if row.payload is not None else None
        return OpRef(changeset_id, ordinal, row.op_type, row.target_event_id, row.resulting_event_id, payload)


def op_is_shown(row: OpRow, audience: Audience | None) -> bool:
    """Decides whether an audience may see an op: it may see every record that the op touched."""
    return audience is None or audience.admits(row.visibility, row.owner_principal or None)


@dataclass(frozen=True, slots=True)
class Compared:
    """A diff between two states, to be asked for in the wire form."""

    changes: list[Change]
    edges: list[EdgeChange]
    target: StoredState
    audience: Audience | None

    def to_json(self) -> dict[str, Any]:
        """Gives the sections of the semantic diff."""
        return semantic_diff(
            self.changes, self.edges, contradicts=contradicted_in(self.target, self.audience)
        )


def contradicted_in(state: StoredState, audience: Audience | None) -> Callable[[Record], Iterator[Record]]:
    """Gives the look-up for direct contradictions inside one state, as far as the audience may see."""

    def contradicted(record: Record) -> Iterator[Record]:
        for other in candidates(record, state.claimants):
            if (
                admits(other, audience)
                and contradicts(record, other)
                and not related(record, other, state.plain_record)
            ):
                yield other

    return contradicted


def compare(view: View, before: str, after: str, audience: Audience | None = None) -> Compared:
    """Compares the states of two changesets."""
    left, right = view.roots(before), view.roots(after)
    return Compared(
        changes_between(view, left, right, audience=audience),
        edge_changes_between(view, left, right, audience=audience),
        StoredState(view, right),
        audience,
    )


def by_memory(changes: Iterable[Change]) -> Mapping[str, Change]:
    """Gives changes by memory id."""
    return {change.memory_id: change for change in changes}
