"""The semantic diff of two stored states, whole or by pages (4-history, semantic diff).

1. A page holds up to `limit` of what differs: memories by id, then relationships; the last page also has the unresolved conflicts. The
   pages, one after another, are the whole; a page says so, and its `next` is where the following one begins, for these two
   changesets alone.
2. A page reads the records of its own changes. To know their order it walks the two trees once, and remembers it.
3. A conflict is unresolved here when it is stored, open, and one of its parties is a record that differs, as it is before or after.
   Only an audience that may see all its memories on both sides sees it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from memory_git.domain import trie
from memory_git.domain.change import Change, EdgeChange
from memory_git.domain.diff import semantic_diff
from memory_git.domain.errors import Corrupt
from memory_git.domain.policy import Audience
from memory_git.domain.record import Edge
from memory_git.domain.state_root import memory_key, state_root
from memory_git.lethe.changesets import check_changeset
from memory_git.lethe.conflict_rows import open_conflicts
from memory_git.lethe.diff_cursor import Place, read_cursor, write_cursor
from memory_git.lethe.differences import (
    by_memory,
    change_of,
    changes_between,
    contradicted_in,
    edge_change_of,
    edge_changes_between,
)
from memory_git.lethe.history import check_limit
from memory_git.lethe.op_refs import OpRefs, Removals
from memory_git.lethe.session import StoredState, View
from memory_git.storage import lethe_states
from memory_git.storage.lethe_history import StateRow

MAX_WHOLE = 100_000
"""Memories that a diff asked for as a whole may hold; a larger one is read by pages."""
DEFAULT_PAGE, MAX_PAGE = 100, 1000
_MOST_REMEMBERED = 200_000
Json = dict[str, Any]
Key = tuple[str, ...]
Item = tuple[Place, Change | EdgeChange]


class Comparison:
    """Two changesets' states side by side, for an audience."""

    def __init__(self, view: View, base: StateRow, target: StateRow, audience: Audience | None) -> None:
        self._view = view
        self._audience = audience
        self.base, self.target = _verified(view, base), _verified(view, target)
        self._before, self._after = (
            StoredState(view, view.roots_at(row)) for row in (self.base, self.target)
        )
        self._refs = OpRefs(view, audience)
        self._removals = Removals(self._refs, view, target.changeset_id, [base.changeset_id])
        self._known: dict[str, Change | None] = {}

    def whole(self, most: int | None = None) -> Json:
        """Gives every section; raises TooLarge `diff_too_large` beyond so many changed memories."""
        view, audience = self._view, self._audience
        before = (self._before.memories, self._before.edges)
        after = (self._after.memories, self._after.edges)
        changes = changes_between(view, before, after, audience, self._refs, most=most)
        known = by_memory(changes)
        return semantic_diff(
            changes,
            edge_changes_between(view, before, after, audience=audience, removals=self._removals),
            contradicts=contradicted_in(self._after, audience),
            unresolved=self._unresolved(known.get),
        )

    def page(self, limit: int, cursor: str | None) -> Json:
        """Gives the sections of one page, with `page` beside them (rules 1 and 2)."""
        names = self.base.changeset_id, self.target.changeset_id
        start = read_cursor(cursor, *names) if cursor else None
        found = list(islice(self._items(start), limit + 1))
        shown = [item for _, item in found[:limit]]
        page: Json = {"limit": limit}
        is_last = len(found) <= limit
        if not is_last:
            page["next"] = write_cursor(found[limit - 1][0], *names)
        sections = semantic_diff(
            [item for item in shown if isinstance(item, Change)],
            [item for item in shown if isinstance(item, EdgeChange)],
            change_of=self._change,
            contradicts=contradicted_in(self._after, self._audience),
            unresolved=self._unresolved(self._change) if is_last else (),
        )
        return {**sections, "page": page}

    def _items(self, start: Place | None) -> Iterator[Item]:
        """Gives all that differs and shows, in the order of pages, beyond a place."""
        stream, key = start or ("m", ())
        streams = ("m", "r")
        for name in streams[streams.index(stream) :]:
            yield from self._stream(name, key if name == stream else ())

    def _stream(self, name: str, after: Key) -> Iterator[Item]:
        for key, item in self._found(name, after):
            if item is not None:
                yield (name, key), item

    def _found(self, name: str, after: Key) -> Iterator[tuple[Key, Change | EdgeChange | None]]:
        if name == "m":
            for key in _beyond(self._order("m", self._changed_memories), after):
                yield key, self._change(*key)
        else:
            for key in _beyond(self._order("r", self._changed_edges), after):
                yield key, self._edge_change(Edge(*key))

    # what differs, without reading it

    def _order(self, stream: str, find: Callable[[], list[Key]]) -> Sequence[Key]:
        rows = (
            self._before.memories.row,
            self._after.memories.row,
            self._before.edges.row,
            self._after.edges.row,
        )
        place = (stream, *rows)
        kept: Sequence[Key] | None = self._view.caches.orders.get(place)
        if kept is None:
            kept = tuple(sorted(find()))
            if self._view.is_durable and len(kept) <= _MOST_REMEMBERED:
                self._view.caches.orders.put(place, kept)
        return kept

    def _changed_memories(self) -> list[Key]:
        pairs = trie.diff(self._view, self._before.memories, self._after.memories)
        entries = {entry.row: entry for pair in pairs if (entry := pair[1] or pair[0]) is not None}
        names = lethe_states.memory_ids_of(self._view.connection, self._view.project_id, list(entries))
        for row, entry in entries.items():
            if row not in names or memory_key(names[row]) != entry.key:
                raise Corrupt("version", row, "is absent, or stands under another memory's key")
        return [(name,) for name in names.values()]

    def _changed_edges(self) -> list[Key]:
        pairs = trie.diff(self._view, self._before.edges, self._after.edges)
        rows = (self._view.edge(entry) for pair in pairs if (entry := pair[1] or pair[0]) is not None)
        return [(row.from_memory_id, row.kind, row.to_memory_id) for row in rows]

    # one thing that differs

    def _change(self, memory_id: str) -> Change | None:
        if memory_id not in self._known:
            entries = self._before.entry(memory_id), self._after.entry(memory_id)
            is_same = (
                entries[0] is not None and entries[1] is not None and entries[0].digest == entries[1].digest
            )
            self._known[memory_id] = (
                None if is_same else change_of(self._view, *entries, self._refs, self._audience)
            )
        return self._known[memory_id]

    def _edge_change(self, edge: Edge) -> EdgeChange | None:
        entries = self._before.edge_entry(edge), self._after.edge_entry(edge)
        states = (self._after, self._before)
        return edge_change_of(self._view, *entries, self._refs, states, self._audience, self._removals)

    def _unresolved(self, change: Callable[[str], Change | None]) -> list[Json]:
        """Gives the open conflicts of what differs, by id (rule 3)."""

        def concerns(party: Mapping[str, Any]) -> bool:
            found = change(party["memory_id"]) if party["memory_id"] else None
            return found is not None and party["record_digest"] in (found.before_digest, found.after_digest)

        return open_conflicts(self._view, concerns, self._audience)


