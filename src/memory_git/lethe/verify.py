"""`lethe verify-chain`: everything recomputed from what was written, on one snapshot, past every cache (5-lethe, verify).

In this order: events, changesets with their states recomputed from the ops by the one projector, refs and logs, manifests, advances,
conflicts, assemblies, and last the derived tables. Each fault names its object. What is covered and what is not: FORMAT §11.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from memory_git.domain import chain, trie
from memory_git.domain.canonical import decode, sha256_hex
from memory_git.domain.changeset import DIGEST_VERSION, salted_digest
from memory_git.domain.conflicts import claims_of, conflict_id
from memory_git.domain.envelope import MergeKeys, signature_holds
from memory_git.domain.errors import Corrupt, Refused
from memory_git.domain.ids import parse_ref
from memory_git.domain.ops import Op
from memory_git.domain.projector import Applied, Reach
from memory_git.domain.proposals import state_digest
from memory_git.domain.record import Edge, Record, record_bytes_digest
from memory_git.domain.state_root import edge_key, memory_key, state_root
from memory_git.domain.trie import EMPTY, Entry, MemoryNodes, Root
from memory_git.lethe import assemblies, events, manifests
from memory_git.lethe.caches import Caches
from memory_git.lethe.changesets import check_changeset, stored_ops
from memory_git.lethe.commits import apply_ops, base_of, write_state
from memory_git.lethe.redaction import redaction_view
from memory_git.lethe.refs import move_view
from memory_git.lethe.session import Roots, StoredState, Transaction, View, redacted_record, roots_of
from memory_git.lethe.sources import Sources
from memory_git.storage import lethe_conflicts, lethe_history, lethe_receipts, lethe_redaction, lethe_states
from memory_git.storage.connection import Connection
from memory_git.storage.lethe_history import ChangesetRow, ProjectRow
from memory_git.storage.lethe_schema import row_range
from memory_git.storage.lethe_states import EdgeRow, VersionRow

Progress = Callable[[str, int, int], None]
"""Takes what is being checked, how many are done, and how many there are."""
_BATCH = 1_000


def verify_project(
    connection: Connection, project: ProjectRow, keys: MergeKeys | None, progress: Progress | None
) -> dict[str, Any]:
    """Gives `{ok, project_id, checked: {kind: count}, faults: [{kind, object_id, why}]}`."""
    report = _Report(progress or (lambda *_: None))
    view = View(connection, project, Caches(max_history=2**62))
    redacted = _check_redactions(view, report)
    _check_events(view, redacted, report)
    _Replay(view, redacted, report).run()
    for check in (
        _check_refs,
        _check_manifests,
        _check_conflicts,
        _check_assemblies,
        _check_claims,
        _check_objects,
    ):
        check(view, report)
    _check_advances(view, keys, report)
    return {
        "ok": not report.faults,
        "project_id": project.project_id,
        "checked": dict(sorted(report.checked.items())),
        "faults": report.faults,
    }


class _Report:
    """Counts what was checked and keeps the faults."""

    def __init__(self, progress: Progress) -> None:
        self.checked: Counter[str] = Counter()
        self.faults: list[dict[str, Any]] = []
        self.progress = progress

    def fault(self, kind: str, object_id: object, why: str) -> None:
        """Notes a fault."""
        self.faults.append({"kind": kind, "object_id": str(object_id), "why": why})

    def expect(self, holds: bool, kind: str, object_id: object, why: str) -> None:
        """Notes a fault unless something holds."""
        if not holds:
            self.fault(kind, object_id, why)

    @contextmanager
    def each(self, kind: str, object_id: object) -> Iterator[None]:
        """Counts one object, and turns corruption, or a stored thing that can't even be read, into a fault."""
        self.checked[kind] += 1
        try:
            yield
        except Corrupt as error:
            self.fault(error.kind, error.object_id, error.why)
        except (
            Refused,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            IndexError,
            AssertionError,
        ) as error:
            self.fault(kind, object_id, f"can't be read: {type(error).__name__}")


def _check_redactions(view: View, report: _Report) -> set[str]:
    """Checks the chain of redactions, and gives the memories that they erased."""
    previous = None
    named: set[str] = set()
    for place, row in enumerate(lethe_redaction.list_redactions(view.connection, view.project_id), 1):
        with report.each("redaction", row.redaction_id):
            linked = chain.link(previous, redaction_view(row))
            same = linked == row.redaction_digest and row.seq == place
            report.expect(same, "redaction", row.redaction_id, "the chain does not agree")
            named |= set(decode(row.memory_ids))
        previous = row.redaction_digest
    found = lethe_redaction.redacted_memories(view.connection, view.project_id)
    for memory_id in sorted(found ^ named):
        report.fault("redacted_memory", memory_id, "does not agree with the redactions")
    return found


