"""The tries of a changeset whose nodes are dropped, made anew (2-architecture, the state tree; ADR 12).

1. The changesets between it and the nearest whose nodes are stored are gone through in the order of arrival.
2. What a changeset made is in its rows: versions, relationships, and the ops that end one. No op is applied and no record is read, so
   it does not matter what was erased.
3. A merge takes from its parents what `merging` takes; where both made another record, it has a version of its own. A merge of
   histories that cross keeps its nodes: what its bases made of an erased memory can't be told any more.
4. Entries have the provenance that the commit gave them. Roots and counts must be the stored ones, else Corrupt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from memory_git.domain import trie
from memory_git.domain.canonical import decode
from memory_git.domain.errors import Corrupt
from memory_git.domain.record import Edge, edge_digest
from memory_git.domain.state_root import edge_key, memory_key
from memory_git.domain.trie import EMPTY, Entry, NodeWriter, Root
from memory_git.lethe.merging import merge_edge, taken_entry
from memory_git.lethe.session import AnyState, Roots, View, is_dropped
from memory_git.storage import lethe_history
from memory_git.storage.lethe_nodes import MadeRows, ends_relationships

Puts = dict[bytes, Entry | None]
BothMade = Callable[[bytes], tuple[Entry, ...]]


@dataclass(slots=True)
class Growing:
    """A state as tries, and what is to be put on them: a line of changesets is put at once."""

    memories: Root
    edges: Root
    memory_puts: Puts = field(default_factory=dict)
    edge_puts: Puts = field(default_factory=dict)

    def seal(self, nodes: NodeWriter) -> Roots:
        """Puts what waits, and gives the tries."""
        self.memories = trie.put_many(nodes, self.memories, self.memory_puts)
        self.edges = trie.put_many(nodes, self.edges, self.edge_puts)
        self.memory_puts, self.edge_puts = {}, {}
        return self.memories, self.edges

    def memory(self, nodes: NodeWriter, key: bytes) -> Entry | None:
        """Gives the entry of a memory."""
        return self.memory_puts[key] if key in self.memory_puts else trie.get(nodes, self.memories, key)

    def edge(self, nodes: NodeWriter, key: bytes) -> Entry | None:
        """Gives the entry of a relationship."""
        return self.edge_puts[key] if key in self.edge_puts else trie.get(nodes, self.edges, key)


def base_among(view: View, step: AnyState) -> str | None:
    """Gives the changeset that a merge's parents come from; None where there is one parent."""
    if len(step.parents) < 2:
        return None
    bases = view.graph().best_common_ancestors(*step.parents)
    if len(bases) != 1:
        raise Corrupt(
            "changeset", step.changeset_id, "merges histories that cross, and its nodes are dropped"
        )
    return bases[0]


def make_anew(view: View, nodes: NodeWriter, row: AnyState) -> Roots:
    """Gives the tries of a changeset's state, their nodes put where `nodes` puts them; raises Corrupt if they are not its own."""
    roots = _Line(view, nodes).roots_of(row)
    check_roots(row, roots)
    return roots


def check_roots(row: AnyState, roots: Roots) -> None:
    """Raises Corrupt unless tries have the digests and counts that a changeset names."""
    for name, found, digest, count in (
        ("memories", roots[0], row.memories_digest, row.memories_count),
        ("relationships", roots[1], row.edges_digest, row.edges_count),
    ):
        if (found.digest, found.count) != (digest, count):
            raise Corrupt("changeset", row.changeset_id, f"its {name} can't be made anew from its rows")


