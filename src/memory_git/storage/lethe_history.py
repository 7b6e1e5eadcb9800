"""SQL of projects, refs and their logs, changesets and ops."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from typing import NamedTuple

from memory_git.storage.connection import Connection
from memory_git.storage.lethe_schema import row_range


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """A project: its number names the range of its rows; events up to `baseline_seq` are its legacy baseline.

    `root_changeset_id` is None while there are only events, and Memory Git was not used yet. `cursor_salt` is never served:
    a cursor is signed under it, so that nobody makes one up.
    """

    project_id: str
    number: int
    root_changeset_id: str | None
    baseline_seq: int
    cursor_salt: str
    created_at: str


class RefRow(NamedTuple):
    """A ref and its head."""

    project_id: str
    ref_name: str
    head_changeset_id: str
    protected: int
    version: int
    created_at: str
    updated_at: str
    updated_by: str


class RefMove(NamedTuple):
    """A row of a ref's own hash-chained log."""

    project_id: str
    ref_name: str
    seq: int
    from_head: str | None
    to_head: str
    principal: str
    reason: str
    at: str
    digest: str


class ChangesetRow(NamedTuple):
    """A changeset as stored; text and salts are None once redacted."""

    id: int
    project_id: str
    changeset_id: str
    parent_ids: str
    ref_name: str
    author_principal: str
    idempotency_key: str
    authored_view: bytes
    message: str | None
    message_salt: str | None
    evidence: bytes | None
    evidence_salt: str | None
    verification: bytes | None
    verification_salt: str | None
    created_at: str
    state_root: str
    memories_row: int
    memories_digest: bytes
    memories_count: int
    edges_row: int
    edges_digest: bytes
    edges_count: int
    authored_digest: str
    integrity_digest: str
    digest_version: int
    author_signature: str | None
    request_digest: str

    @property
    def parents(self) -> tuple[str, ...]:
        """Gives the parents' ids, in their order."""
        return tuple(self.parent_ids.split())


class StateRow(NamedTuple):
    """Where the state of a stored changeset is: the part of its row that is small, whatever the changeset holds."""

    id: int
    changeset_id: str
    parent_ids: str
    state_root: str
    memories_row: int
    memories_digest: bytes
    memories_count: int
    edges_row: int
    edges_digest: bytes
    edges_count: int

    @property
    def parents(self) -> tuple[str, ...]:
        """Gives the parents' ids, in their order."""
        return tuple(self.parent_ids.split())


class OpRow(NamedTuple):
    """An op as stored; payload and salt are None once redacted. `visibility`, `owner_principal`: who may see it."""

    project_id: str
    changeset_row: int
    ordinal: int
    op_type: str
    target_event_id: str | None
    resulting_event_id: str | None
    payload: bytes | None
    salt: str | None
    op_digest: str
    visibility: str
    owner_principal: str


