"""Proposals, their reviews and merge attempts in charon.db (6-charon, proposals)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any

from memory_git.storage.connection import Connection


@dataclass(frozen=True, slots=True)
class ProposalRow:
    """A proposal as stored. `kept_ref` keeps the head reachable; `candidate` is a cherry-pick made to be judged."""

    project_id: str
    proposal_id: str
    kind: str
    originator: str
    title: str
    message: str
    source_ref: str
    base_changeset_id: str | None
    head_changeset_id: str
    target_ref: str
    target_head_at_creation: str
    selected_ops: tuple[Mapping[str, Any], ...] | None
    status: str
    judged_digest: str
    kept_ref: str
    candidate_changeset_id: str | None
    created_at: str
    updated_at: str
    expires_at: str
    closed_by: str | None = None
    merged_changeset_id: str | None = None
    attestation_changeset_id: str | None = None
    followed_up: bool = False


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """A review as stored, its text included."""

    review_id: str
    reviewer: str
    reviewer_kind: str
    verdict: str
    comment: str
    findings: tuple[Mapping[str, Any], ...]
    severity: str | None
    judged_digest: str
    counts_for: str
    created_at: str


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One signed authorization and what became of it: intended, landed or failed."""

    project_id: str
    proposal_id: str
    nonce: str
    merger: str
    reviewer: str
    strategy: str
    expected_head: str
    new_head: str
    state: str
    created_at: str
    expires_at: str


_PROPOSAL = ", ".join(item.name for item in fields(ProposalRow))
_ATTEMPT = ", ".join(item.name for item in fields(AttemptRow))
_REVIEW = ", ".join(item.name for item in fields(ReviewRow))
_CHANGEABLE = frozenset(item.name for item in fields(ProposalRow)) - {
    "project_id",
    "proposal_id",
    "created_at",
}


def add(connection: Connection, row: ProposalRow) -> bool:
    """Stores a proposal, findable by its id alone; False when there is one of that id."""
    values = [_stored(value) for value in (getattr(row, item.name) for item in fields(row))]
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO proposal ({_PROPOSAL}) VALUES ({marks}) ON CONFLICT DO NOTHING", values)
    added = connection.changes() == 1
    connection.execute(
        "INSERT INTO object_project (id, project_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (row.proposal_id, row.project_id),
    )
    return added


def project_of(connection: Connection, proposal_id: str) -> str | None:
    """Gives the project of a proposal."""
    found = connection.value("SELECT project_id FROM object_project WHERE id = ?", (proposal_id,))
    return None if found is None else str(found)


def get(connection: Connection, project_id: str, proposal_id: str) -> ProposalRow | None:
    """Gives one proposal."""
    found = connection.row(
        f"SELECT {_PROPOSAL} FROM proposal WHERE project_id = ? AND proposal_id = ?",
        (project_id, proposal_id),
    )
    return _proposal(found) if found else None


def open_of_head(
    connection: Connection, project_id: str, target_ref: str, head_changeset_id: str
) -> list[ProposalRow]:
    """Gives the open proposals of one head for one target, oldest first."""
    rows = connection.rows(
        f"SELECT {_PROPOSAL} FROM proposal WHERE project_id = ? "
        "AND status IN ('pending', 'approved', 'changes_requested') "
        "AND target_ref = ? AND head_changeset_id = ? ORDER BY proposal_id",
        (project_id, target_ref, head_changeset_id),
    )
    return [_proposal(row) for row in rows]


def page(
    connection: Connection, project_id: str, statuses: tuple[str, ...], limit: int, before: str | None
) -> list[ProposalRow]:
    """Gives proposals of some statuses, newest first, those before an id."""
    marks = ", ".join("?" * len(statuses))
    rows = connection.rows(
        f"SELECT {_PROPOSAL} FROM proposal WHERE project_id = ? AND status IN ({marks}) "
        "AND (CAST(? AS TEXT) IS NULL OR proposal_id < ?) ORDER BY proposal_id DESC LIMIT ?",
        (project_id, *statuses, before, before, limit),
    )
    return [_proposal(row) for row in rows]


def unfinished(connection: Connection) -> list[ProposalRow]:
    """Gives the closed proposals of all projects whose follow-up in the store isn't done."""
    rows = connection.rows(
        f"SELECT {_PROPOSAL} FROM proposal WHERE followed_up = 0 "
        "AND status IN ('merged', 'rejected', 'canceled', 'expired') ORDER BY project_id, proposal_id"
    )
    return [_proposal(row) for row in rows]


def overdue(connection: Connection, now: str) -> list[ProposalRow]:
    """Gives the open proposals of all projects whose time is over."""
    rows = connection.rows(
        f"SELECT {_PROPOSAL} FROM proposal WHERE status IN ('pending', 'approved', 'changes_requested') "
        "AND expires_at <= ? ORDER BY project_id, proposal_id",
        (now,),
    )
    return [_proposal(row) for row in rows]


def change(connection: Connection, row: ProposalRow, only_from: tuple[str, ...], **changes: Any) -> bool:
    """Sets fields of a proposal if its status is still one of `only_from`; says whether it was."""
    unknown = changes.keys() - _CHANGEABLE
    if unknown:
        raise TypeError(f"a proposal has no changeable {sorted(unknown)}")
    sets = ", ".join(f"{name} = ?" for name in changes)
    marks = ", ".join("?" * len(only_from))
    connection.execute(
        f"UPDATE proposal SET {sets} WHERE project_id = ? AND proposal_id = ? AND status IN ({marks})",
        [*map(_stored, changes.values()), row.project_id, row.proposal_id, *only_from],
    )
    return connection.changes() == 1