class Steps:
    """What each changeset makes of its parents' states, read from its rows."""

    def __init__(self, view: View, nodes: NodeWriter) -> None:
        self._view = view
        self._nodes = nodes
        self._rows = MadeRows(view.connection, view.project_id, view.project.number)

    def after(self, step: AnyState, parents: Sequence[Growing], base: Roots | None) -> Growing:
        """Gives the state of a changeset; that of an only parent grows into it. `base` is what two parents merge against."""
        if base is None:
            return self._grown(step, parents[0] if parents else Growing(EMPTY, EMPTY), lambda _: ())
        left, right = (parent.seal(self._nodes) for parent in parents)
        memories = trie.merge(self._nodes, base[0], left[0], right[0], _taken)
        edges = trie.merge(self._nodes, base[1], left[1], right[1], merge_edge)
        roots = (base[0], left[0], right[0])
        return self._grown(
            step,
            Growing(memories, edges),
            lambda key: _both_made(*(trie.get(self._nodes, root, key) for root in roots)),
        )

    def _grown(self, step: AnyState, state: Growing, both_made: BothMade) -> Growing:
        for made in self._rows.versions(step.id):
            key = memory_key(made.memory_id)
            sides = both_made(key)
            before = sides or tuple(entry for entry in (state.memory(self._nodes, key),) if entry)
            introduced = before[0].introduced if before else step.id
            number = 1 + max((entry.version for entry in before), default=0)
            state.memory_puts[key] = Entry(key, made.record_digest, made.row, introduced, step.id, number)
        if ends_relationships(self._view.connection, self._view.project_id, step.id):
            state.edge_puts |= dict.fromkeys(self._ended(step, state))
        for row, *names in self._rows.edges(step.id):
            edge = Edge(*names)
            key, digest = edge_key(*names), bytes.fromhex(edge_digest(edge))
            state.edge_puts[key] = Entry(key, digest, row, step.id, step.id, 1)
        return state

    def _ended(self, step: AnyState, state: Growing) -> list[bytes]:
        """Gives the relationships that stand before a changeset, and of which its last word is that they do not."""
        stands: dict[bytes, bool] = {}
        for op in lethe_history.ops_of(self._view.connection, self._view.project_id, step.id):
            if op.op_type in ("add_relationship", "remove_relationship"):
                kind = decode(op.payload or b"{}")["kind"]
                key = edge_key(op.target_event_id or "", kind, op.resulting_event_id or "")
                stands[key] = op.op_type == "add_relationship"
        return [key for key, last in stands.items() if not last and state.edge(self._nodes, key)]


def _taken(key: bytes, base: Entry | None, left: Entry | None, right: Entry | None) -> Entry | None:
    """Decides a memory that both sides changed; one of which each made another record has a version of the merge's own."""
    del key
    return taken_entry(base, left, right) if left and right else None


def _both_made(base: Entry | None, left: Entry | None, right: Entry | None) -> tuple[Entry, ...]:
    """Gives both sides' entries of a memory of which each made another record."""
    if left is None or right is None or base in (left, right) or taken_entry(base, left, right):
        return ()
    return left, right


class _Line:
    """The changesets that are gone through for one state, and the states that are still needed of them."""

    def __init__(self, view: View, nodes: NodeWriter) -> None:
        self._view = view
        self._nodes = nodes
        self._states: dict[str, Growing] = {}

    def roots_of(self, row: AnyState) -> Roots:
        """Gives the tries of a changeset."""
        below = self._dropped_below(row)
        bases = {step.id: base_among(self._view, step) for step in below}
        needed = Counter(name for step in below for name in (*step.parents, bases[step.id]))
        steps = Steps(self._view, self._nodes)
        for step in below:
            parents = [self._parent(name, is_shared=needed[name] > 1) for name in step.parents]
            base = bases[step.id]
            against = None if base is None else self._known(base)
            self._states[step.changeset_id] = steps.after(step, parents, against)
        return self._states[row.changeset_id].seal(self._nodes)

    def _known(self, name: str) -> Roots:
        """Gives the tries of a changeset, as this line made them anew, else as they are read."""
        found = self._states.get(name)
        return self._view.roots(name) if found is None else found.seal(self._nodes)

    def _dropped_below(self, row: AnyState) -> list[AnyState]:
        """Gives a changeset and those before it, as far as none is stored, in the order of arrival."""
        found: dict[str, AnyState] = {}
        waiting = [row]
        while waiting:
            step = waiting.pop()
            if step.changeset_id not in found:
                found[step.changeset_id] = step
                parents = (self._view.state_row(name) for name in step.parents if name not in found)
                waiting += [parent for parent in parents if is_dropped(parent)]
        return sorted(found.values(), key=lambda step: step.id)

    def _parent(self, name: str, *, is_shared: bool) -> Growing:
        """Gives a parent's state to grow from: its own where nobody else needs it."""
        if is_shared or name not in self._states:
            return Growing(*self._known(name))
        return self._states.pop(name)
