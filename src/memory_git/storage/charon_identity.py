"""Principals, their actors, tokens, grants and created refs in charon.db; every change moves the identity epoch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from memory_git.domain.errors import Unavailable
from memory_git.storage.connection import Connection


@dataclass(frozen=True, slots=True)
class PrincipalRow:
    """A principal as stored; `scopes` are those beyond its profile's."""

    principal_id: str
    kind: str
    display_name: str
    profile: str
    scopes: tuple[str, ...]
    disabled: bool
    created_at: str


@dataclass(frozen=True, slots=True)
class ObolRow:
    """A token as stored: never its secret. `scopes` None means all that the principal has."""

    obol_id: str
    principal_id: str
    digest: str
    key_id: str
    scopes: tuple[str, ...] | None
    default_project: str | None
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None


@dataclass(frozen=True, slots=True)
class GrantRow:
    """A grant as stored; `project_id` may be "*"."""

    project_id: str
    principal_id: str
    scopes: tuple[str, ...]
    refs: tuple[str, ...]
    granted_by: str
    created_at: str


_PRINCIPAL = "principal_id, kind, display_name, profile, scopes, disabled, created_at"
_OBOL = "obol_id, principal_id, digest, key_id, scopes, default_project, created_at, expires_at, last_used_at, revoked_at"
_GRANT = "project_id, principal_id, scopes, refs, granted_by, created_at"


def epoch(connection: Connection) -> int:
    """Gives the number that grows with every change of who may do what."""
    found = connection.value("SELECT value FROM identity_epoch")
    if found is None:
        raise Unavailable(
            "database_damaged",
            "charon.db has lost the row that says whose rights are current: restore a backup",
        )
    return int(found)


def move_epoch(connection: Connection) -> None:
    """Tells every process that what it remembers of callers is out of date."""
    connection.execute("UPDATE identity_epoch SET value = value + 1")


def jump_epoch(connection: Connection, to: int) -> None:
    """Moves the epoch beyond all that was remembered before a restore set it back."""
    connection.execute(
        "UPDATE identity_epoch SET value = CASE WHEN value < ? THEN ? ELSE value + 1 END", (to, to)
    )


def add_principal(connection: Connection, row: PrincipalRow) -> bool:
    """Stores a principal; False when the id is taken."""
    connection.execute(
        f"INSERT INTO principal ({_PRINCIPAL}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            row.principal_id,
            row.kind,
            row.display_name,
            row.profile,
            _list(row.scopes),
            int(row.disabled),
            row.created_at,
        ),
    )
    added = connection.changes() == 1
    move_epoch(connection)
    return added


def principal(connection: Connection, principal_id: str) -> PrincipalRow | None:
    """Gives one principal."""
    found = connection.row(f"SELECT {_PRINCIPAL} FROM principal WHERE principal_id = ?", (principal_id,))
    return _principal(found) if found else None


def principals(connection: Connection) -> list[PrincipalRow]:
    """Gives all principals, by id."""
    return [
        _principal(row)
        for row in connection.rows(f"SELECT {_PRINCIPAL} FROM principal ORDER BY principal_id")
    ]


def set_disabled(connection: Connection, principal_id: str, disabled: bool) -> None:
    """Disables a principal, or enables it again."""
    connection.execute(
        "UPDATE principal SET disabled = ? WHERE principal_id = ?", (int(disabled), principal_id)
    )
    move_epoch(connection)


def add_actor(connection: Connection, actor_id: str, principal_id: str) -> str:
    """Gives the actor to the principal if nobody has it; gives who has it now."""
    connection.execute(
        "INSERT INTO actor (actor_id, principal_id, place) "
        "SELECT ?, ?, count(*) FROM actor WHERE principal_id = ? ON CONFLICT DO NOTHING",
        (actor_id, principal_id, principal_id),
    )
    move_epoch(connection)
    return str(connection.value("SELECT principal_id FROM actor WHERE actor_id = ?", (actor_id,)))


def actor_owner(connection: Connection, actor_id: str) -> str | None:
    """Gives the principal that an actor belongs to, None where nobody has it."""
    found = connection.value("SELECT principal_id FROM actor WHERE actor_id = ?", (actor_id,))
    return None if found is None else str(found)


def actors(connection: Connection, principal_id: str) -> list[str]:
    """Gives a principal's actors, the first one it got first."""
    rows = connection.rows(
        "SELECT actor_id FROM actor WHERE principal_id = ? ORDER BY place", (principal_id,)
    )
    return [row[0] for row in rows]


def add_obol(connection: Connection, row: ObolRow) -> None:
    """Stores a token."""
    connection.execute(
        f"INSERT INTO obol ({_OBOL}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row.obol_id,
            row.principal_id,
            row.digest,
            row.key_id,
            None if row.scopes is None else _list(row.scopes),
            row.default_project,
            row.created_at,
            row.expires_at,
            row.last_used_at,
            row.revoked_at,
        ),
    )
    move_epoch(connection)


def obol(connection: Connection, obol_id: str) -> ObolRow | None:
    """Gives one token."""
    found = connection.row(f"SELECT {_OBOL} FROM obol WHERE obol_id = ?", (obol_id,))
    return _obol(found) if found else None


