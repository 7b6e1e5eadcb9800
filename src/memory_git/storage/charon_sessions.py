"""Sign-in links and web sessions in charon.db: digests of their secrets, never the secrets."""

from __future__ import annotations

from dataclasses import dataclass

from memory_git.storage.connection import Connection


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A web session as stored; one opened with a token may do what that token may, while it holds."""

    principal_id: str
    obol_id: str | None
    csrf_secret: str
    expires_at: str


def add_sign_in(
    connection: Connection, code_digest: str, principal_id: str, at: str, expires_at: str
) -> None:
    """Stores a sign-in link."""
    connection.execute(
        "INSERT INTO sign_in (code_digest, principal_id, created_at, expires_at) VALUES (?, ?, ?, ?)",
        (code_digest, principal_id, at, expires_at),
    )


def use_sign_in(connection: Connection, code_digest: str, at: str) -> str | None:
    """Uses up a link that is neither used nor expired, and gives its principal; else None."""
    connection.execute(
        "UPDATE sign_in SET used_at = ? WHERE code_digest = ? AND used_at IS NULL AND expires_at > ?",
        (at, code_digest, at),
    )
    if connection.changes() != 1:
        return None
    return str(connection.value("SELECT principal_id FROM sign_in WHERE code_digest = ?", (code_digest,)))


def add_session(connection: Connection, session_digest: str, row: SessionRow, at: str) -> None:
    """Stores a session, and drops those that have expired."""
    connection.execute("DELETE FROM web_session WHERE expires_at <= ?", (at,))
    connection.execute(
        "INSERT INTO web_session (session_digest, principal_id, obol_id, csrf_secret, created_at, expires_at) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (session_digest, row.principal_id, row.obol_id, row.csrf_secret, at, row.expires_at),
    )


def session(connection: Connection, session_digest: str) -> SessionRow | None:
    """Gives a session, expired or not."""
    found = connection.row(
        "SELECT principal_id, obol_id, csrf_secret, expires_at FROM web_session WHERE session_digest = ?",
        (session_digest,),
    )
    return SessionRow(*found) if found else None


def end_session(connection: Connection, session_digest: str) -> None:
    """Ends a session; one that is absent stays so."""
    connection.execute("DELETE FROM web_session WHERE session_digest = ?", (session_digest,))


def end_all(connection: Connection) -> None:
    """Ends every session and every unused link."""
    connection.execute("DELETE FROM web_session")
    connection.execute("DELETE FROM sign_in WHERE used_at IS NULL")


def end_sessions_of(connection: Connection, principal_id: str) -> None:
    """Ends all of a principal's sessions and unused links."""
    connection.execute("DELETE FROM web_session WHERE principal_id = ?", (principal_id,))
    connection.execute("DELETE FROM sign_in WHERE principal_id = ? AND used_at IS NULL", (principal_id,))
