"""Writes history that was made elsewhere: its ids, authors and times kept, its digests ours, its states made by our projector.

1. A project is adopted with its root; one that is in use here with another root is not touched.
2. Events of the baseline come first, then the root, then the rest: what was broken off goes on where it stopped.
3. A changeset's ops are planned against the very state that they apply to (`Trial`), so that what the rules forbid is known before.
4. A ref is given with its log: moves with monotone times, each for the reason `import`. Those of a protected ref have no signed
   authorization here, so they stand only at the beginning of its log (FORMAT §8, §11); verify counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memory_git.domain import chain, trie
from memory_git.domain.canonical import canonical_bytes, decode, sha256_hex
from memory_git.domain.changeset import CreateRequest
from memory_git.domain.errors import Clash
from memory_git.domain.ids import check_project_id, parse_ref
from memory_git.domain.ops import Op, op_from_json
from memory_git.domain.projector import Applied, apply
from memory_git.domain.record import Conflicted, Record
from memory_git.domain.times import format_time
from memory_git.domain.trie import EMPTY, Entry
from memory_git.lethe import conflict_rows, events
from memory_git.lethe.caches import Caches
from memory_git.lethe.changesets import stored_ops
from memory_git.lethe.commits import Base, apply_ops, base_of, write_changeset, write_state
from memory_git.lethe.feed import Feed
from memory_git.lethe.meeting import meet
from memory_git.lethe.merging import merged_view, refuse_erased
from memory_git.lethe.refs import move_view
from memory_git.lethe.sources import Sources
from memory_git.lethe.transaction import Transaction
from memory_git.storage import lethe_conflicts, lethe_events, lethe_history, lethe_receipts, lethe_redaction
from memory_git.storage.connection import Connection
from memory_git.storage.lethe_history import ChangesetRow, ProjectRow, RefMove, RefRow
from memory_git.storage.lethe_receipts import AdvanceRow, AssemblyRow, ManifestRow

IMPORTED = "import"
"""The reason of a move that was made elsewhere."""
IMPORTED_VERSION = "lethe-import/v1"
"""The version of an envelope that stands for an authorization which was checked elsewhere."""


def is_imported(row: AdvanceRow) -> bool:
    """Decides whether an advance stands for an authorization that was checked elsewhere."""
    version: object = decode(row.envelope_wire)["envelope"].get("version")
    return version == IMPORTED_VERSION


class Undone(Exception):
    """Carries what a work made out of a write that is rolled back."""

    def __init__(self, made: Any) -> None:
        super().__init__()
        self.made = made


@dataclass(frozen=True, slots=True)
class GivenEvent:
    """An event that happened elsewhere."""

    event_id: str
    event_type: str
    content: str
    actor: str | None
    created_at: datetime
    memory_id: str | None = None


@dataclass(frozen=True, slots=True)
class GivenMove:
    """A move of a ref, to where, by whom and when; the moves of one ref come oldest first."""

    to_head: str
    principal: str
    at: datetime


class Trial:
    """The state that a changeset's ops will apply to: what ops would make of it can be asked as often as needed."""

    def __init__(self, transaction: Transaction, base: Base, parents: Sequence[str]) -> None:
        self._transaction = transaction
        self._base = base
        self._parents = parents

    @property
    def is_merge(self) -> bool:
        """Says whether two states come together."""
        return self._base.merged is not None

    def of(self, ops: Sequence[Op]) -> Applied:
        """Gives what ops would make of the state, with their faults and what they leave unsettled."""
        merged = self._base.merged
        state = self._base.parents[0] if merged is None else merged_view(self._transaction, merged)
        return apply(
            state,
            ops,
            salts=self._transaction.salt,
            events=self._transaction.event_content,
            conflicted=merged.conflicted.values() if merged else (),
        )

    def record(self, memory_id: str) -> Record | Conflicted | None:
        """Gives what stands under an id before the ops."""
        merged = self._base.merged
        state = self._base.parents[0] if merged is None else merged_view(self._transaction, merged)
        return state.record(memory_id)

    def first(self, memory_id: str) -> Record | Conflicted | None:
        """Gives what stands under an id at the first parent."""
        return self._base.parents[0].record(memory_id)

    def own_of_second(self) -> Collection[str]:
        """Gives the changesets that the second parent alone brings."""
        first, second = self._parents
        return set(self._transaction.graph().reachable_not_from(second, [first]))

    def is_erased(self, memory_id: str) -> bool:
        """Decides whether a memory was redacted here."""
        at = (self._transaction.connection, self._transaction.project_id)
        return bool(self._transaction.epoch) and lethe_redaction.redaction_of(*at, memory_id) is not None


