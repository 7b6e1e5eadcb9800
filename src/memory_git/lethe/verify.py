"""`lethe verify-chain`: everything recomputed from what was written, on one snapshot, past every cache (5-lethe, verify).

In this order: events, changesets with their states recomputed from the ops by the one projector, refs and logs, manifests, advances,
conflicts, assemblies, and last the derived tables. Each fault names its object. What is covered and what is not: FORMAT §11.
"""

from __future__ import annotations

from typing import Any

from memory_git.domain import chain
from memory_git.domain.canonical import decode
from memory_git.domain.changeset import salted_digest
from memory_git.domain.envelope import MergeKeys
from memory_git.lethe import events
from memory_git.lethe.caches import Caches
from memory_git.lethe.rebuilding import make_anew
from memory_git.lethe.redaction import redaction_view
from memory_git.lethe.replay import Replay
from memory_git.lethe.report import Progress, Report
from memory_git.lethe.session import View
from memory_git.lethe.verify_indexes import check_objects, check_versions_indexed
from memory_git.lethe.verify_rows import (
    check_advances,
    check_assemblies,
    check_conflicts,
    check_manifests,
    check_refs,
)
from memory_git.storage import lethe_redaction
from memory_git.storage.connection import Connection
from memory_git.storage.lethe_history import ProjectRow


def verify_project(
    connection: Connection, project: ProjectRow, keys: MergeKeys | None, progress: Progress | None
) -> dict[str, Any]:
    """Gives `{ok, project_id, checked: {kind: count}, faults: [{kind, object_id, why}]}`."""
    report = Report(progress or (lambda *_: None))
    view = View(connection, project, Caches(2**62, make_anew))
    redacted = _check_redactions(view, report)
    _check_events(view, redacted, report)
    Replay(view, redacted, report).run()
    for check in (check_refs, check_manifests, check_conflicts, check_assemblies):
        check(view, report)
    check_advances(view, keys, report)
    check_versions_indexed(view, report)
    check_objects(view, report)
    return {
        "ok": not report.faults,
        "project_id": project.project_id,
        "checked": dict(sorted(report.checked.items())),
        "faults": report.faults,
    }


def _check_redactions(view: View, report: Report) -> set[str]:
    """Checks the chain of redactions, and gives the memories that they erased."""
    previous = None
    named: dict[str, int] = {}
    for place, row in enumerate(lethe_redaction.list_redactions(view.connection, view.project_id), 1):
        with report.each("redaction", row.redaction_id):
            linked = chain.link(previous, redaction_view(row))
            same = linked == row.redaction_digest and row.seq == place
            report.expect(same, "redaction", row.redaction_id, "the chain does not agree")
            named |= dict.fromkeys(decode(row.memory_ids), row.seq)
        previous = row.redaction_digest
    found = lethe_redaction.redacted_memories(view.connection, view.project_id)
    for memory_id, _ in sorted(found.items() ^ named.items()):
        report.fault("redacted_memory", memory_id, "does not agree with the redactions")
    return set(found)


def _check_events(view: View, redacted: set[str], report: Report) -> None:
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
