"""A project seen through one connection: for reading a snapshot (`View`), or inside one write (`Transaction`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from memory_git.domain import trie
from memory_git.domain.ancestry import CommitGraph
from memory_git.domain.conflicts import claims_of
from memory_git.domain.errors import Corrupt, NotFound
from memory_git.domain.node_store import reached
from memory_git.domain.policy import Audience
from memory_git.domain.record import Conflicted, Edge, Record, record_bytes_sha256, record_from_bytes
from memory_git.domain.state_root import edge_key, memory_key
from memory_git.domain.trie import Entry, Root
from memory_git.lethe.caches import Caches, MadeAnew
from memory_git.lethe.claimants import ClaimIndex, claimants
from memory_git.lethe.node_bodies import unpacked
from memory_git.storage import lethe_events, lethe_history, lethe_redaction, lethe_states
from memory_git.storage.connection import Connection
from memory_git.storage.lethe_history import ChangesetRow, ProjectRow, StateRow
from memory_git.storage.lethe_schema import FIRST_ROW
from memory_git.storage.lethe_states import EdgeRow, VersionRow

REDACTED = "redacted"
Roots = tuple[Root, Root]
"""The memories' trie and the relationships' trie."""
AnyState = ChangesetRow | StateRow
"""What says where the state of a changeset is."""


class View:
    """Reads of one project on one snapshot. Everything that comes back was verified against its digest."""

    is_durable = True
    """Whether all that it reads is committed: only then may it be kept for others."""

    def __init__(self, connection: Connection, project: ProjectRow, caches: Caches) -> None:
        self.connection = connection
        self.project = project
        self.project_id = project.project_id
        self.caches = caches
        self.epoch = connection.recall(
            ("redaction epoch", project.project_id),
            lambda: lethe_redaction.epoch(connection, project.project_id),
        )
        caches.enter_epoch(project.project_id, self.epoch)
        self._unstored: dict[int, bytes] = {}
        """Nodes of states that were made anew, by rows that no stored node has."""
        self._stored_roots: dict[str, Roots] = {}
        """The stored tries that were given out since `_make_anew` began, by changeset."""

    # changesets

    def graph(self) -> CommitGraph:
        """Gives the commit graph, up to date."""
        return self.caches.graphs.of(self.connection, self.project_id, self.project.number)

    def changeset(self, changeset_id: str) -> ChangesetRow:
        """Gives a changeset of this project, or raises NotFound `changeset_not_found`."""
        found = lethe_history.get_changeset(self.connection, self.project_id, changeset_id)
        if found is None:
            raise NotFound("changeset_not_found", "no such changeset in this project")
        return found

    def state_row(self, changeset_id: str) -> StateRow:
        """Gives where the state of a changeset is, or raises NotFound `changeset_not_found`."""
        found = lethe_history.get_state(self.connection, self.project_id, changeset_id)
        if found is None:
            raise NotFound("changeset_not_found", "no such changeset in this project")
        return found

    def roots(self, changeset_id: str) -> Roots:
        """Gives the two tries of a changeset's state."""
        return self.roots_at(self.state_row(changeset_id))

    def roots_at(self, row: AnyState) -> Roots:
        """Gives the two tries of a stored changeset's state, made anew where its nodes are dropped."""
        if not is_dropped(row):
            found = self._stored_roots[row.changeset_id] = roots_of(row)
            return found
        return self._made_anew(row)

    def _made_anew(self, row: AnyState) -> Roots:
        kept = self.caches.made_anew.get(row.id)
        if kept is None or not self._are_stored(kept.stored_roots):
            kept = self._make_anew(row)
            self.caches.made_anew.put(row.id, kept)
        self._unstored |= kept.nodes
        self._stored_roots |= kept.stored_roots
        return kept.roots

    def _are_stored(self, known: Mapping[str, Roots]) -> bool:
        """Decides whether tries are stored where they were: their nodes may be dropped by now, also by another process."""
        return all(roots_of(self.state_row(name)) == roots for name, roots in known.items())

    def _make_anew(self, row: AnyState) -> MadeAnew:
        before, self._stored_roots = self._stored_roots, {}
        try:
            above = UnstoredNodes(self, self.caches.unstored_rows)
            roots = self.caches.make_anew(self, above, row)
            return MadeAnew(roots, reached(self._unstored | above.bodies, roots), self._stored_roots)
        finally:
            self._stored_roots = before

    def state(self, changeset_id: str) -> StoredState:
        """Gives the state of a changeset."""
        return StoredState(self, self.roots(changeset_id))

    # nodes (NodeReader)

    def get(self, row: int, expected_digest: bytes) -> bytes:
        """Gives the body of a tree node; raises Corrupt if it is absent or is not what was expected."""
        kept = self.caches.nodes.get(row)
        if kept is not None and kept[0] == expected_digest:
            return kept[1]
        body = self._unstored.get(row) if row < FIRST_ROW else self._stored_node(row)
        if body is None:
            raise Corrupt("node", row, "is absent")
        trie.verified(body, expected_digest, row)
        self._keep_node(row, expected_digest, body)
        return body

    def _stored_node(self, row: int) -> bytes | None:
        """Gives the body of a stored node, made of its base's where it is kept so; it is not verified yet."""
        found = lethe_states.get_node(self.connection, self.project_id, row)
        if found is None or found.base is None:
            return found and found.body
        if found.base >= row:
            raise Corrupt("node", row, "its base is not older")
        base = self._known_node(found.base)
        if base is None:
            raise Corrupt("node", row, "its base is absent")
        return unpacked(found.body, base, row)

    def _known_node(self, row: int) -> bytes | None:
        kept = self.caches.nodes.get(row)
        return self._stored_node(row) if kept is None else kept[1]

    def _keep_node(self, row: int, digest: bytes, body: bytes) -> None:
        self.caches.nodes.put(row, (digest, body))

    # records

    def version(self, row: int) -> VersionRow:
        """Gives the version row that a leaf entry points to."""
        found = lethe_states.get_version(self.connection, self.project_id, row)
        if found is None:
            raise Corrupt("version", row, "is absent")
        return found

    def record(self, entry: Entry) -> Record:
        """Gives the record of a leaf entry, verified against its digest and the key that it stands under."""
        kept = self.caches.records.get(entry.row)
        record = kept[1] if kept is not None and kept[0] == entry.digest else self._read_record(entry)
        if memory_key(record.memory_id) != entry.key:
            raise Corrupt("version", entry.row, "stands under another memory's key")
        return record

    def load(self, entries: Iterable[Entry]) -> dict[bytes, Record]:
        """Gives the records of many entries by their digests; what was not read yet is read in one statement."""
        found: dict[bytes, Record] = {}
        unread: dict[int, Entry] = {}
        for entry in entries:
            kept = self.caches.records.get(entry.row) if entry.row > 0 else None
            if kept is not None and kept[0] == entry.digest and memory_key(kept[1].memory_id) == entry.key:
                found[entry.digest] = kept[1]
            else:
                unread[entry.row] = entry
        for version in lethe_states.get_versions(self.connection, self.project_id, list(unread)):
            entry = unread[version.id]
            found[entry.digest] = self._verified(entry, version)
        return found | {
            entry.digest: self.record(entry) for entry in unread.values() if entry.digest not in found
        }

    def _read_record(self, entry: Entry) -> Record:
        return self._verified(entry, self.version(entry.row))

    def _verified(self, entry: Entry, version: VersionRow) -> Record:
        if version.body is None:
            if lethe_redaction.redaction_of(self.connection, self.project_id, version.memory_id) is None:
                raise Corrupt("version", entry.row, "has no body and no redaction record")
            return redacted_record(version.memory_id)
        salt = (version.salt or b"").hex()
        found = record_bytes_sha256(salt, version.body)
        if found != entry.digest or version.record_digest != entry.digest:
            raise Corrupt("version", entry.row, "the record does not agree with its digest")
        record = record_from_bytes(version.body)
        self._keep_record(entry.row, entry.digest, record, salt)
        return record

    def _keep_record(self, row: int, digest: bytes, record: Record, salt: str) -> None:
        self.caches.keep(self.project_id, self.epoch, row, (digest, record, salt))

    def claims(self, entry: Entry) -> frozenset[str]:
        """Gives the claims of the record of a leaf entry."""
        kept = self.caches.claims.get(entry.row)
        if kept is None or kept[0] != entry.digest:
            kept = (entry.digest, claims_of(self.record(entry)))
            if entry.row > 0:
                self.caches.keep_claims(self.project_id, self.epoch, entry.row, kept)
        return kept[1]

    def salt(self, memory_id: str) -> str:
        """Gives a memory's salt; a memory that has a version has one."""
        found = self._known_salt(memory_id)
        if found is None:
            raise Corrupt("version", memory_id, "no version has a salt")
        return found

    def _known_salt(self, memory_id: str) -> str | None:
        kept = self.caches.salts.get((self.project_id, memory_id))
        return kept or lethe_states.get_salt(self.connection, self.project_id, memory_id)

    def edge(self, entry: Entry) -> EdgeRow:
        """Gives the relationship of a leaf entry."""
        found = lethe_states.get_edge(self.connection, self.project_id, entry.row)
        if found is None or edge_key(found.from_memory_id, found.kind, found.to_memory_id) != entry.key:
            raise Corrupt("edge", entry.row, "is absent, or stands under another key")
        return found

    def event_content(self, memory_id: str) -> str | None:
        """Gives the content of the event with this id, or None."""
        found = lethe_events.get_event(self.connection, self.project_id, memory_id)
        return found.content if found else None