def _check_events(view: View, redacted: set[str], report: _Report) -> None:
    previous = None
    rows = events.all_events(view)
    for place, row in enumerate(rows, 1):
        with report.each("event", row.event_id):
            report.expect(row.seq == place, "event", row.event_id, "a row before it is missing")
            linked = chain.link(previous, events.event_view(row))
            report.expect(linked == row.event_digest, "event", row.event_id, "the chain does not agree")
            if row.content is None:
                erased = {row.event_id, row.memory_id} & redacted
                report.expect(bool(erased), "event", row.event_id, "has no content and no redaction record")
                report.checked["redacted event"] += 1
            else:
                found = salted_digest(row.salt or "", row.content)
                report.expect(
                    found == row.content_digest, "event", row.event_id, "the content does not agree"
                )
        previous = row.event_digest
    report.expect(
        view.project.baseline_seq <= len(rows),
        "project",
        view.project_id,
        "the baseline's events are missing",
    )


class _Recomputed(Transaction):
    """One changeset's write done again: nodes in memory, and each row compared with the stored one instead of made."""

    def __init__(
        self, view: View, nodes: MemoryNodes, stored: StoredState, redacted: set[str], report: _Report
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

    def put(self, body: bytes) -> int:
        """Keeps a recomputed node."""
        return self._memory.put(body)

    def salt(self, memory_id: str) -> str:
        """Gives a stored salt; none is made here."""
        found = lethe_states.get_salt(self.connection, self.project_id, memory_id)
        if found is None:
            raise Corrupt("memory_salt", memory_id, "is absent")
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
        digest = bytes.fromhex(record_bytes_digest(self.salt(record.memory_id), body))
        expected = VersionRow(
            stored.row,
            self.project_id,
            record.memory_id,
            changeset_row,
            ordinal,
            previous.row if previous else None,
            second.row if second and before and second.row != before.row else None,
            digest,
            body,
        )
        if self.version(stored.row) != expected:
            self._report.fault("version", stored.row, "is not what the ops make")
        self.versions.add(stored.row)
        number = 1 + max(before.version if before else 0, second.version if second else 0)
        introduced = previous.introduced if previous else changeset_row
        return Entry(key, digest, stored.row, introduced, changeset_row, number)

    def erased_records(self) -> list[Record]:
        """Gives what stands for the erased memories of this changeset's state, for the ops that only name them."""
        return [
            redacted_record(name) for name in sorted(self._redacted) if self._stored.entry(name) is not None
        ]

    def erased_entries(self, roots: Roots, changeset_row: int) -> dict[bytes, Entry | None]:
        """Gives the stored entries of erased memories that this changeset changed: their digests are opaque."""
        found: dict[bytes, Entry | None] = {}
        for memory_id in sorted(self._redacted):
            key = memory_key(memory_id)
            stored = trie.get(self._stored.nodes, self._stored.memories, key)
            if stored is not None and stored != trie.get(self, roots[0], key):
                made_here = self.version(stored.row).changeset_row == changeset_row
                self._report.expect(made_here, "version", stored.row, "is not what the ops make")
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


class _Replay:
    """All changesets in the order of arrival, each state recomputed from its parents' recomputed states."""

    def __init__(self, view: View, redacted: set[str], report: _Report) -> None:
        self._view = view
        self._redacted = redacted
        self._report = report
        self._memory = MemoryNodes()
        self._roots: dict[str, Roots] = {}
        self._seen_nodes: set[int] = set()
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
        stored = StoredState(self._view, roots_of(row))
        recomputed = _Recomputed(self._view, self._memory, stored, self._redacted, report)
        roots, applied = self._recompute(row, parents, recomputed)
        self._roots[row.changeset_id] = roots
        root = state_root(roots[0].digest, roots[1].digest)
        report.expect(
            root == row.state_root, "changeset", row.changeset_id, "the state root is not what the ops make"
        )
        counts = (row.memories_count, row.edges_count)
        report.expect(
            counts == (roots[0].count, roots[1].count),
            "changeset",
            row.changeset_id,
            "a count is not what the ops make",
        )
        self._check_reach(row, applied)
        for own, kept in zip(roots, (stored.memories, stored.edges), strict=True):
            self._check_nodes(own, kept)
        self._seen_versions |= recomputed.versions
        self._seen_edges |= recomputed.edges
        report.checked["version"] += len(recomputed.versions)
        report.checked["edge"] += len(recomputed.edges)

    def _recompute(
        self, row: ChangesetRow, parents: list[ChangesetRow], transaction: _Recomputed
    ) -> tuple[Roots, Applied]:
        if not parents:
            return self._baseline(row, transaction), Applied()
        ops = self._kept_ops(row)
        own = [_with_roots(parent, self._roots[parent.changeset_id]) for parent in parents]
        base = base_of(_Rooted(transaction, self._roots), own)
        applied = apply_ops(transaction, ops, base, erased=transaction.erased_records())
        roots = write_state(transaction, applied, base, row.id)
        erased = transaction.erased_entries(roots, row.id)
        return (trie.put_many(transaction, roots[0], erased), roots[1]), applied

    def _kept_ops(self, row: ChangesetRow) -> list[Op]:
        """Gives the ops whose payload was not erased; an erased one must name an erased memory."""
        kept = []
        stored = lethe_history.ops_of(self._view.connection, self._view.project_id, row.id)
        for shown, op in zip(stored_ops(self._view, row), stored, strict=True):
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
        if stored.row in self._seen_nodes or stored == EMPTY:
            return
        self._seen_nodes.add(stored.row)
        self._report.checked["node"] += 1
        node = trie.decode(self._view.get(stored.row, stored.digest))
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
            ("node", self._seen_nodes),
        ):
            rows = set(lethe_states.rows_between(view.connection, view.project_id, table, least, beyond))
            for row in sorted(rows ^ seen):
                self._report.fault(table, row, "belongs to no state" if row in rows else "is absent")


