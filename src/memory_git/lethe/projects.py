"""Projects and their beginning: the root changeset, the frozen baseline, the protected shared ref (5-lethe, legacy baseline)."""

from __future__ import annotations

from dataclasses import replace

from memory_git.domain import trie
from memory_git.domain.changeset import CreateRequest
from memory_git.domain.errors import NotFound
from memory_git.domain.ids import SHARED_MAIN, check_project_id
from memory_git.domain.projector import Applied
from memory_git.domain.times import format_time
from memory_git.domain.trie import EMPTY, Entry
from memory_git.lethe import events
from memory_git.lethe.caches import Caches
from memory_git.lethe.commits import write_changeset
from memory_git.lethe.feed import Feed
from memory_git.lethe.refs import create_ref
from memory_git.lethe.sources import Sources
from memory_git.lethe.transaction import Transaction
from memory_git.storage import lethe_events, lethe_history
from memory_git.storage.connection import Connection
from memory_git.storage.lethe_history import ChangesetRow, ProjectRow

ROOT_KEY = "legacy-root"
ROOT_AUTHOR = "system"


def require_project(connection: Connection, project_id: str) -> ProjectRow:
    """Gives a project that Memory Git is used in, or raises NotFound `project_not_found`."""
    check_project_id(project_id)
    return connection.recall(("project", project_id), lambda: _read_project(connection, project_id))


def _read_project(connection: Connection, project_id: str) -> ProjectRow:
    found = lethe_history.get_project(connection, project_id)
    if found is None or found.root_changeset_id is None:
        raise NotFound(
            "project_not_found", "no such project: `charon project init` or `memory_repo_init` makes one"
        )
    return found


def known_project(connection: Connection, project_id: str, sources: Sources) -> ProjectRow:
    """Gives a project, made if absent: events may come before Memory Git is used."""
    check_project_id(project_id)
    found = lethe_history.get_project(connection, project_id)
    if found is None:
        number = lethe_history.next_project_number(connection)
        found = ProjectRow(project_id, number, None, 0, sources.new_salt(), format_time(sources.now()))
        lethe_history.put_project(connection, found)
    return found


def init_project(
    connection: Connection, project_id: str, caches: Caches, sources: Sources, feed: Feed
) -> ProjectRow:
    """Makes a project's root over the events so far, and its protected shared ref; repeatable."""
    project = known_project(connection, project_id, sources)
    if project.root_changeset_id is not None:
        return project
    last = lethe_events.last_event(connection, project_id)
    project = replace(project, baseline_seq=last.seq if last else 0)
    transaction = Transaction(connection, project, caches, sources)
    row = _write_root(transaction)
    project = replace(project, root_changeset_id=row.changeset_id)
    lethe_history.set_root(connection, project)
    connection.forget()
    create_ref(transaction, feed, SHARED_MAIN, row.changeset_id, ROOT_AUTHOR, protected=True, reason="root")
    return project


def _write_root(transaction: Transaction) -> ChangesetRow:
    changeset_row = transaction.next_row("changeset")
    entries: dict[bytes, Entry | None] = {}
    for event in events.all_events(transaction, transaction.project.baseline_seq):
        entry = transaction.add_version(events.baseline_record(event), changeset_row, None, None, None)
        entries[entry.key] = entry
    memories = trie.put_many(transaction, EMPTY, entries)
    transaction.flush((memories, EMPTY))
    request = root_request(transaction.project_id)
    return write_changeset(transaction, request, [], Applied(), (memories, EMPTY), changeset_row).row


def root_request(project_id: str) -> CreateRequest:
    """Gives the request that a root changeset stands for."""
    return CreateRequest(
        project_id=project_id,
        ref_name=SHARED_MAIN,
        parent_ids=(),
        author_principal=ROOT_AUTHOR,
        message="Root: the events that were there before Memory Git",
        idempotency_key=ROOT_KEY,
        ops=(),
        optional={},
        evidence=(),
        verification=(),
        expected_head=None,
        advance_ref=False,
        create_ref_if_missing=False,
        faults=(),
    )
