"""The store, embedded: the verbs of `protocol.Lethe` by direct calls on one database.

Reads run on a snapshot of their own; writes go through the one writer, each in its savepoint. All decisions are in the modules that the
verbs call; here stand only opening, closing, and which verb is a read and which a write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import memory_git
from memory_git.domain.canonical import sha256_hex
from memory_git.domain.changeset import CreateRequest, read_request
from memory_git.domain.envelope import MergeKeys
from memory_git.domain.errors import Invalid, NotFound, Refused
from memory_git.domain.ids import SHARED_MAIN, check_project_id
from memory_git.domain.policy import Audience
from memory_git.domain.times import format_time
from memory_git.lethe import (
    assemblies,
    collecting,
    conflict_rows,
    contexts,
    events,
    figures,
    history,
    manifests,
    planning,
    preparing,
    projects,
    protected,
    redaction,
    refs,
)
from memory_git.lethe.active import ActiveIndexes
from memory_git.lethe.adopting import Adopting, Undone
from memory_git.lethe.ahead import commit_turn
from memory_git.lethe.authorship import authors_of
from memory_git.lethe.caches import Caches
from memory_git.lethe.changesets import created_changeset, shown_changeset
from memory_git.lethe.collector import COLLECTOR
from memory_git.lethe.commits import Created, create_changeset
from memory_git.lethe.comparing import diff
from memory_git.lethe.feed import Feed
from memory_git.lethe.figures import Figures
from memory_git.lethe.meeting import meet
from memory_git.lethe.pages import fitting
from memory_git.lethe.protocol import Json
from memory_git.lethe.rebuilding import make_anew
from memory_git.lethe.searching import matches
from memory_git.lethe.session import StoredState, View, changeset_names, fresh_ids, shown_entry
from memory_git.lethe.sources import Sources
from memory_git.lethe.transaction import Transaction
from memory_git.lethe.verify import verify_project
from memory_git.storage import lethe_history, lethe_receipts, lethe_redaction
from memory_git.storage.connection import Connection
from memory_git.storage.engine import Database, Turn
from memory_git.storage.lethe_events import get_event, list_events
from memory_git.storage.lethe_schema import SCHEMA
from memory_git.storage.opening import open_database
from memory_git.storage.settings import SqliteSettings

T = TypeVar("T")
DEFAULT_MAX_HISTORY = 1_000_000
MAX_EVENTS = 1_000
MANY_OPS = 1_000
MODE = "git"
"""Which of the original's ways of running this one is: versioned memory, without its sessions."""
_ABSENT = {
    "changeset": "changeset_not_found",
    "manifest": "manifest_not_found",
    "event": "event_not_found",
    "assembly": "assembly_not_found",
}


KeySource = Callable[[], MergeKeys | None]
"""What gives the merge keys as they are now."""


