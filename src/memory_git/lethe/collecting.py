"""Dropping tree nodes, and storing them again (2-architecture, the state tree; ADR 12).

Nodes are a cache of versions and changesets. What is kept, in the order of the code:

1. the root, the newest changeset, the heads of all refs, where the history of a ref leaves that of refs/shared/main, and what open
   conflicts name; the changeset whose trie has the greatest row at its top: rows are counted from there, and never used again; merges
   of histories that cross (`rebuilding`, 3);
2. so many between them that no line back to a kept state is longer than `FAR`: a version or relationship counts one, a changeset
   `A_STEP` besides, which is about what they cost to read;
3. of the nodes, those that a kept state reaches.

All others go at once, with the pointers to them. They are made anew in memory by whoever reads (`rebuilding`), or stored again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from memory_git.domain.ancestry import CommitGraph
from memory_git.domain.canonical import decode
from memory_git.domain.ids import SHARED_MAIN
from memory_git.domain.node_store import load
from memory_git.domain.trie import EMPTY, Inner
from memory_git.domain.trie_node import LEAF_MAX
from memory_git.lethe.session import View, is_dropped, roots_of
from memory_git.lethe.transaction import Transaction
from memory_git.storage import lethe_conflicts, lethe_history, lethe_nodes, lethe_states
from memory_git.storage.lethe_history import StateRow

FAR = 20_000
A_STEP = 3
BATCH = 100
"""How many changesets' nodes are stored again in one write."""


@dataclass(frozen=True, slots=True)
class Collection:
    """What can be dropped: rows of changesets and of nodes, and how much stays."""

    changesets: list[int]
    changesets_kept: int
    nodes: list[int]
    nodes_kept: int
    node_bytes: int

    def to_json(self, project_id: str) -> dict[str, Any]:
        """Gives the wire form: how much, not which."""
        return {
            "project_id": project_id,
            "changesets": len(self.changesets),
            "changesets_kept": self.changesets_kept,
            "nodes": len(self.nodes),
            "nodes_kept": self.nodes_kept,
            "node_bytes": self.node_bytes,
        }


def plan_collection(view: View, far: int = FAR) -> Collection:
    """Gives what can be dropped; writes nothing."""
    states = lethe_history.all_states(view.connection, view.project_id, view.project.number)
    kept = _kept(view, states, far)
    reached: set[int] = set()
    passing = _Passing(view)
    for state in states:
        if state.id in kept:
            _reach(passing, state, reached)
    changesets = [state.id for state in states if state.id not in kept and not is_dropped(state)]
    nodes, node_bytes = _unreached(view, reached)
    stored = sum(not is_dropped(state) for state in states)
    return Collection(changesets, stored - len(changesets), nodes, len(reached), node_bytes)


def collect(transaction: Transaction, far: int = FAR) -> Collection:
    """Drops what can be dropped."""
    found = plan_collection(transaction, far)
    at = (transaction.connection, transaction.project_id)
    lethe_nodes.drop_tops(*at, found.changesets)
    lethe_nodes.delete_nodes(*at, found.nodes)
    transaction.connection.forget()
    return found


def dropped_changesets(view: View) -> list[str]:
    """Gives the changesets whose nodes are dropped, in the order of arrival."""
    states = lethe_history.all_states(view.connection, view.project_id, view.project.number)
    return [state.changeset_id for state in states if is_dropped(state)]


def store_again(transaction: Transaction, changeset_ids: Iterable[str]) -> int:
    """Stores the nodes of changesets' states again, under rows of their own; counts those whose nodes were dropped."""
    rows = [row for name in changeset_ids if is_dropped(row := transaction.state_row(name))]
    for row in rows:
        _store_again(transaction, row)
    return len(rows)


def _store_again(transaction: Transaction, row: StateRow) -> None:
    memories, edges = transaction.roots_at(row)
    transaction.flush((memories, edges))
    at = (transaction.connection, transaction.project_id)
    lethe_nodes.set_tops(*at, row.id, memories.row, edges.row)
    transaction.connection.forget()


def _kept(view: View, states: list[StateRow], far: int) -> set[int]:
    """Gives the rows of the changesets that keep their nodes."""
    named = set(_named(view))
    made = lethe_nodes.counts_made(view.connection, view.project_id, view.project.number)
    greatest = lethe_states.last_row(view.connection, view.project_id, "node", view.project.number)
    ways: dict[str, int] = {}
    kept = set()
    for state in states:
        way = A_STEP + made.get(state.id, 0) + max((ways[name] for name in state.parents), default=0)
        is_kept = (
            state.changeset_id in named
            or greatest in (state.memories_row, state.edges_row)
            or _crosses(view, state)
            or way > far
        )
        if is_kept and not is_dropped(state):
            kept.add(state.id)
            way = 0
        ways[state.changeset_id] = way
    return kept


def _crosses(view: View, state: StateRow) -> bool:
    """Decides whether a changeset merges histories that have several best common ancestors."""
    return len(state.parents) > 1 and len(view.graph().best_common_ancestors(*state.parents)) > 1


def _named(view: View) -> Iterator[str]:
    """Yields the changesets that something names, and the newest."""
    newest = lethe_states.last_row(view.connection, view.project_id, "changeset", view.project.number)
    yield from lethe_history.changeset_ids(view.connection, view.project_id, [newest]).values()
    if view.project.root_changeset_id:
        yield view.project.root_changeset_id
    heads = {
        row.ref_name: row.head_changeset_id
        for row in lethe_history.list_refs(view.connection, view.project_id)
    }
    graph = view.graph()
    for head in set(heads.values()):
        yield head
        yield from graph.best_common_ancestors(head, heads[SHARED_MAIN])
    for conflict in lethe_conflicts.list_conflicts(view.connection, view.project_id, "open", None):
        body = decode(conflict.body)
        yield from (body[f"{name}_changeset_id"] for name in ("base", "left", "right"))


def _reach(view: View, state: StateRow, reached: set[int]) -> None:
    """Adds the rows of the nodes that a changeset's tries reach; leaves are told by their counts, unread."""
    waiting = list(roots_of(state))
    while waiting:
        tree = waiting.pop()
        if tree == EMPTY or tree.row in reached:
            continue
        reached.add(tree.row)
        if tree.count > LEAF_MAX:
            node = load(view, tree)
            assert isinstance(node, Inner), "a leaf holds no more"
            waiting += node.children


def _unreached(view: View, reached: set[int]) -> tuple[list[int], int]:
    """Gives the rows of the other nodes, and the bytes of their bodies; what a reached one is based on is reached."""
    found, size = [], 0
    nodes = lethe_nodes.nodes_down(view.connection, view.project_id, view.project.number)
    for node, is_kept in lethe_nodes.with_bases(nodes, reached):
        if not is_kept:
            found.append(node.row)
            size += node.stored_bytes
    return found[::-1], size


class _Passing(View):
    """A view whose nodes pass no cache: each is read once."""

    def __init__(self, view: View) -> None:
        super().__init__(view.connection, view.project, view.caches)
        self._view = view

    def graph(self) -> CommitGraph:
        """Gives the commit graph, as the view below has it."""
        return self._view.graph()

    def _keep_node(self, row: int, digest: bytes, body: bytes) -> None:
        """Keeps nothing."""
