"""OAuth in charon.db: clients, what people consented to, codes and tokens; digests of secrets, never the secrets."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from memory_git.storage.charon_identity import move_epoch
from memory_git.storage.connection import Connection


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A client that registered itself, or that is described at the https address which is its id."""

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]
    created_at: str
    last_used_at: str
    disabled_at: str | None = None


@dataclass(frozen=True, slots=True)
class RequestRow:
    """What a client asked for, until a person decides it."""

    client_id: str
    redirect_uri: str
    state: str | None
    scopes: tuple[str, ...]
    audience: str
    code_challenge: str
    expires_at: str


@dataclass(frozen=True, slots=True)
class GrantRow:
    """What a person let a client do: as which agent, in which project, with which scopes, at which face."""

    grant_id: str
    client_id: str
    principal_id: str
    granted_by: str
    project_id: str
    scopes: tuple[str, ...]
    audience: str
    created_at: str
    revoked_at: str | None = None


@dataclass(frozen=True, slots=True)
class CodeRow:
    """An authorization code as stored."""

    grant_id: str
    redirect_uri: str
    code_challenge: str
    expires_at: str
    used_at: str | None


@dataclass(frozen=True, slots=True)
class TokenRow:
    """An access or refresh token as stored; `used_at` is when a refresh token was rotated."""

    token_id: str
    grant_id: str
    kind: str
    digest: str
    key_id: str
    scopes: tuple[str, ...]
    created_at: str
    expires_at: str
    used_at: str | None = None


_CLIENT = "client_id, name, redirect_uris, created_at, last_used_at, disabled_at"
_REQUEST = "client_id, redirect_uri, state, scopes, audience, code_challenge, expires_at"
_GRANT = "grant_id, client_id, principal_id, granted_by, project_id, scopes, audience, created_at, revoked_at"
_HELD = "token_id, grant_id, kind, digest, key_id, scopes, created_at, expires_at, used_at"


def add_client(connection: Connection, row: ClientRow) -> None:
    """Stores a client, or what is newly known of it; one that was turned off stays so."""
    connection.execute(
        f"INSERT INTO oauth_client ({_CLIENT}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (client_id) DO UPDATE SET "
        "name = excluded.name, redirect_uris = excluded.redirect_uris, last_used_at = excluded.last_used_at",
        (
            row.client_id,
            row.name,
            json.dumps(row.redirect_uris),
            row.created_at,
            row.last_used_at,
            row.disabled_at,
        ),
    )


def client(connection: Connection, client_id: str) -> ClientRow | None:
    """Gives one client."""
    found = connection.row(f"SELECT {_CLIENT} FROM oauth_client WHERE client_id = ?", (client_id,))
    return _client(found) if found else None


def clients(connection: Connection) -> list[ClientRow]:
    """Gives all clients, by when they came."""
    return [
        _client(row)
        for row in connection.rows(f"SELECT {_CLIENT} FROM oauth_client ORDER BY created_at, client_id")
    ]


def drop_idle_clients(connection: Connection, before: str) -> None:
    """Forgets clients that nobody ever consented to, and that were last used before a time."""
    connection.execute(
        "DELETE FROM oauth_client WHERE last_used_at < ? AND disabled_at IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM oauth_grant WHERE oauth_grant.client_id = oauth_client.client_id) "
        "AND NOT EXISTS (SELECT 1 FROM oauth_request WHERE oauth_request.client_id = oauth_client.client_id)",
        (before,),
    )


def count_clients(connection: Connection) -> int:
    """Counts the clients."""
    return int(connection.value("SELECT count(*) FROM oauth_client"))


def disable_client(connection: Connection, client_id: str, at: str) -> bool:
    """Turns a client off for good; False where it is absent or was turned off before."""
    connection.execute(
        "UPDATE oauth_client SET disabled_at = ? WHERE client_id = ? AND disabled_at IS NULL", (at, client_id)
    )
    changed = connection.changes() == 1
    connection.execute(
        "UPDATE oauth_grant SET revoked_at = ? WHERE client_id = ? AND revoked_at IS NULL", (at, client_id)
    )
    move_epoch(connection)
    return changed


def add_request(connection: Connection, request_digest: str, row: RequestRow, now: str) -> None:
    """Stores what a client asks for, and drops what nobody decided in time."""
    connection.execute("DELETE FROM oauth_request WHERE expires_at <= ?", (now,))
    connection.execute(
        f"INSERT INTO oauth_request (request_digest, {_REQUEST}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            request_digest,
            row.client_id,
            row.redirect_uri,
            row.state,
            json.dumps(row.scopes),
            row.audience,
            row.code_challenge,
            row.expires_at,
        ),
    )


def request(connection: Connection, request_digest: str) -> RequestRow | None:
    """Gives what a client asked for."""
    found = connection.row(
        f"SELECT {_REQUEST} FROM oauth_request WHERE request_digest = ?", (request_digest,)
    )
    return (
        RequestRow(found[0], found[1], found[2], tuple(json.loads(found[3])), found[4], found[5], found[6])
        if found
        else None
    )


def take_request(connection: Connection, request_digest: str) -> bool:
    """Takes a request away; False where somebody decided it already."""
    connection.execute("DELETE FROM oauth_request WHERE request_digest = ?", (request_digest,))
    return connection.changes() == 1


def agent_owner(connection: Connection, principal_id: str) -> str | None:
    """Gives the person whose agent a principal is by consent, None for any other principal."""
    found = connection.value("SELECT owner FROM oauth_agent WHERE principal_id = ?", (principal_id,))
    return None if found is None else str(found)


