"""What one process keeps in memory of a store: immutable rows by their names, and the commit graph of each project.

Rows are never used again, so nothing here is ever invalidated but by a redaction; everything can be dropped at any time.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from memory_git.domain import kept
from memory_git.domain.ancestry import CommitGraph
from memory_git.domain.change import OpRef
from memory_git.domain.conflict import Authored
from memory_git.domain.record import Record
from memory_git.domain.trie import Pair, Root
from memory_git.storage.connection import Connection
from memory_git.storage.lethe_history import arrived

if TYPE_CHECKING:
    from memory_git.domain.node_store import NodeWriter
    from memory_git.lethe.session import AnyState, Roots, View

    MakeAnew = Callable[[View, NodeWriter, AnyState], Roots]

V = TypeVar("V")
Kept = tuple[bytes, Record, str]

NODES = 100_000
RECORDS = 100_000
CLAIMS = 20_000
OPS = 20_000
AUTHORED = 256
CHANGED = 64
CONTRADICTIONS = 20_000
PAIRS = 512
ORDERS = 4
HEADS = 20_000
MADE_ANEW = 8


@dataclass(frozen=True, slots=True)
class OpBehind:
    """The op behind a version or relationship, and who may see it."""

    ref: OpRef
    visibility: str
    owner_principal: str


@dataclass(frozen=True, slots=True)
class MadeAnew:
    """The tries of a changeset whose nodes are dropped: their nodes that are not stored, and the stored tries that the rest is of."""

    roots: Roots
    nodes: Mapping[int, bytes]
    stored_roots: Mapping[str, Roots]


class Lru(Generic[V]):
    """A bounded map that forgets what was used longest ago; safe between threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> V | None:
        """Gives what is kept under a key, or None; without the lock, which would cost as much as all the rest."""
        found = self._kept.get(key)
        if found is not None:
            try:
                self._kept.move_to_end(key)
            except KeyError:
                return found  # another thread forgot it just now
        return found

    def put(self, key: Hashable, value: V) -> None:
        """Keeps a value."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._kept.clear()


class Graphs:
    """The commit graph of each project, brought up to date from the rows that arrived since."""

    def __init__(self, max_history: int) -> None:
        self._max_history = max_history
        self._graphs: dict[str, CommitGraph] = {}
        self._places: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def of(self, connection: Connection, project_id: str, number: int) -> CommitGraph:
        """Gives a project's graph with every changeset that a snapshot sees."""
        graph, last = self.with_uncommitted(connection, project_id, number)
        self.have_read(connection, project_id, last)
        return graph

    def with_uncommitted(
        self, connection: Connection, project_id: str, number: int
    ) -> tuple[CommitGraph, int]:
        """Gives a project's graph with every changeset that a connection sees, and the place behind them.

        A writer's rows may be rolled back, and another process may then use them: they count as read only once they are
        durable (`have_read`). The ids stay behind in the graph, where nothing reaches them.
        """
        with self._lock:
            graph = self._graphs.setdefault(project_id, CommitGraph(self._max_history))
            place = self._places.get((project_id, connection.server_life), 0)
            rows, place = arrived(connection, project_id, number, place)
            for _, changeset_id, parent_ids in rows:
                graph.append(changeset_id, parent_ids.split())
            return graph, place

    def have_read(self, connection: Connection, project_id: str, place: int) -> None:
        """Notes that a graph holds every durable changeset that arrived before a place."""
        with self._lock:
            key = (project_id, connection.server_life)
            self._places[key] = max(place, self._places.get(key, 0))


class Caches:
    """All caches of one store."""

    def __init__(self, max_history: int, make_anew: MakeAnew) -> None:
        self.nodes: Lru[tuple[bytes, bytes]] = Lru(NODES)
        """node row → (digest, body), verified when it was read."""
        self.records: Lru[Kept] = Lru(RECORDS)
        """version row → (record digest, record, salt), verified when it was read."""
        self.salts: Lru[str] = Lru(RECORDS)
        """(project, memory) → the memory's salt."""
        self.claims: Lru[tuple[bytes, frozenset[str]]] = Lru(CLAIMS)
        """version row → (record digest, claims): to read them out of a text takes long."""
        self.ops: Lru[OpBehind] = Lru(OPS)
        """(epoch, table, row) → the op that made a version or relationship, verified when it was read."""
        self.authored: Lru[Authored] = Lru(AUTHORED)
        """(epoch, project, changeset id) → what its author wrote, verified when it was read."""
        self.heads: Lru[tuple[str, bytes, bytes]] = Lru(HEADS)
        """(epoch, changeset row) → state root and digests of its two tries, verified with the changeset."""
        self.contradictions: Lru[tuple[str, ...]] = Lru(CONTRADICTIONS)
        """(epoch, root row, memory) → the memories that it contradicts in that state."""
        self.pairs: Lru[tuple[Pair, ...]] = Lru(PAIRS)
        """(rows of two roots) → the entries whose digests differ, where they are few."""
        self.orders: Lru[tuple[Any, ...]] = Lru(ORDERS)
        """(root rows) → what differs between two states, in the order of pages."""
        self.changed: Lru[tuple[tuple[Root, Root], Mapping[bytes, Pair]]] = Lru(CHANGED)
        """(root rows) → two trees, and what differs between them by key."""
        self.graphs = Graphs(max_history)
        self.make_anew = make_anew
        """Gives the tries of a changeset whose nodes are dropped (`lethe.rebuilding`)."""
        self.made_anew: Lru[MadeAnew] = Lru(MADE_ANEW)
        """changeset row → its tries, good while the stored ones below are where they were."""
        self.unstored_rows = itertools.count(1)
        self.last_rows: dict[tuple[str, str], int] = {}
        """(project, table) → the greatest row ever given out; stands outside every rollback. Only the writer asks."""
        self._epoch_lock = threading.Lock()
        self._epochs: dict[str, int] = {}

    def enter_epoch(self, project_id: str, epoch: int) -> None:
        """Drops what holds text of records once a project was redacted since, also by another process."""
        if self._epochs.get(project_id, 0) < epoch:
            with self._epoch_lock:
                self.records.clear()
                self.salts.clear()
                self.claims.clear()
                kept.forget()
                self.ops.clear()
                self.authored.clear()
                self.heads.clear()
                self.contradictions.clear()
                # Last: whoever sees the epoch entered must find nothing of before.
                self._epochs[project_id] = max(epoch, self._epochs.get(project_id, 0))

    def keep(self, project_id: str, epoch: int, row: int, kept: Kept) -> None:
        """Keeps what was read or made of a version, unless its project was redacted since: the text may be erased by now."""
        with self._epoch_lock:
            if self._epochs.get(project_id, 0) <= epoch:
                self.records.put(row, kept)
                self.salts.put((project_id, kept[1].memory_id), kept[2])

    def keep_claims(self, project_id: str, epoch: int, row: int, kept: tuple[bytes, frozenset[str]]) -> None:
        """Keeps the claims of a version, unless its project was redacted since."""
        with self._epoch_lock:
            if self._epochs.get(project_id, 0) <= epoch:
                self.claims.put(row, kept)
