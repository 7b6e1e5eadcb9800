"""Every state recomputed from the ops by the one projector, and compared with what is stored (5-lethe, verify).

1. Changesets in the order of arrival; each state is made from its parents' recomputed states, as a commit makes it.
2. Versions and relationships are compared column by column with what the ops make; a leaf entry with its provenance.
3. A row that no state reaches is a fault, and so is an erased body without its redaction record.
"""

from __future__ import annotations

from collections.abc import Mapping

from memory_git.domain import trie
from memory_git.domain.changeset import DIGEST_VERSION
from memory_git.domain.errors import Corrupt
from memory_git.domain.node_store import NodeReader, load
from memory_git.domain.ops import OP_TYPES, Op
from memory_git.domain.projector import Applied, Reach
from memory_git.domain.record import Edge, Record, record_bytes_sha256
from memory_git.domain.state_root import edge_key, memory_key, state_root
from memory_git.domain.trie import EMPTY, Entry, MemoryNodes, Root
from memory_git.lethe import events
from memory_git.lethe.changesets import check_changeset, stored_ops
from memory_git.lethe.commits import Base, apply_ops, base_of, write_state
from memory_git.lethe.rebuilding import Growing, Steps, base_among, check_roots
from memory_git.lethe.report import Report
from memory_git.lethe.session import (
    Roots,
    StoredState,
    View,
    as_ops_see,
    is_dropped,
    redacted_record,
)
from memory_git.lethe.sources import Sources
from memory_git.lethe.transaction import Transaction
from memory_git.storage import lethe_history, lethe_nodes, lethe_states
from memory_git.storage.lethe_history import ChangesetRow
from memory_git.storage.lethe_redaction import KEPT_OPS
from memory_git.storage.lethe_schema import row_range
from memory_git.storage.lethe_states import EdgeRow, VersionRow