def _beyond(keys: Sequence[Key], after: Key) -> Iterable[Key]:
    return (keys[place] for place in range(bisect_right(keys, after), len(keys)))


def diff(
    view: View, target: str, base: str | None, audience: Audience | None, limit: int | None, after: str | None
) -> Json:
    """Gives the diff of two changesets with what it compares: whole, or a page where a limit or a cursor is given."""
    head = view.state_row(target)
    since = base or (head.parents[0] if head.parents else None)
    comparison = Comparison(view, view.state_row(since) if since else head, head, audience)
    if limit is None and after is None:
        shown = comparison.whole(MAX_WHOLE)
    else:
        shown = comparison.page(check_limit(DEFAULT_PAGE if limit is None else limit, MAX_PAGE), after)
    return {
        "project_id": view.project_id,
        "base_changeset_id": comparison.base.changeset_id,
        "target_changeset_id": target,
        "base_state_root": comparison.base.state_root,
        "target_state_root": comparison.target.state_root,
        **shown,
    }


def _verified(view: View, row: StateRow) -> StateRow:
    """Gives the row of a state whose changeset and root agree with their digests; each is verified once."""
    place, found = (view.epoch, row.id), (row.state_root, row.memories_digest, row.edges_digest)
    if view.caches.heads.get(place) != found:
        check_changeset(view.changeset(row.changeset_id))
        if state_root(row.memories_digest, row.edges_digest) != row.state_root:
            raise Corrupt("changeset", row.changeset_id, "its state does not agree with its state root")
        if view.is_durable:
            view.caches.heads.put(place, found)
    return row
