"""How many changes were made on a day, in charon.db: of a principal in a project, and of all in it (empty principal)."""

from __future__ import annotations

from memory_git.storage.connection import Connection


def used(connection: Connection, project_id: str, principal_id: str, day: str) -> int:
    """Gives the changes of a day (`2026-12-01`) that were noted so far."""
    found = connection.value(
        "SELECT used FROM quota_use WHERE project_id = ? AND principal_id = ? AND day = ?",
        (project_id, principal_id, day),
    )
    return int(found or 0)


def add(connection: Connection, project_id: str, principal_id: str, day: str, count: int) -> None:
    """Notes changes of a day, and forgets the days before it."""
    connection.execute(
        "DELETE FROM quota_use WHERE project_id = ? AND principal_id = ? AND day < ?",
        (project_id, principal_id, day),
    )
    connection.execute(
        "INSERT INTO quota_use (project_id, principal_id, day, used) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (project_id, principal_id, day) DO UPDATE SET used = quota_use.used + excluded.used",
        (project_id, principal_id, day, count),
    )
