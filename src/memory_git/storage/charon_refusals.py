"""Values that a rejection refused, in charon.db: keyed digests and ids, no text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memory_git.storage.connection import Connection


def add(
    connection: Connection, project_id: str, proposal_id: str, rows: Iterable[tuple[str, str, str]]
) -> None:
    """Notes what a proposal was refused for: (value digest, memory id, id of the digest's key)."""
    for value_digest, memory_id, key_id in rows:
        connection.execute(
            "INSERT INTO refused_value (project_id, value_digest, proposal_id, memory_id, key_id) "
            "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (project_id, value_digest, proposal_id, memory_id, key_id),
        )


def proposals_with(connection: Connection, project_id: str, value_digest: str) -> list[str]:
    """Gives the proposals that were rejected with a value, newest first."""
    rows = connection.rows(
        "SELECT DISTINCT proposal_id FROM refused_value WHERE project_id = ? AND value_digest = ? "
        "ORDER BY proposal_id DESC",
        (project_id, value_digest),
    )
    return [row[0] for row in rows]


def forget(connection: Connection, project_id: str, memory_ids: Sequence[str]) -> None:
    """Forgets what was refused of memories that are erased."""
    for memory_id in memory_ids:
        connection.execute(
            "DELETE FROM refused_value WHERE project_id = ? AND memory_id = ?", (project_id, memory_id)
        )
