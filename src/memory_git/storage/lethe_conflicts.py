"""SQL of stored conflicts and the proposals that meet them."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from memory_git.storage.connection import Connection

_CONFLICT = "project_id, conflict_id, identity_digest, body, body_digest, status, outcome, resolution_note, resolved_by, created_at, updated_at"


@dataclass(frozen=True, slots=True)
class ConflictRow:
    """One stored conflict; `body` is the canonical JSON that `detect` gave, without summaries."""

    project_id: str
    conflict_id: str
    identity_digest: str
    body: bytes
    body_digest: str
    status: str
    outcome: str | None
    resolution_note: str | None
    resolved_by: str | None
    created_at: str
    updated_at: str


def get_conflict(connection: Connection, project_id: str, conflict_id: str) -> ConflictRow | None:
    """Gives a conflict, or None."""
    found = connection.row(
        f"SELECT {_CONFLICT} FROM conflict WHERE project_id = ? AND conflict_id = ?",
        (project_id, conflict_id),
    )
    return ConflictRow(*found) if found else None


def resolution_of(connection: Connection, project_id: str, identity_digest: str) -> ConflictRow | None:
    """Gives the newest resolved conflict of the same identity and record digests, or None."""
    found = connection.row(
        f"SELECT {_CONFLICT} FROM conflict WHERE project_id = ? AND identity_digest = ? AND resolved_by IS NOT NULL"
        " ORDER BY updated_at DESC, conflict_id LIMIT 1",
        (project_id, identity_digest),
    )
    return ConflictRow(*found) if found else None


def conflicts_of_identity(connection: Connection, project_id: str, identity_digest: str) -> list[ConflictRow]:
    """Gives every conflict of the same identity and record digests."""
    rows = connection.rows(
        f"SELECT {_CONFLICT} FROM conflict WHERE project_id = ? AND identity_digest = ? ORDER BY conflict_id",
        (project_id, identity_digest),
    )
    return [ConflictRow(*row) for row in rows]


def list_conflicts(
    connection: Connection, project_id: str, status: str | None, proposal_id: str | None
) -> list[ConflictRow]:
    """Gives the conflicts of a project, of a status, of a proposal, by id."""
    sql = f"SELECT {_CONFLICT} FROM conflict WHERE project_id = ?"
    params: list[str] = [project_id]
    if status is not None:
        sql += " AND status = ?"
        params.append(status)
    if proposal_id is not None:
        sql += " AND conflict_id IN (SELECT conflict_id FROM conflict_proposal WHERE project_id = ? AND proposal_id = ?)"
        params += [project_id, proposal_id]
    return [ConflictRow(*row) for row in connection.rows(sql + " ORDER BY conflict_id", params)]


def open_conflicts(connection: Connection, project_id: str) -> list[ConflictRow]:
    """Gives the open conflicts of a project, by id, at a cost that does not grow with the closed ones."""
    rows = connection.rows(
        f"SELECT {_CONFLICT} FROM conflict INDEXED BY conflict_by_status WHERE project_id = ? AND status = 'open'",
        (project_id,),
    )
    return sorted((ConflictRow(*row) for row in rows), key=lambda row: row.conflict_id)


def put_conflict(connection: Connection, row: ConflictRow) -> None:
    """Inserts a conflict."""
    connection.execute("INSERT INTO conflict VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(row))


def set_conflict_status(connection: Connection, row: ConflictRow) -> None:
    """Writes a conflict's status, outcome and resolution."""
    connection.execute(
        "UPDATE conflict SET status = ?, outcome = ?, resolution_note = ?, resolved_by = ?, updated_at = ?"
        " WHERE project_id = ? AND conflict_id = ?",
        (
            row.status,
            row.outcome,
            row.resolution_note,
            row.resolved_by,
            row.updated_at,
            row.project_id,
            row.conflict_id,
        ),
    )


def bind(connection: Connection, project_id: str, proposal_id: str, conflict_id: str) -> None:
    """Notes that a proposal meets a conflict."""
    connection.execute(
        "INSERT INTO conflict_proposal VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (project_id, proposal_id, conflict_id),
    )


def unbind(connection: Connection, project_id: str, proposal_id: str, conflict_id: str) -> None:
    """Takes a proposal off a conflict."""
    connection.execute(
        "DELETE FROM conflict_proposal WHERE project_id = ? AND proposal_id = ? AND conflict_id = ?",
        (project_id, proposal_id, conflict_id),
    )


def bound_to_nothing(connection: Connection, project_id: str) -> list[str]:
    """Gives the ids that proposals meet and that no conflict has."""
    rows = connection.rows(
        "SELECT DISTINCT conflict_id FROM conflict_proposal WHERE project_id = ? AND conflict_id NOT IN"
        " (SELECT conflict_id FROM conflict WHERE project_id = ?) ORDER BY conflict_id",
        (project_id, project_id),
    )
    return [name for (name,) in rows]


def proposals_of(connection: Connection, project_id: str, conflict_id: str) -> list[str]:
    """Gives the proposals that meet a conflict, sorted."""
    rows = connection.rows(
        "SELECT proposal_id FROM conflict_proposal WHERE project_id = ? AND conflict_id = ? ORDER BY proposal_id",
        (project_id, conflict_id),
    )
    return [name for (name,) in rows]


def erase(connection: Connection, project_id: str, conflict_ids: list[str]) -> None:
    """Erases conflicts with what proposals met of them."""
    for table in ("conflict", "conflict_proposal"):
        connection.execute_many(
            f"DELETE FROM {table} WHERE project_id = ? AND conflict_id = ?",
            [(project_id, conflict_id) for conflict_id in conflict_ids],
        )