class LetheStore:
    """One lethe.db, or one schema of a PostgreSQL database; any number of threads may call the verbs."""

    def __init__(
        self,
        database: Database,
        merge_keys: KeySource,
        sources: Sources,
        max_history: int,
        *,
        read_only: bool,
    ) -> None:
        self._database = database
        self._merge_keys = merge_keys
        self._sources = sources
        self._caches = Caches(max_history, make_anew)
        self._indexes = ActiveIndexes()
        self._figures = Figures()
        self.read_only = read_only
        self.feed = Feed(announce=database.announce if database.is_shared else None)
        database.hear(self.feed.hear, self.feed.begin_anew)

    @classmethod
    def open(
        cls,
        place: Path | str,
        *,
        merge_keys: MergeKeys | KeySource | None,
        recovery_readonly: bool = False,
        settings: SqliteSettings | None = None,
        sources: Sources | None = None,
        max_history: int = DEFAULT_MAX_HISTORY,
    ) -> LetheStore:
        """Opens or creates a file, or opens the database at a URL; in recovery nothing is written, and every read works.

        `merge_keys` may be what gives them, so that a rotated key is known without a restart.
        """
        database = open_database(place, SCHEMA, settings or SqliteSettings(), read_only=recovery_readonly)
        keys = merge_keys if callable(merge_keys) else (lambda: merge_keys)
        return cls(database, keys, sources or Sources(), max_history, read_only=recovery_readonly)

    def close(self) -> None:
        """Answers what waits, checkpoints and closes."""
        self.feed.close()
        self._database.close()

    @property
    def place(self) -> str:
        """Where the database is, without a password."""
        return self._database.place

    @property
    def is_file(self) -> bool:
        """Says whether the database is one file of this machine."""
        return self._database.name == "sqlite"

    # how verbs reach the database

    @contextmanager
    def _view(self, project_id: str) -> Iterator[View]:
        with self._database.read() as connection:
            yield View(connection, projects.require_project(connection, project_id), self._caches)

    @contextmanager
    def _view_of(self, object_id: str, kind: str) -> Iterator[View]:
        """Lends a view of the project that an object of a route without a project belongs to."""
        with self._database.read() as connection:
            project_id = lethe_history.project_of(connection, object_id, kind)
            if project_id is None:
                raise NotFound(_ABSENT[kind], f"no such {kind}")
            yield View(connection, projects.require_project(connection, project_id), self._caches)

    def _write(self, project_id: str, work: Callable[[Transaction], T], turn: Turn | None = None) -> T:
        with self._figures.refusals():
            return self._database.write(
                lambda connection: work(self._transaction(connection, project_id)), turn or Turn(project_id)
            )

    def _transaction(self, connection: Connection, project_id: str) -> Transaction:
        return Transaction(
            connection, projects.require_project(connection, project_id), self._caches, self._sources
        )

    def _project_of(self, object_id: str, kind: str) -> str:
        with self._database.read() as connection:
            found = lethe_history.project_of(connection, object_id, kind)
        if found is None:
            raise NotFound(_ABSENT[kind], f"no such {kind}")
        return found

    # projects and refs

    def list_projects(self) -> list[str]:
        """Gives the project ids, sorted."""
        with self._database.read() as connection:
            return lethe_history.list_projects(connection)

    def init_project(self, project_id: str) -> Json:
        """Creates a project with its root, frozen baseline and protected refs/shared/main; repeatable."""
        check_project_id(project_id)
        with self._database.read() as connection:
            known = lethe_history.get_project(connection, project_id)
        if known is None or known.root_changeset_id is None:
            self._database.write(
                lambda connection: projects.init_project(
                    connection, project_id, self._caches, self._sources, self.feed
                ),
                Turn(project_id),
            )
        with self._view(project_id) as view:
            root = view.changeset(view.project.root_changeset_id or "")
            ref = refs.require_ref(view, SHARED_MAIN)
            return {"changeset": shown_changeset(view, root), "ref": refs.shown_ref(ref)}

    def create_branch(
        self, project_id: str, ref_name: str, head_changeset_id: str, principal: str, protected: bool = False
    ) -> Json:
        """Creates a ref at a changeset; the same again is the same ref."""
        return self._write(
            project_id,
            lambda tx: refs.shown_ref(
                refs.create_branch(tx, self.feed, ref_name, head_changeset_id, principal, protected)
            ),
            Turn(project_id, ref_name),
        )

    def list_refs(self, project_id: str, *, after: str = "", limit: int | None = None) -> list[Json]:
        """Gives the refs beyond the name `after`, by name, all or so many."""
        most = _most(limit)
        with self._view(project_id) as view:
            rows = lethe_history.list_refs(view.connection, project_id, after, most)
            return [refs.shown_ref(row) for row in rows]

    def resolve_ref(self, project_id: str, ref_name: str, at: str | None = None) -> Json:
        """Gives a ref, with the head it has, or had."""
        with self._view(project_id) as view:
            return refs.resolve_ref(view, ref_name, at)

    def ref_log(
        self, project_id: str, ref_name: str, *, after: int = 0, limit: int | None = None
    ) -> list[Json]:
        """Gives the moves of a ref beyond one, oldest first."""
        most = _most(limit)
        with self._view(project_id) as view:
            refs.require_ref(view, ref_name)
            moves = lethe_history.ref_log_after(view.connection, project_id, ref_name, after, most)
            return [{**refs.move_view(move), "digest": move.digest} for move in moves]

    def advance_ref(
        self, project_id: str, ref_name: str, expected_head: str, new_head: str, principal: str = "system"
    ) -> Json:
        """Moves an unprotected ref by compare-and-swap to a descendant."""
        return self._write(
            project_id,
            lambda tx: refs.shown_ref(
                refs.advance_ref(tx, self.feed, ref_name, expected_head, new_head, principal)
            ),
            Turn(project_id, ref_name),
        )

    def merge_ref(self, project_id: str, request: Mapping[str, Any]) -> Json:
        """Moves a protected ref on a signed authorization."""
        with self._figures.refusals():
            envelope, raw = protected.read_merge_request(
                check_project_id(project_id), request, self._merge_keys(), self._sources.now()
            )
        moved = self._write(project_id, lambda tx: protected.merge_ref(tx, self.feed, envelope, raw))
        if isinstance(moved, Refused):
            self._figures.refused(moved)
            raise moved
        self._figures.count(figures.AUTHORIZED)
        return refs.shown_ref(moved)

    def adopt(self, project_id: str, work: Callable[[Adopting], T]) -> T:
        """Gives what a work made of history that comes from elsewhere, once it is durable (`lethe.adopting`)."""
        return self._database.write(
            lambda connection: work(Adopting(connection, self._caches, self._sources, self.feed)),
            Turn(project_id),
        )

    def would_adopt(self, project_id: str, work: Callable[[Adopting], T]) -> T:
        """Gives what a work would make; all of it is rolled back. The project's other writes wait meanwhile."""

        def undone(adopting: Adopting) -> None:
            raise Undone(work(adopting))

        try:
            self.adopt(project_id, undone)
        except Undone as found:
            made: T = found.made
            return made
        raise AssertionError("the work is always undone")

    # changesets

    def create_changeset(self, request: Mapping[str, Any]) -> tuple[Json, bool]:
        """Validates and stores a changeset; gives it, and whether it is a replay."""
        ops = request.get("ops")
        is_large = isinstance(ops, list) and len(ops) > MANY_OPS
        with COLLECTOR.at_rest() if is_large else nullcontext():
            return self._create_changeset(request)

    def create_changeset_soon(
        self, request: Mapping[str, Any], told: Callable[[], None]
    ) -> Callable[[], tuple[Json, bool]]:
        """Begins the same without waiting, and gives what to call for the answer once `told` was called, in the writer's thread."""
        done = self._create_soon(request, told)

        def answer() -> tuple[Json, bool]:
            with self._figures.refusals(of_creation=True):
                return self._answered(done())

        return answer

    def commit_soon(
        self, request: Mapping[str, Any], told: Callable[[], None]
    ) -> Callable[[], tuple[Json, bool, Json | None]]:
        """Begins the same; the answer has the ref as the changeset moved it beside, None where an earlier request did."""
        done = self._create_soon(request, told)

        def answer() -> tuple[Json, bool, Json | None]:
            with self._figures.refusals(of_creation=True):
                created = done()
                ref = refs.shown_ref(created.ref) if created.ref is not None else None
                return *self._answered(created), ref

        return answer

    def _create_soon(self, request: Mapping[str, Any], told: Callable[[], None]) -> Callable[[], Created]:
        with self._figures.refusals(of_creation=True):
            read = self._read(request)
            turn = commit_turn(read, self._caches)
            return self._database.write_soon(partial(self._create, read), told, turn)

    def _create_changeset(self, request: Mapping[str, Any]) -> tuple[Json, bool]:
        with self._figures.refusals(of_creation=True):
            read = self._read(request)
            turn = commit_turn(read, self._caches)
            return self._answered(self._database.write(partial(self._create, read), turn))

    def _read(self, request: Mapping[str, Any]) -> CreateRequest:
        return read_request(request, preparing.ids_for(request, fresh_ids(self._sources.new_id)))

    def prepare_changeset(self, request: Mapping[str, Any]) -> Json:
        """Gives the authored view of a create request, for its author to sign; stores nothing."""
        read = self._read(request)
        with self._view(read.project_id) as view:
            return preparing.prepare(view, read, self._sources)

    def _create(self, read: CreateRequest, connection: Connection) -> Created:
        return create_changeset(self._transaction(connection, read.project_id), self.feed, read)

    def _answered(self, created: Created) -> tuple[Json, bool]:
        if created.request is None:
            self._figures.count(figures.REPLAYED)
            return self.get_changeset(created.row.changeset_id), True
        self._figures.count(figures.CREATED)
        return created_changeset(created.row, created.request, created.ops), False

    def get_changeset(self, changeset_id: str, audience: Audience | None = None) -> Json:
        """Gives one changeset of whatever project."""
        with self._view_of(changeset_id, "changeset") as view:
            return history.with_originals(view, view.changeset(changeset_id), audience)

    def log(
        self,
        project_id: str,
        ref_name: str | None = None,
        *,
        head: str | None = None,
        limit: int = 20,
        before: str | None = None,
        first_parent: bool = False,
        audience: Audience | None = None,
    ) -> Json:
        """Gives ancestors, newest first in topological order, by pages."""
        with self._view(project_id) as view:
            return history.log(view, ref_name, head, limit, before, first_parent, audience)

    def is_ancestor(self, project_id: str, ancestor: str, descendant: str) -> bool:
        """Decides whether a changeset is reachable from another."""
        with self._view(project_id) as view:
            view.state_row(ancestor), view.state_row(descendant)
            return view.graph().is_ancestor(ancestor, descendant)

    def merge_base(self, project_id: str, left: str, right: str) -> list[str]:
        """Gives all best common ancestors, sorted."""
        with self._view(project_id) as view:
            view.state_row(left), view.state_row(right)
            return list(view.graph().best_common_ancestors(left, right))

    def authors(self, project_id: str, head: str, without: str) -> list[str]:
        """Gives who wrote what is reachable from `head` and not from `without`."""
        with self._view(project_id) as view:
            view.state_row(head), view.state_row(without)
            return sorted(authors_of(view, head, without))

    # states

    def diff(
        self,
        target: str,
        base: str | None = None,
        audience: Audience | None = None,
        *,
        limit: int | None = None,
        after: str | None = None,
    ) -> Json:
        """Gives the semantic diff base → target (default base: the first parent), whole or by pages."""
        with self._view_of(target, "changeset") as view:
            return diff(view, target, base, audience, limit, after)

    def memories(
        self,
        project_id: str,
        head: str,
        *,
        limit: int = 50,
        after: str | None = None,
        kind: str | None = None,
        status: str | None = None,
        audience: Audience | None = None,
    ) -> Json:
        """Gives a page of the memories of a state, filtered before the limit."""
        with self._view(project_id) as view:
            index = self._indexes.of(view, head)
            return history.memories(view, head, limit, after, kind, status, audience, index)

    def memory(self, project_id: str, head: str, memory_id: str, audience: Audience | None = None) -> Json:
        """Gives one memory at a state, with its proof."""
        with self._view(project_id) as view:
            return history.memory(view, head, memory_id, audience)

    def records(
        self, project_id: str, heads: Collection[str], memory_ids: Collection[str]
    ) -> dict[str, list[Json]]:
        """Gives what stands of memories at states, on one snapshot."""
        with self._view(project_id) as view:
            return history.records(view, heads, memory_ids)

    def memory_history(
        self, project_id: str, head: str, memory_id: str, audience: Audience | None = None
    ) -> Json:
        """Gives the versions of a memory that are reachable from a head, newest first."""
        with self._view(project_id) as view:
            return history.memory_history(view, head, memory_id, audience)

    def search(
        self, project_id: str, head: str, query: str, *, limit: int = 20, audience: Audience | None = None
    ) -> Json:
        """Gives the active memories of a state with a word of the query, best first."""
        history.check_limit(limit, history.MAX_MEMORIES)
        with self._view(project_id) as view:
            state = StoredState(view, view.roots(head))
            reading = contexts.Reading(self._indexes.of(view, head), audience)
            withheld, _ = contexts.withheld_at(view, head, reading)
            found = [
                hit
                for hit in matches(view, state, query, reading.total, audience)
                if hit[1].memory_id not in withheld
            ]
            names = changeset_names(view, [entry for entry, _, _ in found[:limit]])
            hits = [{**shown_entry(view, entry, names), "score": score} for entry, _, score in found[:limit]]
            return {"hits": hits, "total": len(found)}

    # merges and conflicts

    def plan_merge(self, project_id: str, target: str, source: str, audience: Audience | None = None) -> Json:
        """Plans bringing `source` into `target`; writes nothing."""
        with self._view(project_id) as view:
            return planning.merge_plan(view, target, source, audience)

    def plan_rebase(self, project_id: str, head: str, onto: str) -> Json:
        """Plans replaying what `head` has beyond `onto` on top of it."""
        with self._view(project_id) as view:
            return planning.rebase_plan(view, head, onto)

    def plan_cherry_pick(self, project_id: str, selected: Sequence[Mapping[str, Any]], onto: str) -> Json:
        """Plans copies of selected ops on a head."""
        with self._view(project_id) as view:
            return planning.cherry_pick_plan(view, selected, onto)

    def plan_revert(
        self,
        project_id: str,
        changeset_id: str,
        onto: str,
        mainline: int | None = None,
        from_changeset_id: str | None = None,
    ) -> Json:
        """Plans the ops that take back one changeset, or a range, on a head."""
        with self._view(project_id) as view:
            return planning.revert_plan(view, changeset_id, onto, mainline, from_changeset_id)

    def detect_conflicts(
        self, project_id: str, base: str, left: str, right: str, audience: Audience | None = None
    ) -> list[Json]:
        """Gives the conflicts between two heads from a base; writes nothing."""
        with self._view(project_id) as view:
            for name in (base, left, right):
                view.changeset(name)
            return conflict_rows.shown_conflicts(meet(view, left, right, base, audience), project_id)

    def list_conflicts(
        self,
        project_id: str,
        *,
        status: str | None = None,
        proposal_id: str | None = None,
        limit: int = 100,
        audience: Audience | None = None,
    ) -> list[Json]:
        """Gives stored conflicts."""
        history.check_limit(limit, MAX_EVENTS)
        with self._view(project_id) as view:
            return conflict_rows.list_conflicts(view, status, proposal_id, limit, audience)

    def persist_conflicts(
        self, project_id: str, proposal_id: str, conflicts: Sequence[Mapping[str, Any]]
    ) -> int:
        """Stores what was found, bound to a proposal."""
        stored = self._write(
            project_id, lambda tx: conflict_rows.persist(tx, self.feed, proposal_id, conflicts)
        )
        self._figures.count(figures.PERSISTED, stored)
        return stored

    def retire_conflicts(self, project_id: str, proposal_id: str, status: str) -> int:
        """Lets a proposal go of its open conflicts; gives how many."""
        retired = self._write(project_id, lambda tx: conflict_rows.retire(tx, proposal_id, status))
        self._figures.count(figures.RETIRED, retired)
        return retired

    def resolve_conflict(
        self, project_id: str, conflict_id: str, *, outcome: str, resolution_note: str, principal: str
    ) -> Json:
        """Records a resolution with its reason."""

        def work(transaction: Transaction) -> Json:
            row = conflict_rows.resolve(
                transaction,
                conflict_id,
                outcome=outcome,
                resolution_note=resolution_note,
                principal=principal,
            )
            return conflict_rows.shown_row(transaction, row)

        resolved = self._write(project_id, work)
        self._figures.count(figures.RESOLVED)
        return resolved

    # context and manifests

    def context(self, project_id: str, request: Mapping[str, Any], audience: Audience | None = None) -> Json:
        """Gives the accepted memory for a prompt at a head; with `create_manifest`, pinned."""
        read = contexts.read_request(request, self._sources)
        with self._view(project_id) as view, self._figures.context():
            built = contexts.build_context(view, read, self._indexes, audience)
        if not read.create_manifest:
            return built.shown
        pinned = manifests.manifest_of_context(built, read)
        manifest = self._write(project_id, lambda tx: manifests.create_manifest(tx, pinned))
        return {**built.shown, "manifest_id": manifest["manifest_id"]}

    def create_manifest(self, request: Mapping[str, Any]) -> Json:
        """Checks and stores a manifest."""
        project_id = check_project_id(request.get("project_id"))
        return self._write(project_id, lambda tx: manifests.create_manifest(tx, request))

    def get_manifest(self, manifest_id: str) -> Json:
        """Gives a manifest: ids and digests, no text."""
        project_id = self._project_of(manifest_id, "manifest")
        with self._database.read() as connection:
            return manifests.shown_manifest(manifests.stored_manifest(connection, project_id, manifest_id))

    def reproduce(self, manifest_id: str, audience: Audience | None = None) -> Json:
        """Rebuilds the records that a manifest pins from history."""
        with self._view_of(manifest_id, "manifest") as view:
            row = manifests.stored_manifest(view.connection, view.project_id, manifest_id)
            return manifests.reproduce(view, row, audience)

    # events and assemblies

    def append_event(self, project_id: str, event: Mapping[str, Any]) -> Json:
        """Appends one event; the project need not be in use yet."""
        check_project_id(project_id)

        def work(connection: Connection) -> Json:
            project = projects.known_project(connection, project_id, self._sources)
            transaction = Transaction(connection, project, self._caches, self._sources)
            return events.shown_event(events.append(transaction, event))

        return self._database.write(work, Turn(project_id))

    def list_events(
        self, project_id: str, *, after: int = 0, limit: int = 100, audience: Audience | None = None
    ) -> list[Json]:
        """Gives events by seq; those of memories that the audience may not see at the shared head are left out.

        A page may be shorter than asked for where its bytes say so; after the last event it is empty.
        """
        history.check_limit(limit, MAX_EVENTS)
        check_project_id(project_id)
        with self._database.read() as connection:
            if audience is None:
                rows = list_events(connection, project_id, after, limit)
                return fitting(events.shown_event(row) for row in rows)
            view = View(connection, projects.require_project(connection, project_id), self._caches)
            return fitting(events.visible_events(view, audience, after, limit))

    def get_event(self, event_id: str) -> Json:
        """Gives one event of whatever project."""
        project_id = self._project_of(event_id, "event")
        with self._database.read() as connection:
            row = get_event(connection, project_id, event_id)
        assert row is not None, "an event's project is noted with it"
        return events.shown_event(row)

    def record_assembly(self, session_key: str, assembly: Mapping[str, Any]) -> Json:
        """Records what a model call was given."""
        project_id = check_project_id(assembly.get("project_id"))
        return self._write(
            project_id, lambda tx: assemblies.shown(assemblies.record(tx, session_key, assembly))
        )

    def list_assemblies(self, session_key: str) -> list[Json]:
        """Gives a session's assemblies, oldest first."""
        with self._database.read() as connection:
            rows = [
                row
                for project_id in lethe_history.list_projects(connection)
                for row in lethe_receipts.list_assemblies(connection, project_id, session_key)
            ]
        rows.sort(key=lambda row: (row.created_at, row.assembly_id))
        return [assemblies.shown(row) for row in rows]

    def get_assembly(self, assembly_id: str) -> Json:
        """Gives one assembly."""
        project_id = self._project_of(assembly_id, "assembly")
        with self._database.read() as connection:
            return assemblies.shown(assemblies.require(connection, project_id, assembly_id))

    def give_feedback(self, assembly_id: str, verdict: str, note: str = "") -> Json:
        """Records a verdict on an assembly."""
        assemblies.check_verdict(verdict, note)
        project_id = self._project_of(assembly_id, "assembly")

        def work(transaction: Transaction) -> Json:
            row = assemblies.require(transaction.connection, project_id, assembly_id)
            lethe_receipts.set_verdict(transaction.connection, project_id, assembly_id, verdict, note)
            return assemblies.shown(replace(row, verdict=verdict, note=note))

        return self._write(project_id, work)

    # redaction

    def redact(self, project_id: str, memory_id: str, *, principal: str, reason: str) -> Json:
        """Erases a memory and its lineage for good, from the file and its log too."""
        row = self._write(project_id, lambda tx: redaction.redact(tx, memory_id, principal, reason))
        self._caches.enter_epoch(project_id, row.seq)
        self._database.scrub()
        return redaction.shown_redaction(row)

    def list_redactions(self, project_id: str, *, after: int = 0, limit: int | None = None) -> list[Json]:
        """Gives the redactions of a project beyond seq `after`, oldest first, all or so many."""
        most = _most(limit)
        with self._view(project_id) as view:
            rows = lethe_redaction.list_redactions(view.connection, project_id, after, most)
            return [redaction.shown_redaction(row) for row in rows]

    # the store itself

    def list_advances(self, project_id: str, *, after: int = 0, limit: int | None = None) -> list[Json]:
        """Gives the protected advances beyond one, oldest first."""
        most = _most(limit)
        with self._view(project_id) as view:
            rows = lethe_receipts.list_advances(view.connection, project_id, after, most)
            return [protected.shown_advance(row) for row in rows]

    def verify(self, project_id: str, progress: Callable[[str, int, int], None] | None = None) -> Json:
        """Recomputes every digest, root, chain and derived row of a project, on one snapshot, past all caches."""
        with self._database.read() as connection:
            project = projects.require_project(connection, project_id)
            return verify_project(connection, project, self._merge_keys(), progress)

    def plan_collection(self, project_id: str) -> Json:
        """Gives how many tree nodes `collect_nodes` would drop; writes nothing."""
        with self._view(project_id) as view:
            return collecting.plan_collection(view).to_json(project_id)

    def collect_nodes(self, project_id: str, *, compact: bool = False) -> Json:
        """Drops the tree nodes between kept states and gives how many; `compact` makes the file smaller by them."""
        found = self._write(project_id, collecting.collect)
        if compact:
            self._database.scrub()
        return found.to_json(project_id)

    def rebuild_nodes(
        self,
        project_id: str,
        changeset_id: str | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> int:
        """Stores the nodes of one changeset's state again, or of all, and counts those whose nodes were dropped."""
        with self._view(project_id) as view:
            names = [changeset_id] if changeset_id else collecting.dropped_changesets(view)
        stored = 0
        for done in range(0, len(names), collecting.BATCH):
            if progress is not None:
                progress("changesets", done, len(names))
            batch = names[done : done + collecting.BATCH]
            stored += self._write(project_id, partial(collecting.store_again, changeset_ids=batch))
        return stored

    def health(self) -> Json:
        """Gives `{status, mode, version}` while the process lives."""
        return {"status": "ok", "mode": MODE, "version": memory_git.__version__}

    def figures(self) -> dict[str, float]:
        """Gives what was counted since the store was opened, by the metrics' names."""
        return self._figures.told()

    def ready(self) -> Json:
        """Gives `{status, mode, engine, schema_version, durability}`, or raises Unavailable."""
        durability = self._database.check()
        return {
            "status": "ok",
            "mode": MODE,
            "engine": self._database.name,
            "schema_version": len(SCHEMA.migrations),
            "durability": durability,
        }

    def backup(self, to_directory: str) -> Json:
        """Writes a consistent copy of the database into a directory of this machine."""
        to = Path(to_directory)
        if not to.is_absolute():
            raise Invalid("bad_path", "the directory to back up into is an absolute path")
        if not to.is_dir():
            raise Invalid("backup_directory", "the directory to back up into is not there: make it first")
        file = to / Path(self._database.place).name
        self._database.backup(file)
        content = file.read_bytes()
        heads = _heads_of_copy(file)
        return {
            "file": file.name,
            "sha256": sha256_hex(content),
            "heads": heads,
            "schema_version": len(SCHEMA.migrations),
            "at": format_time(self._sources.now()),
        }


def _most(limit: int | None) -> int:
    """Gives how many rows a list may have; None means all."""
    return lethe_history.ALL_ROWS if limit is None else history.check_limit(limit, MAX_EVENTS)


def _heads_of_copy(file: Path) -> dict[str, dict[str, str]]:
    """Gives every ref's head in a backup, as it will be read; what reading leaves beside the file is taken away."""
    copy = open_database(file, SCHEMA, read_only=True)
    try:
        with copy.read() as connection:
            return {
                project_id: {
                    row.ref_name: row.head_changeset_id
                    for row in lethe_history.list_refs(connection, project_id)
                }
                for project_id in lethe_history.list_projects(connection)
            }
    finally:
        copy.close()
        for ending in ("-wal", "-shm"):
            file.with_name(file.name + ending).unlink(missing_ok=True)
