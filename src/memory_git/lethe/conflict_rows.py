"""Stored conflicts: bound to proposals, resolved, carried over, retired (4-history, conflicts, lifecycle).

open → resolved | rejected | superseded | canceled. A resolution carries over to every row of the same type, identity and record digests
of both sides, also when the heads have moved. A row that another open proposal meets stays open when one proposal lets go of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memory_git.domain.canonical import canonical_bytes, decode, sha256_hex
from memory_git.domain.conflicts import BLOCKING, OUTCOMES
from memory_git.domain.diff import shorten
from memory_git.domain.errors import Clash, Invalid, NotAllowed, NotFound
from memory_git.domain.policy import Audience
from memory_git.domain.times import format_time
from memory_git.lethe.authorship import authors_of_sides
from memory_git.lethe.feed import Feed
from memory_git.lethe.meeting import Meeting, meet
from memory_git.lethe.session import StoredState, View, admits
from memory_git.lethe.transaction import Transaction
from memory_git.storage import lethe_conflicts
from memory_git.storage.lethe_conflicts import ConflictRow

CLOSING_STATUSES = ("canceled", "rejected", "superseded")


def shown_conflicts(meeting: Meeting, project_id: str) -> list[dict[str, Any]]:
    """Gives what was found between two heads, in the wire form, sorted by id."""
    found = [
        item.to_json(project_id, meeting.base, meeting.left, meeting.right) for item in meeting.conflicts
    ]
    return sorted(found, key=lambda item: item["conflict_id"])


def shown_row(view: View, row: ConflictRow) -> dict[str, Any]:
    """Gives a stored conflict in the wire form."""
    return {
        **_with_summaries(view, decode(row.body)),
        "status": row.status,
        "outcome": row.outcome,
        "resolution_note": row.resolution_note,
        "resolved_by": row.resolved_by,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "proposal_ids": lethe_conflicts.proposals_of(view.connection, view.project_id, row.conflict_id),
    }


def _with_summaries(view: View, body: dict[str, Any]) -> dict[str, Any]:
    """Renders the parties' summaries from the records at the heads: a stored conflict holds ids and digests, no text."""
    for side in ("left", "right"):
        state = StoredState(view, view.roots(body[f"{side}_changeset_id"]))
        for party in body[side]:
            record = state.plain_record(party["memory_id"]) if party["memory_id"] else None
            party["summary"] = shorten(record.summary or record.title or record.content) if record else ""
    return body


def _without_text(item: Mapping[str, Any]) -> dict[str, Any]:
    sides = {side: [{**party, "summary": ""} for party in item[side]] for side in ("left", "right")}
    return {**item, **sides}


def list_conflicts(
    view: View, status: str | None, proposal_id: str | None, limit: int, audience: Audience | None
) -> list[dict[str, Any]]:
    """Gives stored conflicts whose memories the audience may see, by id; filtered before the limit."""
    rows = lethe_conflicts.list_conflicts(view.connection, view.project_id, status, proposal_id)
    shown = (shown_row(view, row) for row in rows)
    return [item for item in shown if audience is None or _is_shown(view, item, audience)][:limit]


def open_conflicts(
    view: View, concerns: Callable[[Mapping[str, Any]], bool], audience: Audience | None
) -> list[dict[str, Any]]:
    """Gives the open conflicts with a party that concerns, and whose memories the audience may see, by id."""
    rows = lethe_conflicts.open_conflicts(view.connection, view.project_id)
    shown = [shown_row(view, row) for row in rows if any(map(concerns, _parties(decode(row.body))))]
    return [item for item in shown if audience is None or _is_shown(view, item, audience)]