Plan = Callable[[Trial], CreateRequest]
"""Gives the request to store, with the ops that it has by then."""


class Adopting:
    """One write of history that was made elsewhere."""

    def __init__(self, connection: Connection, caches: Caches, sources: Sources, feed: Feed) -> None:
        self.connection = connection
        self._caches = caches
        self._sources = sources
        self._feed = feed

    # projects

    def find_project(self, project_id: str) -> ProjectRow | None:
        """Gives a project, in use or not, or None."""
        return lethe_history.get_project(self.connection, check_project_id(project_id))

    def make_project(self, project_id: str) -> ProjectRow:
        """Gives a project without a root, made if absent."""
        found = self.find_project(project_id)
        if found is None:
            number = lethe_history.next_project_number(self.connection)
            at = format_time(self._sources.now())
            found = ProjectRow(check_project_id(project_id), number, None, 0, self._sources.new_salt(), at)
            lethe_history.put_project(self.connection, found)
            self.connection.forget()
        return found

    def transaction(
        self, project: ProjectRow, at: datetime | None = None, own_id: str | None = None
    ) -> Transaction:
        """Gives a write in which it is a given time, and the next id is a given one."""
        sources = self._sources
        if at is not None:
            sources = replace(sources, now=lambda: at)
        if own_id is not None:
            sources = replace(sources, new_id=lambda: own_id)
        return Transaction(self.connection, project, self._caches, sources)

    # events and root

    def add_events(self, project: ProjectRow, given: Sequence[GivenEvent]) -> int:
        """Appends the events that are not there yet, and counts them; one that is there with another content is a clash."""
        transaction = self.transaction(project)
        fresh = [item for item in given if not self._is_there(project, item)]
        happenings = (
            events.Happening(
                item.event_id,
                item.event_type,
                item.content,
                item.memory_id,
                item.actor,
                created_at=format_time(item.created_at),
            )
            for item in fresh
        )
        events.put(transaction, happenings)
        return len(fresh)

    def require_same_event(self, project: ProjectRow | None, item: GivenEvent) -> None:
        """Raises Clash `import_differs` where an event's id is here already, for something else."""
        if project is None:
            self.require_own(None, item.event_id, "event")
        else:
            self._is_there(project, item)

    def require_own(self, project: ProjectRow | None, object_id: str, kind: str) -> None:
        """Raises Clash `import_differs` where an id is here already, of another kind or project."""
        owner = lethe_history.project_of(self.connection, object_id, kind)
        same = project is not None and owner == project.project_id
        if not same and lethe_history.is_taken(self.connection, object_id):
            raise Clash("import_differs", f"the id of {kind} {object_id} is another object's here")

    def _is_there(self, project: ProjectRow, item: GivenEvent) -> bool:
        known = lethe_events.get_event(self.connection, project.project_id, item.event_id)
        if known is None:
            self.require_own(project, item.event_id, "event")
            return False
        if known.content not in (None, item.content) or known.event_type != item.event_type:
            raise Clash("import_differs", f"event {item.event_id} is here with another content")
        return True

    def foreign_events(self, project: ProjectRow, known: set[str]) -> int:
        """Counts the events of a project that are not among some."""
        found = events.all_events(self.transaction(project))
        return sum(row.event_id not in known for row in found)

    def first_event(self, project: ProjectRow) -> str | None:
        """Gives the id of a project's first event, if it has one."""
        found = lethe_events.list_events(self.connection, project.project_id, 0, 1)
        return found[0].event_id if found else None

    def make_root(
        self, project: ProjectRow, request: CreateRequest, baseline: int, at: datetime, own_id: str | None
    ) -> ProjectRow:
        """Makes a project's root over the first events, with a given id and time."""
        project = replace(project, baseline_seq=baseline)
        transaction = self.transaction(project, at, own_id)
        changeset_row = transaction.next_row("changeset")
        entries: dict[bytes, Entry | None] = {}
        for event in events.all_events(transaction, baseline) if baseline else []:
            entry = transaction.add_version(events.baseline_record(event), changeset_row, None, None, None)
            entries[entry.key] = entry
        memories = trie.put_many(transaction, EMPTY, entries)
        transaction.flush((memories, EMPTY))
        row = write_changeset(transaction, request, [], Applied(), (memories, EMPTY), changeset_row).row
        project = replace(project, root_changeset_id=row.changeset_id)
        lethe_history.set_root(self.connection, project)
        self.connection.forget()
        return project

    # changesets

    def has_changeset(self, project: ProjectRow, changeset_id: str) -> ChangesetRow | None:
        """Gives a changeset that is there, or None."""
        self.require_own(project, changeset_id, "changeset")
        return lethe_history.get_changeset(self.connection, project.project_id, changeset_id)

    def ops_of(self, project: ProjectRow, row: ChangesetRow) -> list[Op]:
        """Gives the ops of a stored changeset, as far as they are not erased."""
        ops = stored_ops(self.transaction(project), row)
        return [op_from_json(op) for op in ops if "payload" in op]

    def is_key_used(self, project: ProjectRow, author: str, key: str) -> bool:
        """Decides whether an author has used an idempotency key here."""
        return lethe_history.changeset_of_key(self.connection, project.project_id, author, key) is not None

    def add_changeset(
        self, project: ProjectRow, request: CreateRequest, at: datetime, own_id: str, plan: Plan
    ) -> ChangesetRow:
        """Stores a changeset with a given id and time; the plan gives its ops in the end (rule 3)."""
        transaction = self.transaction(project, at, own_id)
        parents = [transaction.changeset(name) for name in request.parent_ids]
        changeset_row = transaction.next_row("changeset")
        base = base_of(transaction, parents)
        if base.merged is not None:
            refuse_erased(base.merged)
        request = plan(Trial(transaction, base, request.parent_ids))
        applied = apply_ops(transaction, request.ops, base)
        roots = write_state(transaction, applied, base, changeset_row)
        transaction.flush(roots)
        return write_changeset(transaction, request, parents, applied, roots, changeset_row).row

    # refs

    def has_ref(self, project: ProjectRow, ref_name: str) -> bool:
        """Decides whether there is a ref."""
        return lethe_history.get_ref(self.connection, project.project_id, ref_name) is not None

    def put_ref(self, project: ProjectRow, ref_name: str, moves: Sequence[GivenMove]) -> str:
        """Gives a ref the moves that it lacks: `made`, `moved`, `same`, or `differs` where it has gone another way here."""
        log = lethe_history.ref_log(self.connection, project.project_id, ref_name)
        heads, known = [move.to_head for move in moves], [move.to_head for move in log]
        if log and (known[-1] == heads[-1] or heads[-1] in known):
            return "same"
        if any(move.reason != IMPORTED for move in log):
            return "differs"
        lacking = moves[len(log) :] if known == heads[: len(log)] else moves[-1:]
        for given in lacking:
            log.append(self._move(project, ref_name, log[-1] if log else None, given))
        first, last = log[0], log[-1]
        protected = int(parse_ref(ref_name).is_protected_by_name)
        row = RefRow(
            project.project_id,
            ref_name,
            last.to_head,
            protected,
            last.seq,
            first.at,
            last.at,
            last.principal,
        )
        if known:
            lethe_history.swap_head(self.connection, row, known[-1])
        else:
            lethe_history.put_ref(self.connection, row)
        self.connection.forget()
        self._announce(row, known[-1] if known else None)
        return "moved" if known else "made"

    def _move(self, project: ProjectRow, ref_name: str, last: RefMove | None, given: GivenMove) -> RefMove:
        at = format_time(given.at)
        move = RefMove(
            project.project_id,
            ref_name,
            last.seq + 1 if last else 1,
            last.to_head if last else None,
            given.to_head,
            given.principal,
            IMPORTED,
            max(at, last.at) if last else at,
            "",
        )
        move = move._replace(digest=chain.link(last.digest if last else None, move_view(move)))
        lethe_history.put_move(self.connection, move)
        return move

    def _announce(self, row: RefRow, from_head: str | None) -> None:
        facts = {"ref_name": row.ref_name, "from_head": from_head, "to_head": row.head_changeset_id}
        facts |= {"principal": row.updated_by}
        self.connection.after_commit(
            lambda: self._publish(row.project_id, protected=bool(row.protected), **facts)
        )

    def _publish(self, project_id: str, **facts: object) -> None:
        self._feed.publish("ref_moved", project_id, **facts)

    def has_move(self, project: ProjectRow, ref_name: str, from_head: str, to_head: str) -> bool:
        """Decides whether a ref's log holds a move that was made elsewhere."""
        log = lethe_history.ref_log(self.connection, project.project_id, ref_name)
        return any(
            (move.from_head, move.to_head, move.reason) == (from_head, to_head, IMPORTED) for move in log
        )

    # receipts

    def digests_at(self, project: ProjectRow, head: str, memory_ids: Sequence[str]) -> dict[str, str]:
        """Gives the record digests that active memories have at a head, and the head's state root under the empty name."""
        transaction = self.transaction(project)
        state = transaction.state(head)
        found = {"": transaction.changeset(head).state_root}
        for name in memory_ids:
            entry = state.entry(name)
            if entry is not None and transaction.record(entry).is_active:
                found[name] = entry.digest.hex()
        return found

    def put_manifest(
        self, project: ProjectRow, manifest_id: str, body: Mapping[str, Any], at: datetime
    ) -> bool:
        """Stores a manifest as it is given; False where it is there."""
        if lethe_receipts.get_manifest(self.connection, project.project_id, manifest_id) is not None:
            return False
        self.require_own(project, manifest_id, "manifest")
        created_at = format_time(at)
        stored = canonical_bytes({**body, "manifest_id": manifest_id, "created_at": created_at})
        row = ManifestRow(project.project_id, manifest_id, stored, sha256_hex(stored), created_at)
        lethe_receipts.put_manifest(self.connection, row)
        lethe_history.put_object(self.connection, manifest_id, project.project_id, "manifest")
        return True

    def burn(self, project: ProjectRow, nonce: str, proposal_id: str, at: datetime) -> bool:
        """Keeps a nonce burnt that was burnt elsewhere; False where it is."""
        return lethe_receipts.burn_nonce(
            self.connection, project.project_id, nonce, proposal_id, format_time(at)
        )

    def put_advance(
        self, project: ProjectRow, advance_id: str, envelope: Mapping[str, str], at: datetime
    ) -> bool:
        """Records a move of a protected ref that was authorized elsewhere, its nonce burnt; False where it is recorded."""
        at_project = (self.connection, project.project_id)
        if advance_id in {row.advance_id for row in lethe_receipts.list_advances(*at_project)}:
            return False
        said = {**envelope, "version": IMPORTED_VERSION, "project_id": project.project_id}
        row = AdvanceRow(
            project.project_id,
            lethe_receipts.next_advance_seq(*at_project),
            advance_id,
            said["ref_name"],
            said["expected_head"],
            said["new_head"],
            said["proposal_id"],
            said["nonce"],
            canonical_bytes({"envelope": said, "signature": ""}).decode(),
            None,
            format_time(at),
        )
        self.burn(project, row.nonce, row.proposal_id, at)
        lethe_receipts.put_advance(self.connection, row)
        return True

    def put_assembly(
        self,
        project: ProjectRow,
        assembly_id: str,
        session_key: str,
        body: Mapping[str, Any],
        verdict: tuple[str | None, str | None],
        at: datetime,
    ) -> bool:
        """Records what a model call was given; False where it is recorded."""
        if lethe_receipts.get_assembly(self.connection, project.project_id, assembly_id) is not None:
            return False
        self.require_own(project, assembly_id, "assembly")
        stored = canonical_bytes(dict(body))
        row = AssemblyRow(
            project.project_id,
            session_key,
            lethe_receipts.next_assembly_seq(self.connection, project.project_id, session_key),
            assembly_id,
            stored,
            sha256_hex(stored),
            *verdict,
            format_time(at),
        )
        lethe_receipts.put_assembly(self.connection, row)
        lethe_history.put_object(self.connection, assembly_id, project.project_id, "assembly")
        return True

    def put_conflicts(
        self, project: ProjectRow, proposal_id: str, left: str, right: str, conflict_type: str
    ) -> tuple[int, int]:
        """Stores the conflicts of a type that our own detection finds between two heads; counts those stored, and those there."""
        transaction = self.transaction(project)
        found = conflict_rows.shown_conflicts(meet(transaction, left, right), project.project_id)
        same = [item for item in found if item["conflict_type"] == conflict_type]
        at = (self.connection, project.project_id)
        there = sum(lethe_conflicts.get_conflict(*at, item["conflict_id"]) is not None for item in same)
        if len(same) > there:
            conflict_rows.persist(transaction, self._feed, proposal_id, same)
        return len(same) - there, there