def _with_roots(row: ChangesetRow, roots: Roots) -> ChangesetRow:
    return replace(
        row,
        memories_row=roots[0].row,
        memories_digest=roots[0].digest,
        memories_count=roots[0].count,
        edges_row=roots[1].row,
        edges_digest=roots[1].digest,
        edges_count=roots[1].count,
    )


class _Rooted(View):
    """A view in which every changeset has its recomputed state: what a merge base is taken from."""

    def __init__(self, view: _Recomputed, roots: Mapping[str, Roots]) -> None:
        super().__init__(view.connection, view.project, view.caches)
        self._nodes = view
        self._roots = roots

    def roots(self, changeset_id: str) -> Roots:
        """Gives the recomputed tries of a changeset's state."""
        return self._roots[changeset_id]

    def get(self, row: int, expected_digest: bytes) -> bytes:
        """Gives a recomputed node."""
        return self._nodes.get(row, expected_digest)


def _check_refs(view: View, report: _Report) -> None:
    for row in lethe_history.list_refs(view.connection, view.project_id):
        with report.each("ref", row.ref_name):
            moves = lethe_history.ref_log(view.connection, view.project_id, row.ref_name)
            previous, head, at = None, None, ""
            for place, move in enumerate(moves, 1):
                report.checked["ref_log"] += 1
                name = f"{row.ref_name}#{move.seq}"
                report.expect(
                    chain.link(previous, move_view(move)) == move.digest,
                    "ref_log",
                    name,
                    "the chain does not agree",
                )
                report.expect(
                    move.seq == place and move.from_head == head,
                    "ref_log",
                    name,
                    "does not follow the one before",
                )
                report.expect(move.at >= at, "ref_log", name, "is earlier than the one before")
                view.changeset(move.to_head)
                previous, head, at = move.digest, move.to_head, move.at
            newest = moves[-1]
            report.expect(row.head_changeset_id == head, "ref", row.ref_name, "the head is not the log's")
            found = (row.version, row.updated_at, row.updated_by, row.created_at)
            wanted = (newest.seq, newest.at, newest.principal, moves[0].at)
            report.expect(found == wanted, "ref", row.ref_name, "a column does not agree with the log")
            protected = parse_ref(row.ref_name).is_protected_by_name
            report.expect(
                bool(row.protected) == protected, "ref", row.ref_name, "the protection is not the name's"
            )
    listed = {row.ref_name for row in lethe_history.list_refs(view.connection, view.project_id)}
    for name in lethe_history.logged_refs(view.connection, view.project_id):
        report.expect(name in listed, "ref", name, "has a log and no row")


def _check_manifests(view: View, report: _Report) -> None:
    for row in lethe_receipts.list_manifests(view.connection, view.project_id):
        with report.each("manifest", row.manifest_id):
            body = decode(row.body)
            report.expect(
                sha256_hex(row.body) == row.manifest_digest,
                "manifest",
                row.manifest_id,
                "the body does not agree",
            )
            same = body["manifest_id"] == row.manifest_id and body["created_at"] == row.created_at
            report.expect(same, "manifest", row.manifest_id, "a column does not agree with the body")
            if body["kind"] == "input":
                manifests.reproduce(view, row, None)