class _Recomputed(Transaction):
    """One changeset's write done again: nodes in memory, and each row compared with the stored one instead of made."""

    def __init__(
        self, view: View, nodes: MemoryNodes, stored: StoredState, redacted: set[str], report: Report
    ) -> None:
        super().__init__(view.connection, view.project, view.caches, Sources())
        self._memory = nodes
        self._stored = stored
        self._redacted = redacted
        self._report = report
        self.versions: set[int] = set()
        self.edges: set[int] = set()

    def get(self, row: int, expected_digest: bytes) -> bytes:
        """Gives a recomputed node."""
        return self._memory.get(row, expected_digest)

    def put(self, body: bytes, like: int | None = None) -> int:
        """Keeps a recomputed node."""
        return self._memory.put(body, like)

    def _keep_record(self, row: int, digest: bytes, record: Record, salt: str) -> None:
        """Keeps a record at once: what a snapshot sees is durable."""
        View._keep_record(self, row, digest, record, salt)

    def salt(self, memory_id: str) -> str:
        """Gives a stored salt; none is made here."""
        found = lethe_states.get_salt(self.connection, self.project_id, memory_id)
        if found is None:
            raise Corrupt("version", memory_id, "no version has a salt")
        return found

    def add_version(
        self,
        record: Record,
        changeset_row: int,
        ordinal: int | None,
        before: Entry | None,
        second: Entry | None,
    ) -> Entry:
        """Compares the stored version with what the ops make, and gives the entry that it must have."""
        key = memory_key(record.memory_id)
        stored = self._stored_entry(self._stored.memories, key, "memory", record.memory_id)
        if record.memory_id in self._redacted:
            return self._opaque(stored)
        previous = before or second
        body = record.to_bytes()
        salt = self.salt(record.memory_id)
        digest = record_bytes_sha256(salt, body)
        expected = VersionRow(
            stored.row,
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
        if self.version(stored.row) != expected:
            self._report.fault("version", stored.row, "is not what the ops make")
        self.versions.add(stored.row)
        number = 1 + max(before.version if before else 0, second.version if second else 0)
        introduced = previous.introduced if previous else changeset_row
        return Entry(key, digest, stored.row, introduced, changeset_row, number)

    def erased_records(self) -> list[Record]:
        """Gives what stands for the erased memories of this changeset's state, for the ops that only name them.

        They count as retracted, which forbids the least: what was allowed when they were there must be allowed here.
        """
        there = [name for name in sorted(self._redacted) if self._stored.entry(name) is not None]
        return [as_ops_see(redacted_record(name)) for name in there]

    def erased_entries(self, roots: Roots, changeset_row: int, base: Base) -> dict[bytes, Entry | None]:
        """Gives the stored entries of erased memories that this changeset changed, or took from a parent: their digests are opaque."""
        found: dict[bytes, Entry | None] = {}
        for memory_id in sorted(self._redacted):
            key = memory_key(memory_id)
            stored = trie.get(self._stored.nodes, self._stored.memories, key)
            if stored is not None and stored != trie.get(self, roots[0], key):
                made_here = self.version(stored.row).changeset_row == changeset_row
                known = [entry.row for parent in base.parents if (entry := parent.entry(memory_id))]
                self._report.expect(
                    made_here or stored.row in known, "version", stored.row, "is not what the ops make"
                )
                found[key] = self._opaque(stored)
        return found

    def _opaque(self, stored: Entry) -> Entry:
        version = self.version(stored.row)
        self._report.expect(
            version.body is None, "version", stored.row, "belongs to an erased memory and has a body"
        )
        self._report.expect(
            version.record_digest == stored.digest, "version", stored.row, "has another digest than the state"
        )
        self._report.checked["redacted version"] += 1
        self.versions.add(stored.row)
        return stored

    def add_edge(self, edge: Edge, digest: str, changeset_row: int, ordinal: int | None) -> Entry:
        """Compares the stored relationship with what the ops make."""
        key = edge_key(edge.from_memory_id, edge.kind, edge.to_memory_id)
        stored = self._stored_entry(self._stored.edges, key, "edge", key.hex())
        row = EdgeRow(
            stored.row,
            self.project_id,
            edge.from_memory_id,
            edge.kind,
            edge.to_memory_id,
            changeset_row,
            ordinal,
        )
        if lethe_states.get_edge(self.connection, self.project_id, stored.row) != row:
            self._report.fault("edge", stored.row, "is not what the ops make")
        self.edges.add(stored.row)
        return Entry(key, bytes.fromhex(digest), stored.row, changeset_row, changeset_row, 1)

    def _stored_entry(self, root: Root, key: bytes, kind: str, object_id: str) -> Entry:
        found = trie.get(self._stored.nodes, root, key)
        if found is None:
            raise Corrupt(kind, object_id, "is absent from the stored state")
        return found


class Replay:
    """All changesets in the order of arrival, each state recomputed from its parents' recomputed states."""

    def __init__(self, view: View, redacted: set[str], report: Report) -> None:
        self._view = view
        self._redacted = redacted
        self._report = report
        self._memory = MemoryNodes()
        self._steps = Steps(view, self._memory)
        self._roots: dict[str, Roots] = {}
        self._seen_nodes: dict[int, int] = {}
        """node row → a hash of what points to it: whatever else does must say the same."""
        self._seen_versions: set[int] = set()
        self._seen_edges: set[int] = set()

    def run(self) -> None:
        """Checks every changeset, then that no row stands outside of them."""
        view, report = self._view, self._report
        least, beyond = row_range(view.project.number)
        rows = lethe_history.graph_rows(view.connection, view.project_id, least)
        roots = [changeset_id for _, changeset_id, parents in rows if not parents]
        report.expect(
            roots == [view.project.root_changeset_id], "project", view.project_id, "has another root"
        )
        for done, (row, changeset_id, _) in enumerate(rows):
            report.progress("changesets", done, len(rows))
            with report.each("changeset", changeset_id):
                stored = lethe_history.changeset_at(view.connection, view.project_id, row)
                assert stored is not None, "the row was listed on this snapshot"
                self._check(stored)
        report.progress("changesets", len(rows), len(rows))
        self._check_strays(least, beyond)

    def _check(self, row: ChangesetRow) -> None:
        authored = check_changeset(row)
        report = self._report
        report.expect(
            row.digest_version == DIGEST_VERSION, "changeset", row.changeset_id, "unknown digest_version"
        )
        parents = [self._view.changeset(name) for name in row.parents]
        found = [parent.integrity_digest for parent in parents]
        named = [parent["integrity_digest"] for parent in authored["parents"]]
        report.expect(
            found == named, "changeset", row.changeset_id, "a parent does not agree with its digest"
        )
        stored = self._stored_state(row, parents)
        recomputed = _Recomputed(self._view, self._memory, stored, self._redacted, report)
        roots, applied = self._recompute(row, parents, recomputed)
        self._roots[row.changeset_id] = roots
        root = state_root(roots[0].digest, roots[1].digest)
        report.expect(
            root == row.state_root, "changeset", row.changeset_id, "the state root is not what the ops make"
        )
        digests = (row.memories_digest, row.edges_digest)
        report.expect(
            digests == (roots[0].digest, roots[1].digest),
            "changeset",
            row.changeset_id,
            "the digest of a trie is not what the ops make",
        )
        counts = (row.memories_count, row.edges_count)
        report.expect(
            counts == (roots[0].count, roots[1].count),
            "changeset",
            row.changeset_id,
            "a count is not what the ops make",
        )
        self._check_reach(row, applied)
        if not is_dropped(row):
            for own, kept in zip(roots, (stored.memories, stored.edges), strict=True):
                self._check_nodes(own, kept)
        self._seen_versions |= recomputed.versions
        self._seen_edges |= recomputed.edges
        report.checked["version"] += len(recomputed.versions)
        report.checked["edge"] += len(recomputed.edges)

    def _stored_state(self, row: ChangesetRow, parents: list[ChangesetRow]) -> StoredState:
        """Gives the state that is stored, or the one that its rows make of the parents' recomputed states."""
        if not is_dropped(row):
            return StoredState(self._view, self._view.roots_at(row))
        self._report.checked["dropped state"] += 1
        own = [Growing(*self._roots[parent.changeset_id]) for parent in parents]
        base = base_among(self._view, row)
        against = None if base is None else self._roots[base]
        roots = self._steps.after(row, own, against).seal(self._memory)
        check_roots(row, roots)
        return StoredState(self._view, roots, self._memory)

    def _recompute(
        self, row: ChangesetRow, parents: list[ChangesetRow], transaction: _Recomputed
    ) -> tuple[Roots, Applied]:
        if not parents:
            return self._baseline(row, transaction), Applied()
        ops = self._kept_ops(row)
        own = [_with_roots(parent, self._roots[parent.changeset_id]) for parent in parents]
        base = base_of(_Rooted(self._view, self._memory, self._roots), own)
        applied = apply_ops(transaction, ops, base, erased=transaction.erased_records())
        roots = write_state(transaction, applied, base, row.id)
        erased = transaction.erased_entries(roots, row.id, base)
        return (trie.put_many(transaction, roots[0], erased), roots[1]), applied

    def _kept_ops(self, row: ChangesetRow) -> list[Op]:
        """Gives the ops to apply: not those that were erased, which must name an erased memory, nor what only changes one."""
        kept = []
        stored = lethe_history.ops_of(self._view.connection, self._view.project_id, row.id)
        for shown, op in zip(stored_ops(self._view, row), stored, strict=True):
            if op.op_type == "mark_duplicate" and op.target_event_id in self._redacted:
                continue
            if "payload" in shown:
                kept.append(
                    Op(op.ordinal, op.op_type, op.target_event_id, op.resulting_event_id, shown["payload"])
                )
            else:
                named = {op.target_event_id, op.resulting_event_id} & self._redacted
                self._report.expect(
                    bool(named),
                    "op",
                    f"{row.changeset_id}/{op.ordinal}",
                    "has no payload and no redaction record",
                )
                had_text = op.op_type in OP_TYPES and op.op_type not in KEPT_OPS
                self._report.expect(
                    had_text, "op", f"{row.changeset_id}/{op.ordinal}", "is of a type that is never erased"
                )
                self._report.checked["redacted op"] += 1
        return kept

    def _baseline(self, row: ChangesetRow, transaction: _Recomputed) -> Roots:
        puts: dict[bytes, Entry | None] = {}
        for event in events.all_events(self._view, self._view.project.baseline_seq):
            entry = transaction.add_version(events.baseline_record(event), row.id, None, None, None)
            puts[entry.key] = entry
        return trie.put_many(transaction, EMPTY, puts), EMPTY

    def _check_reach(self, row: ChangesetRow, applied: Applied) -> None:
        for op in lethe_history.ops_of(self._view.connection, self._view.project_id, row.id):
            self._report.checked["op"] += 1
            if {op.target_event_id, op.resulting_event_id} & self._redacted:
                continue
            reach = applied.reach.get(op.ordinal, Reach("public", ""))
            same = (op.visibility, op.owner_principal) == (reach.visibility, reach.owner_principal)
            self._report.expect(
                same, "op", f"{row.changeset_id}/{op.ordinal}", "who may see it is not what the ops make"
            )

    def _check_nodes(self, own: Root, stored: Root) -> None:
        """Compares every stored node that was not met before, its undigested part too, with the recomputed trie."""
        if stored == EMPTY:
            return
        told = hash((stored.digest, stored.count))
        if stored.row in self._seen_nodes:
            same = self._seen_nodes[stored.row] == told
            self._report.expect(same, "node", stored.row, "is named with two digests or counts")
            return
        self._seen_nodes[stored.row] = told
        self._report.checked["node"] += 1
        node = load(self._view, stored)
        if isinstance(node, trie.Leaf):
            for entry in node.entries:
                if trie.get(self._memory, own, entry.key) != entry:
                    self._report.fault("node", stored.row, "a leaf entry is not what the ops make")
            return
        for child in node.children:
            self._check_nodes(own, child)

    def _check_strays(self, least: int, beyond: int) -> None:
        view = self._view
        for table, seen in (
            ("version", self._seen_versions),
            ("edge", self._seen_edges),
            ("node", self._with_bases()),
        ):
            rows = set(lethe_states.rows_between(view.connection, view.project_id, table, least, beyond))
            for row in sorted(rows ^ seen):
                self._report.fault(table, row, "belongs to no state" if row in rows else "is absent")

    def _with_bases(self) -> set[int]:
        """Gives the nodes that were met, and those that they are based on, and checks how many are to be read below each."""
        view, seen = self._view, set(self._seen_nodes)
        nodes = lethe_nodes.nodes_down(view.connection, view.project_id, view.project.number)
        steps: dict[int, int] = {}
        for node, is_kept in lethe_nodes.with_bases(nodes, seen):
            if is_kept:
                counted = steps.pop(node.row, node.steps) == node.steps and (node.base is None) == (
                    not node.steps
                )
                self._report.expect(counted, "node", node.row, "counts other steps than its base gives")
                if node.base is not None:
                    steps[node.base] = node.steps - 1
        return seen


def _with_roots(row: ChangesetRow, roots: Roots) -> ChangesetRow:
    return row._replace(
        memories_row=roots[0].row,
        memories_digest=roots[0].digest,
        memories_count=roots[0].count,
        edges_row=roots[1].row,
        edges_digest=roots[1].digest,
        edges_count=roots[1].count,
    )


class _Rooted(View):
    """A view in which every changeset has its recomputed state: what a merge base is taken from."""

    def __init__(self, view: View, nodes: NodeReader, roots: Mapping[str, Roots]) -> None:
        super().__init__(view.connection, view.project, view.caches)
        self._nodes = nodes
        self._roots = roots

    def roots(self, changeset_id: str) -> Roots:
        """Gives the recomputed tries of a changeset's state."""
        return self._roots[changeset_id]

    def get(self, row: int, expected_digest: bytes) -> bytes:
        """Gives a recomputed node."""
        return self._nodes.get(row, expected_digest)
