"""A project seen through one connection: for reading a snapshot (`View`), or inside one write (`Transaction`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from memory_git.domain import trie
from memory_git.domain.ancestry import CommitGraph
from memory_git.domain.conflicts import claims_of
from memory_git.domain.errors import Corrupt, NotFound
from memory_git.domain.ids import is_uuid
from memory_git.domain.policy import Audience
from memory_git.domain.record import Conflicted, Edge, Record, record_bytes_sha256, record_from_bytes
from memory_git.domain.state_root import edge_key, memory_key
from memory_git.domain.trie import Entry, Root
from memory_git.domain.words import words
from memory_git.lethe.caches import Caches
from memory_git.lethe.claimants import ClaimIndex, claimants
from memory_git.lethe.node_bodies import MOST_STEPS, packed, unpacked
from memory_git.lethe.sources import Sources
from memory_git.storage import lethe_events, lethe_history, lethe_redaction, lethe_states
from memory_git.storage.connection import Connection
from memory_git.storage.lethe_history import ChangesetRow, ProjectRow, StateRow
from memory_git.storage.lethe_schema import FIRST_ROW
from memory_git.storage.lethe_states import EdgeRow, NodeRow, VersionRow

MOST_HANDED_ON = 1_000
"""A write of more records than this does not fill the caches: an import would empty them of what is in use."""
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
            return roots_of(row)
        return self._made_anew(row)

    def _made_anew(self, row: AnyState) -> Roots:
        kept = self.caches.made_anew.get(row.id)
        if kept is None:
            above = UnstoredNodes(self, self.caches.unstored_rows)
            roots = self.caches.make_anew(self, above, row)
            kept = (roots, _reached(roots, self._unstored | above.bodies))
            self.caches.made_anew.put(row.id, kept)
        self._unstored |= kept[1]
        return kept[0]

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
        if kept is None or kept[0] != entry.digest:
            kept = (entry.digest, self._read_record(entry))
            if entry.row > 0:
                self.caches.records.put(entry.row, kept)
        if memory_key(kept[1].memory_id) != entry.key:
            raise Corrupt("version", entry.row, "stands under another memory's key")
        return kept[1]

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
            self.caches.records.put(entry.row, (entry.digest, self._verified(entry, version)))
        return found | {entry.digest: self.record(entry) for entry in unread.values()}

    def _read_record(self, entry: Entry) -> Record:
        return self._verified(entry, self.version(entry.row))

    def _verified(self, entry: Entry, version: VersionRow) -> Record:
        if version.body is None:
            if lethe_redaction.redaction_of(self.connection, self.project_id, version.memory_id) is None:
                raise Corrupt("version", entry.row, "has no body and no redaction record")
            return redacted_record(version.memory_id)
        found = record_bytes_sha256((version.salt or b"").hex(), version.body)
        if found != entry.digest or version.record_digest != entry.digest:
            raise Corrupt("version", entry.row, "the record does not agree with its digest")
        return record_from_bytes(version.body)

    def claims(self, entry: Entry) -> frozenset[str]:
        """Gives the claims of the record of a leaf entry."""
        kept = self.caches.claims.get(entry.row)
        if kept is None or kept[0] != entry.digest:
            kept = (entry.digest, claims_of(self.record(entry)))
            if entry.row > 0:
                self.caches.claims.put(entry.row, kept)
        return kept[1]

    def salt(self, memory_id: str) -> str:
        """Gives a memory's salt; a memory that has a version has one."""
        found = lethe_states.get_salt(self.connection, self.project_id, memory_id)
        if found is None:
            raise Corrupt("version", memory_id, "no version has a salt")
        return found

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