def _check_advances(view: View, keys: MergeKeys | None, report: _Report) -> None:
    burnt = set(lethe_receipts.list_nonces(view.connection, view.project_id))
    for place, row in enumerate(lethe_receipts.list_advances(view.connection, view.project_id), 1):
        with report.each("advance", row.advance_id):
            envelope = decode(row.envelope_wire)["envelope"]
            found = (row.project_id, row.ref_name, row.from_head, row.to_head, row.proposal_id, row.nonce)
            names = ("project_id", "ref_name", "expected_head", "new_head", "proposal_id", "nonce")
            same = found == tuple(envelope[name] for name in names) and row.seq == place
            report.expect(same, "advance", row.advance_id, "a column does not agree with the authorization")
            report.expect(row.nonce in burnt, "advance", row.advance_id, "its nonce is not burnt")
            if row.proposal_state is not None:
                agrees = state_digest(decode(row.proposal_state)) == envelope["proposal_digest"]
                report.expect(agrees, "advance", row.advance_id, "the proposal state does not agree")
            moves = lethe_history.ref_log(view.connection, view.project_id, row.ref_name)
            made = any((move.from_head, move.to_head) == (row.from_head, row.to_head) for move in moves)
            report.expect(made, "advance", row.advance_id, "the ref's log does not know it")
            if keys is not None and keys.secret(envelope["key_id"]) is not None:
                report.expect(
                    signature_holds(row.envelope_wire, keys),
                    "advance",
                    row.advance_id,
                    "the signature does not hold",
                )
    for row_ref in lethe_history.list_refs(view.connection, view.project_id):
        if row_ref.protected:
            _check_moves_are_authorized(view, row_ref.ref_name, report)


def _check_moves_are_authorized(view: View, ref_name: str, report: _Report) -> None:
    made = {
        (row.from_head, row.to_head)
        for row in lethe_receipts.list_advances(view.connection, view.project_id)
        if row.ref_name == ref_name
    }
    for move in lethe_history.ref_log(view.connection, view.project_id, ref_name)[1:]:
        authorized = (move.from_head, move.to_head) in made
        report.expect(
            authorized, "ref_log", f"{ref_name}#{move.seq}", "no authorization stands behind the move"
        )


def _check_conflicts(view: View, report: _Report) -> None:
    for bound_id in lethe_conflicts.bound_to_nothing(view.connection, view.project_id):
        report.fault("conflict", bound_id, "is bound to a proposal and absent")
    for row in lethe_conflicts.list_conflicts(view.connection, view.project_id, None, None):
        with report.each("conflict", row.conflict_id):
            body = decode(row.body)
            found = conflict_id(
                view.project_id,
                body["base_changeset_id"],
                body["left_changeset_id"],
                body["right_changeset_id"],
                body["conflict_type"],
                body["identity"],
            )
            report.expect(
                found == row.conflict_id, "conflict", row.conflict_id, "the id is not that of its body"
            )
            same = body["identity_digest"] == row.identity_digest and body["conflict_id"] == row.conflict_id
            report.expect(same, "conflict", row.conflict_id, "a column does not agree with the body")


def _check_assemblies(view: View, report: _Report) -> None:
    for row in lethe_receipts.all_assemblies(view.connection, view.project_id):
        with report.each("assembly", row.assembly_id):
            assemblies.shown(row)


def _check_claims(view: View, report: _Report) -> None:
    """Rebuilds the claims of every version, and compares."""
    expected: set[tuple[bytes, int]] = set()
    last = row_range(view.project.number)[0] - 1
    while page := lethe_states.all_versions(
        view.connection, view.project_id, view.project.number, last, _BATCH
    ):
        for row in page:
            with report.each("indexed version", row.id):
                entry = Entry(memory_key(row.memory_id), row.record_digest, row.id, 0, 0, 0)
                claims = claims_of(view.record(entry))
                expected |= {(lethe_states.claim_key(claim), row.id) for claim in claims}
        last = page[-1].id
    found = set(lethe_states.claims_of_version(view.connection, view.project_id))
    for _, version in sorted(found ^ expected):
        report.fault("claim", version, "the claim index is not what the versions make")


def _check_objects(view: View, report: _Report) -> None:
    found = set(lethe_history.objects_of(view.connection, view.project_id))
    for object_id, kind in sorted(found ^ set(_objects(view))):
        report.fault("object_project", object_id, f"the look-up of a {kind} does not agree")


def _objects(view: View) -> Iterator[tuple[str, str]]:
    connection, project_id = view.connection, view.project_id
    for _, changeset_id, _ in lethe_history.graph_rows(
        connection, project_id, row_range(view.project.number)[0]
    ):
        yield changeset_id, "changeset"
    for row in lethe_receipts.list_manifests(connection, project_id):
        yield row.manifest_id, "manifest"
    for event in events.all_events(view):
        yield event.event_id, "event"
    for assembly in lethe_receipts.all_assemblies(connection, project_id):
        yield assembly.assembly_id, "assembly"