class StoredState:
    """A state in the store, read through a view (`domain.state.StateView`)."""

    def __init__(self, view: View, roots: Roots, nodes: trie.NodeReader | None = None) -> None:
        self.view = view
        self.memories, self.edges = roots
        self.nodes = nodes or view
        self._entries: dict[str, Entry | None] = {}
        self.index: ClaimIndex | None = None
        """The claims that are read already; both sides of a merge share one."""

    def entry(self, memory_id: str) -> Entry | None:
        """Gives the leaf entry of a memory, or None; each is looked for once."""
        if memory_id not in self._entries:
            self._entries[memory_id] = trie.get(self.nodes, self.memories, memory_key(memory_id))
        return self._entries[memory_id]

    def know(self, entries: Mapping[str, Entry]) -> None:
        """Takes note of entries that are known to stand in this state, by memory id."""
        self._entries |= entries

    def foresee(self, memory_ids: Iterable[str]) -> None:
        """Looks for many memories in one walk down the tree."""
        keys = {memory_key(name): name for name in memory_ids}
        found = trie.get_many(self.nodes, self.memories, sorted(keys))
        self._entries |= {name: found.get(key) for key, name in keys.items()}

    def record(self, memory_id: str) -> Record | Conflicted | None:
        """Gives the record of a memory as ops see it, or None (`domain.state.StateView`)."""
        found = self.plain_record(memory_id)
        return None if found is None else as_ops_see(found)

    def plain_record(self, memory_id: str) -> Record | None:
        """Gives the record of a memory, or None; a stored state holds no conflicted keys."""
        entry = self.entry(memory_id)
        return None if entry is None else self.view.record(entry)

    def edge_entry(self, edge: Edge) -> Entry | None:
        """Gives the leaf entry of a relationship, or None."""
        return trie.get(self.nodes, self.edges, edge_key(edge.from_memory_id, edge.kind, edge.to_memory_id))

    def has_edge(self, edge: Edge) -> bool:
        """Decides whether a relationship stands."""
        return self.edge_entry(edge) is not None

    def claimants(self, claims: Collection[str], at_least: int = 1) -> list[Record]:
        """Gives the active records of this state that make at least so many of some claims (`claims.Claims`)."""
        if self.index is None:
            self.index = ClaimIndex(self.view.connection, self.view.project_id)
        return claimants(self, self.index, claims, at_least)

    def edges_of(self, memory_id: str) -> list[EdgeRow]:
        """Gives the relationships of a memory that stand in this state, sorted."""
        rows = lethe_states.edges_of(self.view.connection, self.view.project_id, memory_id)
        standing: dict[Edge, EdgeRow] = {}
        for row in rows:
            edge = Edge(row.from_memory_id, row.kind, row.to_memory_id)
            entry = self.edge_entry(edge)
            if entry is not None and entry.row == row.id:
                standing[edge] = row
        return [standing[edge] for edge in sorted(standing)]