def add_agent(connection: Connection, principal_id: str, owner: str) -> None:
    """Notes whose agent a principal is."""
    connection.execute(
        "INSERT INTO oauth_agent (principal_id, owner) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (principal_id, owner),
    )


def agents_of(connection: Connection, owner: str) -> list[str]:
    """Gives the agents that a person has by consent."""
    rows = connection.rows(
        "SELECT principal_id FROM oauth_agent WHERE owner = ? ORDER BY principal_id", (owner,)
    )
    return [str(row[0]) for row in rows]


def add_grant(connection: Connection, row: GrantRow) -> None:
    """Stores a consent."""
    connection.execute(
        f"INSERT INTO oauth_grant ({_GRANT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row.grant_id,
            row.client_id,
            row.principal_id,
            row.granted_by,
            row.project_id,
            json.dumps(row.scopes),
            row.audience,
            row.created_at,
            row.revoked_at,
        ),
    )


def grant(connection: Connection, grant_id: str) -> GrantRow | None:
    """Gives one consent."""
    found = connection.row(f"SELECT {_GRANT} FROM oauth_grant WHERE grant_id = ?", (grant_id,))
    return _grant(found) if found else None


def grants(connection: Connection, granted_by: str | None) -> list[GrantRow]:
    """Gives the consents of one person, or all, in the order they were given."""
    where, params = ("WHERE granted_by = ?", (granted_by,)) if granted_by else ("", ())
    rows = connection.rows(f"SELECT {_GRANT} FROM oauth_grant {where} ORDER BY created_at, grant_id", params)
    return [_grant(row) for row in rows]


def revoke_grant(connection: Connection, grant_id: str, at: str) -> bool:
    """Ends a consent with every token of it; False where it is absent or ended before."""
    connection.execute(
        "UPDATE oauth_grant SET revoked_at = ? WHERE grant_id = ? AND revoked_at IS NULL", (at, grant_id)
    )
    changed = connection.changes() == 1
    connection.execute("DELETE FROM oauth_token WHERE grant_id = ?", (grant_id,))
    move_epoch(connection)
    return changed


def add_code(connection: Connection, code_digest: str, row: CodeRow) -> None:
    """Stores a code."""
    connection.execute(
        "INSERT INTO oauth_code (code_digest, grant_id, redirect_uri, code_challenge, expires_at) VALUES (?, ?, ?, ?, ?)",
        (code_digest, row.grant_id, row.redirect_uri, row.code_challenge, row.expires_at),
    )


def code(connection: Connection, code_digest: str) -> CodeRow | None:
    """Gives a code, used or not."""
    found = connection.row(
        "SELECT grant_id, redirect_uri, code_challenge, expires_at, used_at FROM oauth_code WHERE code_digest = ?",
        (code_digest,),
    )
    return CodeRow(*found) if found else None


def use_code(connection: Connection, code_digest: str, at: str) -> bool:
    """Uses a code up; False where it was used before."""
    connection.execute(
        "UPDATE oauth_code SET used_at = ? WHERE code_digest = ? AND used_at IS NULL", (at, code_digest)
    )
    return connection.changes() == 1


def add_token(connection: Connection, row: TokenRow) -> None:
    """Stores a token."""
    connection.execute(
        f"INSERT INTO oauth_token ({_HELD}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row.token_id,
            row.grant_id,
            row.kind,
            row.digest,
            row.key_id,
            json.dumps(row.scopes),
            row.created_at,
            row.expires_at,
            row.used_at,
        ),
    )


def token(connection: Connection, token_id: str) -> TokenRow | None:
    """Gives a token, whatever its state."""
    found = connection.row(f"SELECT {_HELD} FROM oauth_token WHERE token_id = ?", (token_id,))
    if not found:
        return None
    scopes = tuple(json.loads(found[5]))
    return TokenRow(found[0], found[1], found[2], found[3], found[4], scopes, *found[6:])


def use_refresh(connection: Connection, token_id: str, at: str) -> bool:
    """Uses a refresh token up; False where it was used before."""
    connection.execute(
        "UPDATE oauth_token SET used_at = ? WHERE token_id = ? AND used_at IS NULL", (at, token_id)
    )
    return connection.changes() == 1


def drop_token(connection: Connection, token_id: str) -> None:
    """Ends one token."""
    connection.execute("DELETE FROM oauth_token WHERE token_id = ?", (token_id,))
    move_epoch(connection)


def drop_expired(connection: Connection, now: str, codes_before: str) -> None:
    """Forgets tokens whose time is over, and codes long after theirs: a replay of one ends what came of it."""
    connection.execute("DELETE FROM oauth_token WHERE expires_at <= ?", (now,))
    connection.execute("DELETE FROM oauth_code WHERE expires_at <= ?", (codes_before,))


def end_all(connection: Connection) -> None:
    """Ends every request, code and token; consents stay, and take a new one."""
    for table in ("oauth_request", "oauth_code", "oauth_token"):
        connection.execute(f"DELETE FROM {table}")
    move_epoch(connection)


def _client(row: tuple[Any, ...]) -> ClientRow:
    return ClientRow(row[0], row[1], tuple(json.loads(row[2])), *row[3:])


def _grant(row: tuple[Any, ...]) -> GrantRow:
    scopes = tuple(json.loads(row[5]))
    return GrantRow(row[0], row[1], row[2], row[3], row[4], scopes, *row[6:])