class Transaction(View):
    """One write of one project. Rows are named here, kept back, and written together by `flush`."""

    is_durable = False

    def __init__(self, connection: Connection, project: ProjectRow, caches: Caches, sources: Sources) -> None:
        super().__init__(connection, project, caches)
        self.sources = sources
        self._nodes: dict[int, bytes] = {}
        self._likes: dict[int, int] = {}
        self._versions: dict[int, VersionRow] = {}
        self._edges: dict[int, EdgeRow] = {}
        self._salts: dict[str, str] = {}
        self._records: dict[int, Record] = {}
        self._last_rows: dict[str, int] = {}
        self._stored_salts: dict[str, str] = {}
        self._events: dict[str, str] = {}
        self._foreseen: frozenset[str] = frozenset()

    def next_row(self, table: str) -> int:
        """Gives a row that was never given out before, not even to a write that was rolled back."""
        last = self._last_rows.get(table)
        if last is None:
            last = max(self.caches.last_rows.get((self.project_id, table), 0), self._stored_last_row(table))
        row = self._last_rows[table] = self.caches.last_rows[self.project_id, table] = last + 1
        return row

    def _stored_last_row(self, table: str) -> int:
        return self.connection.recall(
            ("last row", self.project_id, table),
            lambda: lethe_states.last_row(self.connection, table, self.project.number),
        )

    def graph(self) -> CommitGraph:
        """Gives the commit graph with what this transaction wrote; it counts as read once it is committed."""
        graph, last = self.caches.graphs.with_uncommitted(
            self.connection, self.project_id, self.project.number
        )
        self.connection.after_commit(lambda: self.caches.graphs.have_read(self.project_id, last))
        return graph

    # nodes (NodeWriter)

    def get(self, row: int, expected_digest: bytes) -> bytes:
        """Gives a node that this write made, or an earlier one of its batch, else a stored one."""
        body = self._nodes.get(row) or self.connection.memo.get(("node", row))
        return super().get(row, expected_digest) if body is None else body

    def _keep_node(self, row: int, digest: bytes, body: bytes) -> None:
        """Keeps a node only once it is durable: an earlier write of the same batch may have made it."""
        self.connection.after_commit(lambda: super(Transaction, self)._keep_node(row, digest, body))

    def _made_anew(self, row: AnyState) -> Roots:
        """Makes the nodes under rows of this write: what its own roots reach of them is stored."""
        return self.caches.make_anew(self, self, row)

    def put(self, body: bytes, like: int | None = None) -> int:
        """Keeps a node back under a new row."""
        row = self.next_row("node")
        self._nodes[row] = body
        if like is not None and like >= FIRST_ROW:
            self._likes[row] = like
        return row

    def _known_node(self, row: int) -> bytes | None:
        body = self._nodes.get(row) or self.connection.memo.get(("node", row))
        return super()._known_node(row) if body is None else body

    def _node_rows(self, nodes: Mapping[int, bytes]) -> Iterator[NodeRow]:
        """Gives nodes as they are stored: based on the ones that they are like, as far as those are stored."""
        steps: dict[int, int] = {}
        for row, body in sorted(nodes.items()):
            like = self._likes.get(row)
            is_stored = like is not None and (like in nodes or like not in self._nodes)
            below = self._steps_of(like, steps) if like is not None and is_stored else MOST_STEPS
            base = self._known_node(like) if like is not None and below < MOST_STEPS else None
            made = packed(body, base) if base is not None else None
            steps[row] = 0 if made is None else below + 1
            self.connection.memo["steps", row] = steps[row]
            yield NodeRow(row, self.project_id, None if made is None else like, steps[row], made or body)

    def _steps_of(self, row: int, made: Mapping[int, int]) -> int:
        if row in made:
            return made[row]
        return self.connection.recall(
            ("steps", row), lambda: lethe_states.steps_of(self.connection, self.project_id, row)
        )

    # records, relationships, salts

    def record(self, entry: Entry) -> Record:
        """Gives the record of an entry that this write made, or an earlier one of its batch, else of a stored one."""
        made = self._records.get(entry.row) or self.connection.memo.get(("record", entry.row))
        return super().record(entry) if made is None else made

    def foresee(self, memory_ids: Sequence[str]) -> None:
        """Reads salts and events of many memories at once, where asking for each alone would cost a query."""
        at = (self.connection, self.project_id)
        self._stored_salts = lethe_states.salts_of(*at, [*map(lethe_states.indexed_key, memory_ids)])
        self._events = lethe_events.contents_of(*at, [name for name in memory_ids if is_uuid(name)])
        self._foreseen = frozenset(memory_ids)
        unseen = [name for name in memory_ids if name not in self._stored_salts]
        self._salts |= zip(unseen, self.sources.new_salts(len(unseen)), strict=True)

    def salt(self, memory_id: str) -> str:
        """Gives a memory's salt, made at first sight."""
        known = self._salts.get(memory_id) or self._stored_salts.get(memory_id)
        if known is None and memory_id not in self._foreseen:
            known = lethe_states.get_salt(self.connection, self.project_id, memory_id)
        if known is None:
            known = self._salts[memory_id] = self.sources.new_salt()
        return known

    def event_content(self, memory_id: str) -> str | None:
        """Gives the content of the event with this id, or None."""
        if memory_id in self._foreseen:
            return self._events.get(memory_id)
        return super().event_content(memory_id)

    def add_version(
        self,
        record: Record,
        changeset_row: int,
        ordinal: int | None,
        before: Entry | None,
        second: Entry | None,
    ) -> Entry:
        """Keeps a version back and gives its leaf entry; `before` and `second` are the entries in the two parents."""
        row = self.next_row("version")
        salt, body, key = self.salt(record.memory_id), record.to_bytes(), memory_key(record.memory_id)
        digest = record_bytes_sha256(salt, body)
        previous = before or second
        self._versions[row] = VersionRow(
            row,
            self.project_id,
            record.memory_id,
            lethe_states.key_index(key),
            changeset_row,
            ordinal,
            previous.row if previous else None,
            second.row if second and before and second.row != before.row else None,
            digest,
            bytes.fromhex(salt),
            body,
        )
        self._records[row] = record
        number = 1 + max(before.version if before else 0, second.version if second else 0)
        introduced = previous.introduced if previous else changeset_row
        return Entry(key, digest, row, introduced, changeset_row, number)

    def add_edge(self, edge: Edge, digest: str, changeset_row: int, ordinal: int | None) -> Entry:
        """Keeps a relationship back and gives its leaf entry."""
        row = self.next_row("edge")
        self._edges[row] = EdgeRow(
            row, self.project_id, edge.from_memory_id, edge.kind, edge.to_memory_id, changeset_row, ordinal
        )
        key = edge_key(edge.from_memory_id, edge.kind, edge.to_memory_id)
        return Entry(key, bytes.fromhex(digest), row, changeset_row, changeset_row, 1)

    def flush(self, roots: Roots) -> None:
        """Writes all rows that were kept back, with the claims and words of the versions; nodes as far as the roots reach them."""
        nodes = _reached(roots, self._nodes)
        lethe_states.put_nodes(self.connection, list(self._node_rows(nodes)))
        lethe_states.put_versions(self.connection, self._versions.values())
        lethe_states.put_edges(self.connection, self._edges.values())
        claims = {row: claims_of(record) for row, record in self._records.items()}
        claimed = ((claim, row) for row, found in claims.items() for claim in found)
        lethe_states.put_claims(self.connection, self.project_id, claimed)
        texts = [(row, indexed_text(record)) for row, record in self._records.items() if record.is_active]
        lethe_states.put_words(self.connection, texts)
        self._hand_on(nodes, {row: made.record_digest for row, made in self._versions.items()}, claims)
        for kept in (self._nodes, self._likes, self._versions, self._edges, self._salts, self._records):
            kept.clear()

    def _hand_on(
        self, nodes: Mapping[int, bytes], digests: Mapping[int, bytes], claims: Mapping[int, frozenset[str]]
    ) -> None:
        """Lets later writes of the batch read what this one made, and every reader once it is durable."""
        if len(self._versions) > MOST_HANDED_ON:
            return
        # Read back from their bytes: what is kept must be told as it is told after a restart.
        records = {row: record_from_bytes(made.body) for row, made in self._versions.items() if made.body}
        memo = self.connection.memo
        memo.update({("node", row): body for row, body in nodes.items()})
        memo.update({("record", row): record for row, record in records.items()})

        def fill() -> None:
            for row, body in nodes.items():
                memo.pop(("node", row), None)
                self.caches.nodes.put(row, (trie.node_digest(body), body))
            for row, record in records.items():
                memo.pop(("record", row), None)
                self.caches.keep(self.project_id, self.epoch, row, digests[row], record, claims[row])

        self.connection.after_commit(fill)


def indexed_text(record: Record) -> str:
    """Gives the text by whose words a version is found: as it is where the index splits ASCII as `words` does, else split."""
    text = " ".join((record.title or "", record.summary or "", *record.tags, record.content))
    return text if text.isascii() else " ".join(dict.fromkeys(words(text)))


def _reached(roots: Roots, nodes: Mapping[int, bytes]) -> dict[int, bytes]:
    """Gives those of the nodes that the roots reach; a merge that ops were put on leaves others behind."""
    found: dict[int, bytes] = {}
    waiting = [root.row for root in roots]
    while waiting:
        row = waiting.pop()
        if row in nodes and row not in found:
            found[row] = nodes[row]
            waiting += trie.child_rows(found[row])
    return found


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