class UnstoredNodes:
    """Nodes above a reader that are not to be stored, under rows that no other node of this process has."""

    def __init__(self, below: trie.NodeReader, rows: Iterator[int]) -> None:
        self._below = below
        self._rows = rows
        self.bodies: dict[int, bytes] = {}

    def get(self, row: int, expected_digest: bytes) -> bytes:
        """Gives a node that was put here, or one of the reader's."""
        body = self.bodies.get(row)
        return (
            self._below.get(row, expected_digest)
            if body is None
            else trie.verified(body, expected_digest, row)
        )

    def put(self, body: bytes, like: int | None = None) -> int:
        """Keeps a node under the next row."""
        del like
        row = next(self._rows)
        self.bodies[row] = body
        return row


def is_dropped(row: AnyState) -> bool:
    """Decides whether the nodes of a changeset's state are dropped: they can be made anew from what is stored besides."""
    return bool((row.memories_count and not row.memories_row) or (row.edges_count and not row.edges_row))


def roots_of(row: AnyState) -> Roots:
    """Gives the two tries of a changeset's state, as they are stored."""
    return (
        Root(row.memories_row, row.memories_digest, row.memories_count),
        Root(row.edges_row, row.edges_digest, row.edges_count),
    )


def fresh_ids(new_id: Callable[[], str]) -> Iterator[str]:
    """Yields new ids without end."""
    while True:
        yield new_id()