def add_review(connection: Connection, project_id: str, proposal_id: str, row: ReviewRow) -> None:
    """Stores a review after those there are."""
    values = [_stored(getattr(row, item.name)) for item in fields(row)]
    marks = ", ".join("?" * len(values))
    connection.execute(
        f"INSERT INTO review (project_id, proposal_id, place, {_REVIEW}) "
        f"SELECT ?, ?, count(*), {marks} FROM review WHERE project_id = ? AND proposal_id = ?",
        [project_id, proposal_id, *values, project_id, proposal_id],
    )


def reviews(connection: Connection, project_id: str, proposal_id: str) -> list[ReviewRow]:
    """Gives a proposal's reviews, in the order they were made."""
    rows = connection.rows(
        f"SELECT {_REVIEW} FROM review WHERE project_id = ? AND proposal_id = ? ORDER BY place",
        (project_id, proposal_id),
    )
    return [_review(row) for row in rows]


def carry_reviews(connection: Connection, row: ProposalRow, judged: str, now_judged: str) -> int:
    """Lets the reviews that count for one judged digest count for another; gives how many."""
    connection.execute(
        "UPDATE review SET counts_for = ? WHERE project_id = ? AND proposal_id = ? AND counts_for = ?",
        (now_judged, row.project_id, row.proposal_id, judged),
    )
    return connection.changes()


def add_attempt(connection: Connection, row: AttemptRow) -> None:
    """Stores a merge attempt."""
    connection.execute(
        f"INSERT INTO merge_attempt ({_ATTEMPT}) VALUES ({', '.join('?' * len(fields(row)))})", astuple(row)
    )


def settle_attempt(connection: Connection, row: AttemptRow, state: str) -> bool:
    """Notes what became of an intended attempt; False when that was known."""
    connection.execute(
        "UPDATE merge_attempt SET state = ? "
        "WHERE project_id = ? AND proposal_id = ? AND nonce = ? AND state = 'intended'",
        (state, row.project_id, row.proposal_id, row.nonce),
    )
    return connection.changes() == 1


def attempts(connection: Connection, project_id: str, proposal_id: str) -> list[AttemptRow]:
    """Gives a proposal's merge attempts, oldest first."""
    rows = connection.rows(
        f"SELECT {_ATTEMPT} FROM merge_attempt WHERE project_id = ? AND proposal_id = ? ORDER BY created_at, nonce",
        (project_id, proposal_id),
    )
    return [AttemptRow(*row) for row in rows]


def intended_attempts(connection: Connection) -> list[AttemptRow]:
    """Gives the attempts of all projects of which nobody knows yet what became."""
    rows = connection.rows(
        f"SELECT {_ATTEMPT} FROM merge_attempt WHERE state = 'intended' ORDER BY project_id, created_at, nonce"
    )
    return [AttemptRow(*row) for row in rows]


def is_under_way(connection: Connection, project_id: str, proposal_id: str) -> bool:
    """Decides whether an authorization of a proposal may have been signed of which nobody knows yet what became."""
    found = connection.value(
        "SELECT 1 FROM merge_attempt WHERE project_id = ? AND proposal_id = ? AND state = 'intended' LIMIT 1",
        (project_id, proposal_id),
    )
    return found is not None


def answer_of(
    connection: Connection, project_id: str, principal_id: str, route: str, key: str
) -> tuple[str, str] | None:
    """Gives the request digest and the answer that an idempotency key stands for."""
    found = connection.row(
        "SELECT request_digest, answer FROM request_key "
        "WHERE project_id = ? AND principal_id = ? AND route = ? AND idempotency_key = ?",
        (project_id, principal_id, route, key),
    )
    return (found[0], found[1]) if found else None


def keep_answer(
    connection: Connection,
    project_id: str,
    principal_id: str,
    *,
    route: str,
    key: str,
    request_digest: str,
    answer: str,
) -> tuple[str, str]:
    """Keeps what an idempotency key stands for, unless it stands for something; gives what it stands for now."""
    connection.execute(
        "INSERT INTO request_key (project_id, principal_id, route, idempotency_key, request_digest, answer) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (project_id, principal_id, route, key, request_digest, answer),
    )
    return answer_of(connection, project_id, principal_id, route, key) or (request_digest, answer)


def policy(connection: Connection, project_id: str) -> dict[str, Any] | None:
    """Gives a project's policy as it was set, or None."""
    found = connection.value("SELECT policy FROM project_policy WHERE project_id = ?", (project_id,))
    return None if found is None else dict(json.loads(found))


def set_policy(
    connection: Connection, project_id: str, values: Mapping[str, Any], principal_id: str, at: str
) -> None:
    """Sets a project's policy."""
    connection.execute(
        "INSERT INTO project_policy (project_id, policy, updated_by, updated_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (project_id) DO UPDATE SET policy = excluded.policy, updated_by = excluded.updated_by, "
        "updated_at = excluded.updated_at",
        (project_id, json.dumps(dict(values), sort_keys=True), principal_id, at),
    )


def _stored(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, tuple | list):
        return json.dumps([dict(item) for item in value], ensure_ascii=False, sort_keys=True)
    return value


def _proposal(row: tuple[Any, ...]) -> ProposalRow:
    values = dict(zip((item.name for item in fields(ProposalRow)), row, strict=True))
    selected = values["selected_ops"]
    values["selected_ops"] = None if selected is None else tuple(json.loads(selected))
    values["followed_up"] = bool(values["followed_up"])
    return ProposalRow(**values)


def _review(row: tuple[Any, ...]) -> ReviewRow:
    values = dict(zip((item.name for item in fields(ReviewRow)), row, strict=True))
    return ReviewRow(**{**values, "findings": tuple(json.loads(values["findings"]))})
