"""Checks of what is derived: claims, words, the look-up of objects; each is rebuilt and compared (5-lethe, verify)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from memory_git.domain.conflicts import claims_of
from memory_git.domain.record import Record
from memory_git.domain.state_root import memory_key
from memory_git.domain.trie import Entry
from memory_git.domain.words import words
from memory_git.lethe import events
from memory_git.lethe.report import Report
from memory_git.lethe.session import View
from memory_git.lethe.transaction import indexed_text
from memory_git.storage import lethe_history, lethe_receipts, lethe_states
from memory_git.storage.lethe_schema import row_range

_BATCH = 1_000


def check_versions_indexed(view: View, report: Report) -> None:
    """Rebuilds the claims and the words of every version, and compares."""
    claims: set[tuple[int, int]] = set()
    rows_of: defaultdict[str, set[int]] = defaultdict(set)
    for row, record in _versions(view, report):
        claims |= {(lethe_states.claim_key(claim), row) for claim in claims_of(record)}
        for word in words(indexed_text(record)) if record.is_active else ():
            rows_of[word].add(row)
    found = set(lethe_states.claims_of_version(view.connection, view.project_id))
    for _, version in sorted(found ^ claims):
        report.fault("claim", version, "the claim index is not what the versions make")
    for word, rows in sorted(rows_of.items()):
        with report.each("indexed word", word):
            indexed = lethe_states.versions_with_word(
                view.connection, view.project_id, view.project.number, word
            )
            for version in sorted(rows ^ set(indexed)):
                report.fault("version_words", version, "the word index is not what the versions make")


def _versions(view: View, report: Report) -> Iterator[tuple[int, Record]]:
    last = row_range(view.project.number)[0] - 1
    while page := lethe_states.all_versions(
        view.connection, view.project_id, view.project.number, last, _BATCH
    ):
        for row in page:
            with report.each("indexed version", row.id):
                entry = Entry(memory_key(row.memory_id), row.record_digest, row.id, 0, 0, 0)
                yield row.id, view.record(entry)
        last = page[-1].id


def check_objects(view: View, report: Report) -> None:
    """Rebuilds the look-up of the project that an object belongs to, and compares."""
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
