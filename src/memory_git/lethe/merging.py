"""The three-way merge of stored states (4-history, three-way merge).

The base is virtual where histories cross: the best bases are merged first, and a key that they disagree on is ambiguous: it counts as
absent, so the sides must agree on it or it is in conflict.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from memory_git.domain import trie
from memory_git.domain.ancestry import CommitGraph
from memory_git.domain.errors import Clash, Corrupt
from memory_git.domain.merge import merge_records, stands_merged
from memory_git.domain.record import Conflicted, Edge, Record, record_digest
from memory_git.domain.state import Overlay
from memory_git.domain.trie import EMPTY, Entry, Root, ScratchNodes
from memory_git.lethe.session import Roots, StoredState, View, as_ops_see, is_redacted
from memory_git.lethe.transaction import Transaction
from memory_git.storage.lethe_schema import FIRST_ROW

MOST_KEPT_CHANGES = 2_000
EntryChanges = Mapping[bytes, tuple[Entry | None, Entry | None]]
"""key → the entries before and after."""


@dataclass(slots=True)
class Merged:
    """How two states come together, per memory that both sides changed; what one side changed is taken by the tries."""

    base: Roots
    left: Roots
    right: Roots
    nodes: trie.NodeReader
    entries: dict[bytes, Entry] = field(default_factory=dict)
    """Keys where one of the two entries is taken as it is."""
    records: dict[str, tuple[Record, Entry, Entry]] = field(default_factory=dict)
    """Memories merged field by field, with the entries of both sides."""
    conflicted: dict[str, Conflicted] = field(default_factory=dict)
    sides: dict[str, tuple[Entry, Entry]] = field(default_factory=dict)
    """The entries of both sides of each conflicted memory."""
    changed: tuple[EntryChanges, EntryChanges] = ({}, {})
    """What each side changed from the base in anything, left first."""
    erased: list[str] = field(default_factory=list)
    """Erased memories that both sides changed: nobody can say any more how they would merge."""

    def resolve(
        self, key: bytes, base: Entry | None, left: Entry | None, right: Entry | None
    ) -> Entry | None:
        """Decides a key that both sides changed, for `trie.merge`; merged and conflicted ones are put afterwards."""
        del base, left, right
        return self.entries.get(key)

    def sides_of(self, memory_id: str) -> tuple[Entry, Entry] | None:
        """Gives the entries of both sides of a memory that is in conflict or merged field by field, or None."""
        found = self.records.get(memory_id)
        return (found[1], found[2]) if found else self.sides.get(memory_id)


class ScratchView(View):
    """A view with states above it that are not stored: records of merged bases stand under negative rows."""

    def __init__(self, view: View) -> None:
        super().__init__(view.connection, view.project, view.caches)
        self._view = view
        self.is_durable = view.is_durable
        self._scratch = ScratchNodes(view)
        self._records: dict[int, Record] = {}

    def graph(self) -> CommitGraph:
        """Gives the commit graph, as the view below has it."""
        return self._view.graph()

    def roots(self, changeset_id: str) -> Roots:
        """Gives the tries of a changeset's state, as the view below has them."""
        return self._view.roots(changeset_id)

    def get(self, row: int, expected_digest: bytes) -> bytes:
        """Gives a scratch node, or a stored one."""
        return self._scratch.get(row, expected_digest)

    def put(self, body: bytes, like: int | None = None) -> int:
        """Keeps a node under a negative row."""
        return self._scratch.put(body, like)

    def record(self, entry: Entry) -> Record:
        """Gives a scratch record, or a stored one."""
        return self._records[entry.row] if entry.row in self._records else self._view.record(entry)

    def salt(self, memory_id: str) -> str:
        """Gives a memory's salt."""
        return self._view.salt(memory_id)

    def keep(self, record: Record, left: Entry, right: Entry) -> Entry:
        """Keeps a merged record and gives its entry."""
        row = -1 - len(self._records)
        self._records[row] = record
        digest = bytes.fromhex(record_digest(self.salt(record.memory_id), record))
        return left._replace(digest=digest, row=row, version=1 + max(left.version, right.version))