def obols(connection: Connection, principal_id: str | None) -> list[ObolRow]:
    """Gives the tokens of one principal, or all, in the order they were made."""
    where, params = ("WHERE principal_id = ?", (principal_id,)) if principal_id else ("", ())
    return [
        _obol(row)
        for row in connection.rows(f"SELECT {_OBOL} FROM obol {where} ORDER BY created_at, obol_id", params)
    ]


def revoke_obol(connection: Connection, obol_id: str, at: str) -> bool:
    """Revokes a token; False when it is absent or was revoked before."""
    connection.execute(
        "UPDATE obol SET revoked_at = ? WHERE obol_id = ? AND revoked_at IS NULL", (at, obol_id)
    )
    changed = connection.changes() == 1
    move_epoch(connection)
    return changed


def obols_of_key(connection: Connection, key_id: str, at: str) -> int:
    """Counts the tokens of a key that still hold."""
    return int(
        connection.value(
            "SELECT count(*) FROM obol WHERE key_id = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)",
            (key_id, at),
        )
    )


def revoke_obols(connection: Connection, at: str) -> None:
    """Revokes every token that was made before a time."""
    connection.execute(
        "UPDATE obol SET revoked_at = ? WHERE revoked_at IS NULL AND created_at <= ?", (at, at)
    )
    move_epoch(connection)


def set_last_used(connection: Connection, used: Iterable[tuple[str, str]]) -> None:
    """Notes when tokens were last used, as (obol id, time)."""
    connection.execute_many(
        "UPDATE obol SET last_used_at = ? WHERE obol_id = ?", [(at, obol_id) for obol_id, at in used]
    )


def set_grant(connection: Connection, row: GrantRow) -> None:
    """Stores a grant, in place of the one that the principal had on the project."""
    connection.execute(
        f"INSERT INTO project_grant ({_GRANT}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (project_id, principal_id) "
        "DO UPDATE SET scopes = excluded.scopes, refs = excluded.refs, granted_by = excluded.granted_by, "
        "created_at = excluded.created_at",
        (
            row.project_id,
            row.principal_id,
            _list(row.scopes),
            _list(row.refs),
            row.granted_by,
            row.created_at,
        ),
    )
    move_epoch(connection)


def revoke_grant(connection: Connection, principal_id: str, project_id: str) -> bool:
    """Takes a grant away; False when there was none."""
    connection.execute(
        "DELETE FROM project_grant WHERE project_id = ? AND principal_id = ?", (project_id, principal_id)
    )
    changed = connection.changes() == 1
    move_epoch(connection)
    return changed


def grants(
    connection: Connection, *, principal_id: str | None = None, project_id: str | None = None
) -> list[GrantRow]:
    """Gives the grants of a principal, of a project, or all."""
    named = [
        (name, value) for name, value in (("principal_id", principal_id), ("project_id", project_id)) if value
    ]
    where = f"WHERE {' AND '.join(f'{name} = ?' for name, _ in named)}" if named else ""
    rows = connection.rows(
        f"SELECT {_GRANT} FROM project_grant {where} ORDER BY project_id, principal_id",
        [value for _, value in named],
    )
    return [GrantRow(row[0], row[1], _tuple(row[2]), _tuple(row[3]), row[4], row[5]) for row in rows]


def claim_ref(connection: Connection, project_id: str, ref_name: str, principal_id: str, at: str) -> str:
    """Notes who creates a topic or repo ref, unless somebody has; gives who has it now."""
    connection.execute(
        "INSERT INTO created_ref (project_id, ref_name, principal_id, created_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (project_id, ref_name, principal_id, at),
    )
    move_epoch(connection)
    return str(
        connection.value(
            "SELECT principal_id FROM created_ref WHERE project_id = ? AND ref_name = ?",
            (project_id, ref_name),
        )
    )


def drop_claim(connection: Connection, project_id: str, ref_name: str) -> None:
    """Forgets a claim on a ref that came to nothing."""
    connection.execute(
        "DELETE FROM created_ref WHERE project_id = ? AND ref_name = ?", (project_id, ref_name)
    )
    move_epoch(connection)


def created_refs(connection: Connection, principal_id: str) -> list[tuple[str, str]]:
    """Gives (project, ref name) of what a principal created."""
    return [
        (row[0], row[1])
        for row in connection.rows(
            "SELECT project_id, ref_name FROM created_ref WHERE principal_id = ?", (principal_id,)
        )
    ]


def _list(values: Iterable[str]) -> str:
    return json.dumps(sorted(values))


def _tuple(stored: str) -> tuple[str, ...]:
    return tuple(json.loads(stored))


def _principal(row: tuple[Any, ...]) -> PrincipalRow:
    return PrincipalRow(row[0], row[1], row[2], row[3], _tuple(row[4]), bool(row[5]), row[6])


def _obol(row: tuple[Any, ...]) -> ObolRow:
    scopes = None if row[4] is None else _tuple(row[4])
    return ObolRow(row[0], row[1], row[2], row[3], scopes, *row[5:])