def _insertion(table: str, names: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


ALL_ROWS = 2**53
"""A limit that is none."""
_PROJECT = ", ".join(item.name for item in fields(ProjectRow))
_REF, _MOVE = ", ".join(RefRow._fields), ", ".join(RefMove._fields)
_CHANGESET, _STATE, _OP = (
    ", ".join(ChangesetRow._fields),
    ", ".join(StateRow._fields),
    ", ".join(OpRow._fields),
)
_INSERT_REF, _INSERT_MOVE = _insertion("ref", RefRow._fields), _insertion("ref_log", RefMove._fields)
_INSERT_CHANGESET, _INSERT_OP = _insertion("changeset", ChangesetRow._fields), _insertion("op", OpRow._fields)


# projects


def get_project(connection: Connection, project_id: str) -> ProjectRow | None:
    """Gives a project, or None."""
    found = connection.row(f"SELECT {_PROJECT} FROM project WHERE project_id = ?", (project_id,))
    return ProjectRow(*found) if found else None


def list_projects(connection: Connection) -> list[str]:
    """Gives the ids of the projects that Memory Git is used in, sorted."""
    return [
        name
        for (name,) in connection.rows(
            "SELECT project_id FROM project WHERE root_changeset_id IS NOT NULL ORDER BY project_id"
        )
    ]


def next_project_number(connection: Connection) -> int:
    """Gives a number that no project has."""
    return int(connection.value("SELECT coalesce(max(number), 0) + 1 FROM project"))


def put_project(connection: Connection, row: ProjectRow) -> None:
    """Inserts a project."""
    names = [item.name for item in fields(ProjectRow)]
    connection.execute(_insertion("project", names), astuple(row))


def set_root(connection: Connection, row: ProjectRow) -> None:
    """Writes a project's root and the end of its baseline."""
    connection.execute(
        "UPDATE project SET root_changeset_id = ?, baseline_seq = ? WHERE project_id = ?",
        (row.root_changeset_id, row.baseline_seq, row.project_id),
    )


def put_object(connection: Connection, object_id: str, project_id: str, kind: str) -> None:
    """Notes which project an object of a route without a project belongs to."""
    connection.execute("INSERT INTO object_project VALUES (?, ?, ?)", (object_id, project_id, kind))


def put_objects(connection: Connection, objects: Iterable[tuple[str, str, str]]) -> None:
    """Notes the projects and kinds of many objects."""
    connection.execute_many("INSERT INTO object_project VALUES (?, ?, ?)", objects)


def project_of(connection: Connection, object_id: str, kind: str) -> str | None:
    """Gives the project of an object of a kind (changeset, manifest, event, assembly), or None."""
    found: str | None = connection.value(
        "SELECT project_id FROM object_project WHERE object_id = ? AND kind = ?", (object_id, kind)
    )
    return found


def is_taken(connection: Connection, object_id: str) -> bool:
    """Decides whether an id names an object of any project."""
    return connection.value("SELECT 1 FROM object_project WHERE object_id = ?", (object_id,)) is not None


# refs


def get_ref(connection: Connection, project_id: str, ref_name: str) -> RefRow | None:
    """Gives a ref, or None."""
    found = connection.row(
        f"SELECT {_REF} FROM ref WHERE project_id = ? AND ref_name = ?", (project_id, ref_name)
    )
    return RefRow(*found) if found else None


def list_refs(
    connection: Connection, project_id: str, after: str = "", limit: int = ALL_ROWS
) -> list[RefRow]:
    """Gives the refs of a project beyond a name, by name."""
    rows = connection.rows(
        f"SELECT {_REF} FROM ref WHERE project_id = ? AND ref_name > ? ORDER BY ref_name LIMIT ?",
        (project_id, after, limit),
    )
    return [RefRow(*row) for row in rows]


def put_ref(connection: Connection, row: RefRow) -> None:
    """Inserts a ref."""
    connection.execute(_INSERT_REF, row)


def swap_head(connection: Connection, moved: RefRow, expected_head: str) -> bool:
    """Moves a ref by compare-and-swap; False when its head is not the expected one."""
    connection.execute(
        "UPDATE ref SET head_changeset_id = ?, version = ?, updated_at = ?, updated_by = ?"
        " WHERE project_id = ? AND ref_name = ? AND head_changeset_id = ?",
        (
            moved.head_changeset_id,
            moved.version,
            moved.updated_at,
            moved.updated_by,
            moved.project_id,
            moved.ref_name,
            expected_head,
        ),
    )
    return connection.changes() == 1


def ref_log(connection: Connection, project_id: str, ref_name: str) -> list[RefMove]:
    """Gives the moves of a ref, oldest first."""
    return ref_log_after(connection, project_id, ref_name, 0, ALL_ROWS)


def ref_log_after(
    connection: Connection, project_id: str, ref_name: str, after: int, limit: int
) -> list[RefMove]:
    """Gives so many moves of a ref beyond one, oldest first."""
    rows = connection.rows(
        f"SELECT {_MOVE} FROM ref_log WHERE project_id = ? AND ref_name = ? AND seq > ? ORDER BY seq LIMIT ?",
        (project_id, ref_name, after, limit),
    )
    return [RefMove(*row) for row in rows]


def move_to(connection: Connection, project_id: str, ref_name: str, head: str) -> RefMove | None:
    """Gives the first move of a ref to a changeset, or None where it never stood there."""
    found = connection.row(
        f"SELECT {_MOVE} FROM ref_log WHERE project_id = ? AND ref_name = ? AND to_head = ? ORDER BY seq LIMIT 1",
        (project_id, ref_name, head),
    )
    return RefMove(*found) if found else None


def last_move(connection: Connection, project_id: str, ref_name: str) -> RefMove | None:
    """Gives the newest move of a ref."""
    found = connection.row(
        f"SELECT {_MOVE} FROM ref_log WHERE project_id = ? AND ref_name = ? ORDER BY seq DESC LIMIT 1",
        (project_id, ref_name),
    )
    return RefMove(*found) if found else None


def move_at(connection: Connection, project_id: str, ref_name: str, at: str) -> RefMove | None:
    """Gives the newest move of a ref that is not later than a time."""
    found = connection.row(
        f"SELECT {_MOVE} FROM ref_log WHERE project_id = ? AND ref_name = ? AND at <= ? ORDER BY seq DESC LIMIT 1",
        (project_id, ref_name, at),
    )
    return RefMove(*found) if found else None


def put_move(connection: Connection, row: RefMove) -> None:
    """Appends to a ref's log."""
    connection.execute(_INSERT_MOVE, row)


# changesets


def get_changeset(connection: Connection, project_id: str, changeset_id: str) -> ChangesetRow | None:
    """Gives a changeset by its id, or None."""
    found = connection.row(
        f"SELECT {_CHANGESET} FROM changeset WHERE project_id = ? AND changeset_id = ?",
        (project_id, changeset_id),
    )
    return ChangesetRow(*found) if found else None


def get_state(connection: Connection, project_id: str, changeset_id: str) -> StateRow | None:
    """Gives where the state of a changeset is, or None."""
    found = connection.row(
        f"SELECT {_STATE} FROM changeset WHERE project_id = ? AND changeset_id = ?",
        (project_id, changeset_id),
    )
    return StateRow(*found) if found else None


def changeset_at(connection: Connection, project_id: str, row: int) -> ChangesetRow | None:
    """Gives a changeset by its row, or None."""
    found = connection.row(
        f"SELECT {_CHANGESET} FROM changeset WHERE project_id = ? AND id = ?", (project_id, row)
    )
    return ChangesetRow(*found) if found else None


def changeset_of_key(
    connection: Connection, project_id: str, author_principal: str, idempotency_key: str
) -> ChangesetRow | None:
    """Gives the changeset that an author stored under an idempotency key, or None."""
    found = connection.row(
        f"SELECT {_CHANGESET} FROM changeset WHERE project_id = ? AND author_principal = ? AND idempotency_key = ?",
        (project_id, author_principal, idempotency_key),
    )
    return ChangesetRow(*found) if found else None


def graph_rows(connection: Connection, project_id: str, after: int) -> list[tuple[int, str, str]]:
    """Gives (row, changeset id, parent ids) of changesets beyond a row, in the order of arrival."""
    return connection.rows(
        "SELECT id, changeset_id, parent_ids FROM changeset WHERE +project_id = ? AND id > ? AND id < ? ORDER BY id",
        (project_id, after, row_range(after >> 40)[1]),
    )


def arrived(
    connection: Connection, project_id: str, number: int, place: int
) -> tuple[list[tuple[int, str, str]], int]:
    """Gives changesets that arrived beyond a place, as `graph_rows`, some perhaps again, and the place behind them; 0 is the beginning.

    Where many write at once, rows are seen in another order than they are counted: the place is then the oldest transaction
    that may still be under way, and all that the transactions before it wrote was given. It holds for one `server_life`.
    """
    if not connection.is_postgres:
        rows = graph_rows(connection, project_id, place or row_range(number)[0])
        return rows, rows[-1][0] if rows else place
    found = connection.rows(
        "SELECT id, changeset_id, parent_ids, pg_snapshot_xmin(pg_current_snapshot()) FROM changeset"
        " WHERE project_id = ? AND arrived >= ? ORDER BY id",
        (project_id, place),
    )
    return [row[:3] for row in found], found[0][3] if found else place


def changeset_ids(connection: Connection, project_id: str, rows: Iterable[int]) -> dict[int, str]:
    """Gives the ids of changesets by their rows."""
    found: dict[int, str] = {}
    for row in set(rows):
        value = connection.value(
            "SELECT changeset_id FROM changeset WHERE project_id = ? AND id = ?", (project_id, row)
        )
        if value is not None:
            found[row] = value
    return found


def changeset_rows(connection: Connection, project_id: str, names: Sequence[str]) -> dict[str, int]:
    """Gives the rows of changesets by their ids."""
    rows = connection.rows(
        "SELECT changeset_id, changeset.id FROM json_each(?) AS named"
        " CROSS JOIN changeset ON project_id = ? AND changeset_id = named.value",
        (json.dumps(names), project_id),
    )
    return dict(rows)


def put_changeset(connection: Connection, row: ChangesetRow, ops: Sequence[OpRow]) -> None:
    """Inserts a changeset with its ops."""
    connection.execute(_INSERT_CHANGESET, row)
    connection.execute_many(_INSERT_OP, ops)


def ops_of(connection: Connection, project_id: str, changeset_row: int) -> list[OpRow]:
    """Gives the ops of a changeset, in order."""
    rows = connection.rows(
        f"SELECT {_OP} FROM op WHERE project_id = ? AND changeset_row = ? ORDER BY ordinal",
        (project_id, changeset_row),
    )
    return [OpRow(*row) for row in rows]


def all_states(connection: Connection, project_id: str, number: int) -> list[StateRow]:
    """Gives where the state of every changeset is, in the order of arrival."""
    least, beyond = row_range(number)
    rows = connection.rows(
        f"SELECT {_STATE} FROM changeset WHERE id >= ? AND id < ? AND +project_id = ? ORDER BY id",
        (least, beyond, project_id),
    )
    return [StateRow(*row) for row in rows]


def ops_of_type(
    connection: Connection, project_id: str, op_type: str, least: int, greatest: int
) -> list[OpRow]:
    """Gives the ops of a type between two changeset rows, both included, in the order of arrival."""
    rows = connection.rows(
        f"SELECT {_OP} FROM op WHERE project_id = ? AND changeset_row BETWEEN ? AND ? AND op_type = ?"
        " ORDER BY changeset_row, ordinal",
        (project_id, least, greatest, op_type),
    )
    return [OpRow(*row) for row in rows]


def reaches_of(connection: Connection, project_id: str, changeset_row: int) -> list[tuple[str, str]]:
    """Gives who may see the ops of a changeset: each (visibility, owner) that one of them has."""
    return connection.rows(
        "SELECT DISTINCT visibility, owner_principal FROM op WHERE project_id = ? AND changeset_row = ?",
        (project_id, changeset_row),
    )


def private_ops(connection: Connection, project_id: str, changeset_rows: Sequence[int]) -> int:
    """Counts the private ops of changesets."""
    return int(
        connection.value(
            "SELECT count(*) FROM json_each(?) AS wanted CROSS JOIN op"
            " ON project_id = ? AND changeset_row = wanted.value WHERE visibility = 'private'",
            (json.dumps(changeset_rows), project_id),
        )
    )


def private_op_places(
    connection: Connection, project_id: str, changeset_rows: Sequence[int], limit: int
) -> list[tuple[int, int]]:
    """Gives (changeset row, ordinal) of the first private ops of changesets."""
    rows = connection.rows(
        "SELECT changeset_row, ordinal FROM json_each(?) AS wanted CROSS JOIN op"
        " ON project_id = ? AND changeset_row = wanted.value WHERE visibility = 'private'"
        " ORDER BY changeset_row, ordinal LIMIT ?",
        (json.dumps(changeset_rows), project_id, limit),
    )
    return [(int(row[0]), int(row[1])) for row in rows]


def op_at(connection: Connection, project_id: str, changeset_row: int, ordinal: int) -> OpRow | None:
    """Gives one op, or None."""
    found = connection.row(
        f"SELECT {_OP} FROM op WHERE project_id = ? AND changeset_row = ? AND ordinal = ?",
        (project_id, changeset_row, ordinal),
    )
    return OpRow(*found) if found else None


def logged_refs(connection: Connection, project_id: str) -> list[str]:
    """Gives the names that have a log, sorted."""
    rows = connection.rows(
        "SELECT DISTINCT ref_name FROM ref_log WHERE project_id = ? ORDER BY ref_name", (project_id,)
    )
    return [name for (name,) in rows]


def objects_of(connection: Connection, project_id: str) -> list[tuple[str, str]]:
    """Gives (object id, kind) of everything that is noted as this project's."""
    return connection.rows("SELECT object_id, kind FROM object_project WHERE project_id = ?", (project_id,))
