"""One write of one project: rows are named here, kept back, and written together (2-architecture, three lives).

1. A row's name is never given out twice, not even after a rollback.
2. What this write made is read back from it; what an earlier write of the same batch made, from the connection's memo; the rest
   is stored. The caches of the process are filled once it is durable.
3. Nodes are stored as far as the final roots reach them, each as what differs from the one that it was made from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from memory_git.domain import trie
from memory_git.domain.ancestry import CommitGraph
from memory_git.domain.conflicts import claims_of
from memory_git.domain.ids import is_uuid
from memory_git.domain.node_store import reached
from memory_git.domain.record import Edge, Record, record_bytes_sha256, record_from_bytes
from memory_git.domain.state_root import edge_key, memory_key
from memory_git.domain.trie import Entry
from memory_git.domain.words import words
from memory_git.lethe.caches import Caches
from memory_git.lethe.node_bodies import MOST_STEPS, packed
from memory_git.lethe.session import AnyState, Roots, View
from memory_git.lethe.sources import Sources
from memory_git.storage import lethe_events, lethe_states
from memory_git.storage.connection import Connection
from memory_git.storage.lethe_history import ProjectRow
from memory_git.storage.lethe_schema import FIRST_ROW
from memory_git.storage.lethe_states import EdgeRow, NodeRow, VersionRow

_UNREAD = (b"", b"")
MOST_HANDED_ON = 1_000
"""A write of more records than this does not fill the caches: an import would empty them of what is in use."""


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
        self._read_nodes: dict[int, tuple[bytes, bytes]] = {}
        self._read_records: dict[int, tuple[bytes, Record]] = {}
        self._last_rows: dict[str, int] = {}
        self._stored_salts: dict[str, str] = {}
        self._events: dict[str, str] = {}
        self._foreseen: frozenset[str] = frozenset()

    def next_row(self, table: str) -> int:
        """Gives a row that was never given out before, not even to a write that was rolled back."""
        if self.connection.is_postgres:
            return self.connection.new_row(table, self.project.number)
        last = self._last_rows.get(table)
        if last is None:
            last = max(self.caches.last_rows.get((self.project_id, table), 0), self._stored_last_row(table))
        row = self._last_rows[table] = self.caches.last_rows[self.project_id, table] = last + 1
        return row

    def _stored_last_row(self, table: str) -> int:
        return self.connection.recall(
            ("last row", self.project_id, table),
            lambda: lethe_states.last_row(self.connection, self.project_id, table, self.project.number),
        )

    def graph(self) -> CommitGraph:
        """Gives the commit graph with what this transaction wrote; it counts as read once it is committed."""
        graph, last = self.caches.graphs.with_uncommitted(
            self.connection, self.project_id, self.project.number
        )
        self.connection.after_commit(
            lambda: self.caches.graphs.have_read(self.connection, self.project_id, last)
        )
        return graph

    # nodes (NodeWriter)

    def get(self, row: int, expected_digest: bytes) -> bytes:
        """Gives a node that this write made, or an earlier one of its batch, else a stored one."""
        body = self._nodes.get(row) or self.connection.memo.get(("node", row))
        if body is not None:
            return body
        digest, body = self._read_nodes.get(row, _UNREAD)
        return body if digest == expected_digest else super().get(row, expected_digest)

    def _keep_node(self, row: int, digest: bytes, body: bytes) -> None:
        """Keeps a node for others only once it is durable: an earlier write of the same batch may have made it."""
        self._read_nodes[row] = digest, body
        self.connection.after_commit(lambda: super(Transaction, self)._keep_node(row, digest, body))

    def _made_anew(self, row: AnyState) -> Roots:
        """Makes the nodes under rows of this write: what its own roots reach of them is stored."""
        return self.caches.make_anew(self, self, row)

    def _keep_record(self, row: int, digest: bytes, record: Record, salt: str) -> None:
        """Keeps a record for others only once what this write saw is durable, like a node."""
        self._read_records[row] = digest, record
        self._stored_salts[record.memory_id] = salt
        keep = super()._keep_record
        self.connection.after_commit(lambda: keep(row, digest, record, salt))

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
            below = (
                self._steps_of(like, steps) if like is not None and like < row and is_stored else MOST_STEPS
            )
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

    def _read_record(self, entry: Entry) -> Record:
        kept = self._read_records.get(entry.row)
        return kept[1] if kept is not None and kept[0] == entry.digest else super()._read_record(entry)

    def foresee(self, memory_ids: Sequence[str]) -> None:
        """Reads salts and events of many memories at once, where asking for each alone would cost a query."""
        at = (self.connection, self.project_id)
        if self.connection.is_postgres:
            for name in sorted(memory_ids):
                self.connection.lock("memory", self.project_id, name)
        self._stored_salts |= lethe_states.salts_of(*at, [*map(lethe_states.indexed_key, memory_ids)])
        self._events = lethe_events.contents_of(*at, [name for name in memory_ids if is_uuid(name)])
        self._foreseen = frozenset(memory_ids)
        unseen = [name for name in memory_ids if name not in self._stored_salts]
        self._salts |= zip(unseen, self.sources.new_salts(len(unseen)), strict=True)

    def salt(self, memory_id: str) -> str:
        """Gives a memory's salt, made at first sight."""
        known = self._salts.get(memory_id) or self._stored_salts.get(memory_id)
        if known is None and memory_id not in self._foreseen:
            # Two that see a memory first, on two refs at once, must give it one salt.
            self.connection.lock("memory", self.project_id, memory_id)
            known = self._known_salt(memory_id)
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
        nodes = reached(self._nodes, roots)
        lethe_states.put_nodes(self.connection, list(self._node_rows(nodes)))
        lethe_states.put_versions(self.connection, self._versions.values())
        lethe_states.put_edges(self.connection, self._edges.values())
        claims = {row: claims_of(record) for row, record in self._records.items()}
        claimed = ((claim, row) for row, found in claims.items() for claim in found)
        lethe_states.put_claims(self.connection, self.project_id, claimed)
        texts = [(row, indexed_text(record)) for row, record in self._records.items() if record.is_active]
        lethe_states.put_words(self.connection, self.project_id, texts)
        self._hand_on(nodes, claims)
        for kept in (self._nodes, self._likes, self._versions, self._edges, self._salts, self._records):
            kept.clear()

    def _hand_on(self, nodes: Mapping[int, bytes], claims: Mapping[int, frozenset[str]]) -> None:
        """Lets later writes of the batch read what this one made, and every reader once it is durable."""
        if len(self._versions) > MOST_HANDED_ON:
            return
        # Read back from their bytes: what is kept must be told as it is told after a restart.
        versions = dict(self._versions)
        records = {row: record_from_bytes(made.body) for row, made in versions.items() if made.body}
        memo = self.connection.memo
        memo.update({("node", row): body for row, body in nodes.items()})
        memo.update({("record", row): record for row, record in records.items()})

        def fill() -> None:
            for row, body in nodes.items():
                memo.pop(("node", row), None)
                self.caches.nodes.put(row, (trie.node_digest(body), body))
            for row, record in records.items():
                memo.pop(("record", row), None)
                made = versions[row]
                super(Transaction, self)._keep_record(
                    row, made.record_digest, record, (made.salt or b"").hex()
                )
                self.caches.keep_claims(self.project_id, self.epoch, row, (made.record_digest, claims[row]))

        self.connection.after_commit(fill)


def indexed_text(record: Record) -> str:
    """Gives the text by whose words a version is found: as it is where the index splits ASCII as `words` does, else split."""
    text = " ".join((record.title or "", record.summary or "", *record.tags, record.content))
    return text if text.isascii() else " ".join(dict.fromkeys(words(text)))