def base_roots(view: ScratchView, bases: Sequence[str]) -> Roots:
    """Gives the state to merge against: that of the one base, or of the bases merged (ambiguous keys absent).

    Where the bases themselves cross, theirs are merged first, over any number of steps: the deepest ones stand last.
    """
    known: dict[tuple[str, ...], Roots] = {(): (EMPTY, EMPTY)}
    waiting = [tuple(bases)]
    while waiting:
        names = waiting[-1]
        if names in known:
            waiting.pop()
            continue
        below = [step for step in _steps(view.graph(), names) if step not in known]
        if below:
            waiting += below
        else:
            known[waiting.pop()] = _merged_bases(view, names, known)
    return known[tuple(bases)]


def _steps(graph: CommitGraph, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Gives, for each base after the first, the best common ancestors of it and all those before it."""
    found = []
    for place in range(1, len(names)):
        pairs = (graph.best_common_ancestors(before, names[place]) for before in names[:place])
        common = {name for pair in pairs for name in pair}
        found.append(tuple(name for name in sorted(common) if not _is_behind(graph, name, common)))
    return found


def _merged_bases(view: ScratchView, names: Sequence[str], known: Mapping[tuple[str, ...], Roots]) -> Roots:
    merged = view.roots(names[0]) if names else (EMPTY, EMPTY)
    for name, below in zip(names[1:], _steps(view.graph(), names), strict=True):
        met = merge_states(view, known[below], merged, view.roots(name), of_bases=True)
        merged = _scratch_roots(view, met)
    return merged


def _is_behind(graph: CommitGraph, name: str, among: set[str]) -> bool:
    return any(other != name and graph.is_ancestor(name, other) for other in among)


def _scratch_roots(view: ScratchView, merged: Merged) -> Roots:
    memories = trie.merge(view, merged.base[0], merged.left[0], merged.right[0], merged.resolve)
    puts = {left.key: view.keep(record, left, right) for record, left, right in merged.records.values()}
    memories = trie.put_many(view, memories, puts)
    return memories, trie.merge(view, merged.base[1], merged.left[1], merged.right[1], merge_edge)


def merge_edge(key: bytes, base: Entry | None, left: Entry | None, right: Entry | None) -> Entry | None:
    """Decides a relationship that both sides changed: as a set, in or out by the side that changed that; left's entry first.

    A side that took it away and made it again did not change whether it stands.
    """
    del key
    stands = stands_merged(base is not None, left is not None, right is not None)
    return (left or right) if stands else None


def merge_states(view: View, base: Roots, left: Roots, right: Roots, *, of_bases: bool = False) -> Merged:
    """Merges two states against a base, memory by memory where both sides changed it.

    Where bases are merged, left may lack what earlier bases disagreed on: that stays absent.
    """
    left_changes, right_changes = _changed(view, base[0], left[0]), _changed(view, base[0], right[0])
    merged = Merged(base, left, right, view, changed=(left_changes, right_changes))
    for key in sorted(left_changes.keys() & right_changes.keys()):
        base_entry, left_entry = left_changes[key]
        right_entry = right_changes[key][1]
        if left_entry is None or right_entry is None:
            if of_bases:
                continue
            raise Corrupt("state", key.hex(), "a memory has left the state, which no op can make it do")
        _merge_entry(view, merged, base_entry, left_entry, right_entry)
    return merged


def refuse_erased(merged: Merged) -> None:
    """Raises Clash `source_redacted` when both sides changed a memory that is erased by now."""
    if merged.erased:
        raise Clash(
            "source_redacted",
            f"both sides changed {len(merged.erased)} memories that are erased: nobody can tell how they would merge",
        )


def _changed(view: View, base: Root, side: Root) -> EntryChanges:
    """Gives the keys whose entries differ in anything, provenance included, with both entries.

    Those of stored trees are kept: a merge is planned, made and moved to, and each compares the same trees.
    """
    place = (base.row, side.row)
    kept = view.caches.changed.get(place)
    if kept is not None and kept[0] == (base, side):
        return kept[1]
    found = {}
    for before, after in trie.diff(view, base, side, "row"):
        entry = after or before
        assert entry is not None, "a difference has an entry on one side"
        found[entry.key] = (before, after)
    if view.is_durable and min(place) >= FIRST_ROW and len(found) <= MOST_KEPT_CHANGES:
        view.caches.changed.put(place, ((base, side), found))
    return found


def _merge_entry(view: View, merged: Merged, base: Entry | None, left: Entry, right: Entry) -> None:
    taken = taken_entry(base, left, right)
    if taken is not None:
        merged.entries[left.key] = taken
        return
    sides = view.record(left), view.record(right)
    if any(is_redacted(record) for record in sides):
        merged.erased.append(sides[0].memory_id)
        return
    before = view.record(base) if base else None
    found = merge_records(before, *sides)
    if isinstance(found, Conflicted):
        merged.conflicted[found.memory_id] = found
        merged.sides[found.memory_id] = (left, right)
    else:
        merged.records[found.memory_id] = (found, left, right)


def taken_entry(base: Entry | None, left: Entry, right: Entry) -> Entry | None:
    """Gives the entry that a merge takes as it is, with the greater version; None where both sides made another record."""
    greater = max(left.version, right.version)
    if left.digest == right.digest or (base is not None and right.digest == base.digest):
        return left._replace(version=greater)
    if base is not None and left.digest == base.digest:
        return right._replace(version=greater)
    return None


def merged_view(view: View, merged: Merged) -> Overlay:
    """Gives the merged state to read: left, with what right changed alone, and what was merged, above it."""
    below = _TakenState(view, merged)
    return Overlay(below, {name: record for name, (record, _, _) in merged.records.items()})


class _TakenState:
    """Left's state with the changes of right alone in it."""

    def __init__(self, view: View, merged: Merged) -> None:
        self._merged = merged
        self._view = view
        self._base, self._left, self._right = (
            StoredState(view, roots, merged.nodes) for roots in (merged.base, merged.left, merged.right)
        )

    def record(self, memory_id: str) -> Record | Conflicted | None:
        if memory_id in self._merged.conflicted:
            return self._merged.conflicted[memory_id]
        left = self._left.entry(memory_id)
        if left is not None and left.key in self._merged.entries:
            return as_ops_see(self._view.record(self._merged.entries[left.key]))
        right = self._right.entry(memory_id)
        taken = right if left == self._base.entry(memory_id) else left
        return None if taken is None else as_ops_see(self._view.record(taken))

    def has_edge(self, edge: Edge) -> bool:
        left, right = self._left.has_edge(edge), self._right.has_edge(edge)
        return right if left == self._base.has_edge(edge) else left


def write_merged(
    transaction: Transaction, merged: Merged, changeset_row: int, changed_by_ops: Container[str]
) -> Roots:
    """Writes the merged state's tries and gives their roots, without the memories that are in conflict or that ops change.

    Those get their one version of this changeset afterwards, which follows both sides' (`Merged.sides_of`).
    """
    nodes = AboveScratch(transaction, merged.nodes)
    memories = trie.merge(nodes, merged.base[0], merged.left[0], merged.right[0], merged.resolve)
    puts = {
        left.key: transaction.add_version(record, changeset_row, None, left, right)
        for name, (record, left, right) in merged.records.items()
        if name not in changed_by_ops
    }
    memories = trie.put_many(transaction, memories, puts)
    return memories, trie.merge(nodes, merged.base[1], merged.left[1], merged.right[1], merge_edge)


class AboveScratch:
    """Nodes of a writer that also reads the scratch nodes of a virtual base."""

    def __init__(self, writer: trie.NodeWriter, scratch: trie.NodeReader) -> None:
        self._scratch = scratch
        self._writer = writer
        self.put = writer.put

    def get(self, row: int, expected_digest: bytes) -> bytes:
        """Gives a scratch node, or one of the writer's."""
        nodes = self._scratch if row < 0 else self._writer
        return nodes.get(row, expected_digest)