def redacted_record(memory_id: str) -> Record:
    """Gives what is shown of an erased memory: the id, to nobody but an operator. It is never part of a state."""
    return Record(memory_id, "", visibility="private", status=REDACTED)


def is_redacted(record: Record) -> bool:
    """Decides whether a record stands for an erased one."""
    return record.status == REDACTED


def as_ops_see(record: Record) -> Record:
    """Gives a record as the ops of a changeset see it: an erased one counts as retracted, which forbids the least.

    No op may name it; but it may be the successor of another, which would else have one that nobody can retract.
    """
    return replace(record, status="retracted") if is_redacted(record) else record


def admits(record: Record, audience: Audience | None) -> bool:
    """Decides whether an audience may see a record; no audience sees everything."""
    return audience is None or audience.admits(record.visibility, record.owner_principal)


def shown_entry(view: View, entry: Entry, names: Mapping[int, str]) -> dict[str, Any]:
    """Gives the wire form of a memory at a state; `names` are the changesets' ids by row."""
    record = view.record(entry)
    return {
        "memory_id": record.memory_id,
        "record": record.to_json(),
        "record_digest": entry.digest.hex(),
        "salt": None if is_redacted(record) else view.salt(record.memory_id),
        "version": entry.version,
        "introduced_by": names.get(entry.introduced),
        "changed_by": names.get(entry.changed),
    }


def changeset_names(view: View, entries: list[Entry]) -> dict[int, str]:
    """Gives the ids of the changesets that entries name, by row."""
    rows = {row for entry in entries for row in (entry.introduced, entry.changed)}
    return lethe_history.changeset_ids(view.connection, view.project_id, rows)