def _parties(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (*body["left"], *body["right"])


def _is_shown(view: View, shown: Mapping[str, Any], audience: Audience) -> bool:
    states = [StoredState(view, view.roots(shown[f"{side}_changeset_id"])) for side in ("left", "right")]
    for memory_id in shown["memory_ids"]:
        records = [record for state in states if (record := state.plain_record(memory_id)) is not None]
        if not all(admits(record, audience) for record in records):
            return False
    return True


def persist(
    transaction: Transaction, feed: Feed, proposal_id: str, found: Sequence[Mapping[str, Any]]
) -> int:
    """Stores conflicts, each once, and binds them to a proposal; gives how many the proposal now meets.

    What is stored is what the store itself finds between the named heads: a finding that is handed in is only a name.
    """
    at = format_time(transaction.sources.now())
    again = _FoundAgain(transaction)
    for item in found:
        row = _row_of(transaction, again.of(item), at)
        known = lethe_conflicts.get_conflict(transaction.connection, transaction.project_id, row.conflict_id)
        if known is None:
            lethe_conflicts.put_conflict(transaction.connection, row)
            _announce(transaction, feed, row, proposal_id)
        elif known.status in CLOSING_STATUSES:
            reopened = replace(row, created_at=known.created_at)
            lethe_conflicts.set_conflict_status(transaction.connection, reopened)
        lethe_conflicts.bind(transaction.connection, transaction.project_id, proposal_id, row.conflict_id)
    return len(found)


class _FoundAgain:
    """Finds conflicts anew, each pair of heads compared once: from their common ancestors, and from a declared base."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._found: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}

    def of(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """Gives the conflict that an item names, or raises Invalid `bad_conflict` when there is none."""
        names = ("conflict_id", "base_changeset_id", "left_changeset_id", "right_changeset_id")
        if item.get("project_id") != self._view.project_id or not all(
            isinstance(item.get(name), str) for name in names
        ):
            raise Invalid("bad_conflict", "a conflict is persisted as `detect` gave it, in its own project")
        conflict_id, base, left, right = (item[name] for name in names)
        for name in (base, left, right):
            self._view.changeset(name)
        for heads in ((left, right), (left, right, base)):
            if heads not in self._found:
                shown = shown_conflicts(meet(self._view, *heads), self._view.project_id)
                self._found[heads] = {found["conflict_id"]: found for found in shown}
            if conflict_id in self._found[heads]:
                return self._found[heads][conflict_id]
        raise Invalid("bad_conflict", "no such conflict is found between the named heads")


def _row_of(transaction: Transaction, item: Mapping[str, Any], at: str) -> ConflictRow:
    """Gives the row of a finding, resolved already when an equal one was."""
    earlier = lethe_conflicts.resolution_of(
        transaction.connection, transaction.project_id, item["identity_digest"]
    )
    body = canonical_bytes(_without_text(item))
    row = ConflictRow(
        project_id=transaction.project_id,
        conflict_id=item["conflict_id"],
        identity_digest=item["identity_digest"],
        body=body,
        body_digest=sha256_hex(body),
        status="open",
        outcome=None,
        resolution_note=None,
        resolved_by=None,
        created_at=at,
        updated_at=at,
    )
    if earlier is None:
        return row
    return replace(
        row,
        status="resolved",
        outcome=earlier.outcome,
        resolution_note=earlier.resolution_note,
        resolved_by=earlier.resolved_by,
    )


def _announce(transaction: Transaction, feed: Feed, row: ConflictRow, proposal_id: str) -> None:
    conflict_type = decode(row.body)["conflict_type"]

    def publish() -> None:
        feed.publish(
            "conflict_opened",
            row.project_id,
            conflict_id=row.conflict_id,
            conflict_type=conflict_type,
            proposal_id=proposal_id,
        )

    if row.status == "open":
        transaction.connection.after_commit(publish)


def retire(transaction: Transaction, proposal_id: str, status: str) -> int:
    """Lets a proposal go of its open conflicts; one that no other proposal meets gets the status. Gives how many."""
    if status not in CLOSING_STATUSES:
        raise Invalid("bad_status", f"a proposal's conflicts end as one of {', '.join(CLOSING_STATUSES)}")
    connection, project_id = transaction.connection, transaction.project_id
    rows = lethe_conflicts.list_conflicts(connection, project_id, "open", proposal_id)
    at = format_time(transaction.sources.now())
    for row in rows:
        others = [
            name
            for name in lethe_conflicts.proposals_of(connection, project_id, row.conflict_id)
            if name != proposal_id
        ]
        if others:
            lethe_conflicts.unbind(connection, project_id, proposal_id, row.conflict_id)
        else:
            lethe_conflicts.set_conflict_status(connection, replace(row, status=status, updated_at=at))
    return len(rows)


def resolve(
    transaction: Transaction, conflict_id: str, *, outcome: str, resolution_note: str, principal: str
) -> ConflictRow:
    """Records how a conflict was settled, by whoever wrote neither side; all rows of the same identity follow."""
    if outcome not in OUTCOMES:
        raise Invalid("bad_outcome", f"an outcome is one of {', '.join(OUTCOMES)}")
    if not resolution_note.strip():
        raise Invalid("reason_needed", "say why the conflict is settled so")
    connection, project_id = transaction.connection, transaction.project_id
    row = lethe_conflicts.get_conflict(connection, project_id, conflict_id)
    if row is None:
        raise NotFound("conflict_not_found", "no such conflict in this project")
    if row.status != "open":
        raise Clash("conflict_closed", f"the conflict is {row.status}", conflict_status=row.status)
    if principal in authors_of_sides(transaction, decode(row.body)):
        raise NotAllowed("denied", "denied: who wrote a side does not settle its conflict")
    settled = replace(
        row,
        status="resolved",
        outcome=outcome,
        resolution_note=resolution_note,
        resolved_by=principal,
        updated_at=format_time(transaction.sources.now()),
    )
    for other in lethe_conflicts.conflicts_of_identity(connection, project_id, row.identity_digest):
        if other.status == "open":
            lethe_conflicts.set_conflict_status(connection, replace(settled, conflict_id=other.conflict_id))
    return settled


def is_resolved(view: View, shown: Mapping[str, Any]) -> bool:
    """Decides whether somebody has resolved a conflict that was found, at these heads or at others."""
    return (
        lethe_conflicts.resolution_of(view.connection, view.project_id, shown["identity_digest"]) is not None
    )


def unresolved_blocking(view: View, meeting: Meeting) -> list[dict[str, Any]]:
    """Gives the blocking conflicts of a merge into left that nobody has settled: of both sides, or of right's own doing."""
    found = []
    for conflict in meeting.conflicts:
        if conflict.severity != BLOCKING or conflict.identity.get("side") == "left":
            continue
        settled = lethe_conflicts.resolution_of(view.connection, view.project_id, conflict.identity_digest())
        if settled is None:
            found.append(conflict.to_json(view.project_id, meeting.base, meeting.left, meeting.right))
    return found
