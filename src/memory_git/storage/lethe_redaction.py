"""SQL of redaction: what is erased, and the record of it. Digests, structure, authorship and times stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass

from memory_git.storage.connection import Connection
from memory_git.storage.lethe_history import ALL_ROWS
from memory_git.storage.lethe_states import claim_key, erase_words, indexed_key

_REDACTION = "project_id, seq, redaction_id, memory_ids, principal, reason, versions, ops, events, at, redaction_digest"
KEPT_OPS = ("mark_duplicate", "add_relationship", "remove_relationship")
"""Ops that carry ids alone: they stay, so that what they did to other memories can be recomputed."""


@dataclass(frozen=True, slots=True)
class RedactionRow:
    """One redaction: on whose order, why, of which memories (a JSON list), and how much it erased."""

    project_id: str
    seq: int
    redaction_id: str
    memory_ids: str
    principal: str
    reason: str
    versions: int
    ops: int
    events: int
    at: str
    redaction_digest: str


def epoch(connection: Connection, project_id: str) -> int:
    """Gives the number of redactions of a project: a cache of records is good for one epoch."""
    return int(
        connection.value("SELECT coalesce(max(seq), 0) FROM redaction WHERE project_id = ?", (project_id,))
    )


def list_redactions(
    connection: Connection, project_id: str, after: int = 0, limit: int = ALL_ROWS
) -> list[RedactionRow]:
    """Gives the redactions of a project beyond one, oldest first."""
    rows = connection.rows(
        f"SELECT {_REDACTION} FROM redaction WHERE project_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        (project_id, after, limit),
    )
    return [RedactionRow(*row) for row in rows]


def redaction_of(connection: Connection, project_id: str, memory_id: str) -> RedactionRow | None:
    """Gives the redaction that erased a memory, or None."""
    found = connection.row(
        f"SELECT {_REDACTION} FROM redaction WHERE project_id = ? AND seq ="
        " (SELECT redaction_seq FROM redacted_memory WHERE project_id = ? AND memory_id = ?)",
        (project_id, project_id, memory_id),
    )
    return RedactionRow(*found) if found else None


def redacted_memories(connection: Connection, project_id: str) -> dict[str, int]:
    """Gives the memories that were erased, each with the position of its redaction."""
    return dict(
        connection.rows(
            "SELECT memory_id, redaction_seq FROM redacted_memory WHERE project_id = ?", (project_id,)
        )
    )


def put_redaction(connection: Connection, row: RedactionRow, memory_ids: list[str]) -> None:
    """Records a redaction."""
    connection.execute("INSERT INTO redaction VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(row))
    connection.execute_many(
        "INSERT INTO redacted_memory VALUES (?, ?, ?) ON CONFLICT (project_id, memory_id)"
        " DO UPDATE SET redaction_seq = excluded.redaction_seq",
        [(row.project_id, memory_id, row.seq) for memory_id in memory_ids],
    )


def bodies_of(connection: Connection, project_id: str, memory_id: str) -> list[tuple[int, bytes]]:
    """Gives (row, record) of every version of a memory that still has its text."""
    return connection.rows(
        "SELECT id, body FROM version WHERE project_id = ? AND memory_key = ? AND memory_id = ? AND body IS NOT NULL",
        (project_id, indexed_key(memory_id), memory_id),
    )


def erase_versions(
    connection: Connection, project_id: str, memory_id: str, claims_of_rows: Mapping[int, Iterable[str]]
) -> None:
    """Erases the versions of a memory with their salts, and what the indexes hold of them."""
    connection.settle()
    connection.execute(
        "UPDATE version SET body = NULL, salt = NULL WHERE project_id = ? AND memory_key = ? AND memory_id = ?",
        (project_id, indexed_key(memory_id), memory_id),
    )
    connection.execute_many(
        "DELETE FROM claim WHERE project_id = ? AND claim = ? AND version_row = ?",
        [(project_id, claim_key(claim), row) for row, claims in claims_of_rows.items() for claim in claims],
    )
    erase_words(connection, project_id, claims_of_rows)


def merge_words(connection: Connection) -> None:
    """Writes the word index anew without what was deleted: a deletion only marks, and the words stay until then."""
    if connection.is_postgres:
        return
    connection.execute("INSERT INTO version_words (version_words) VALUES ('optimize')")


def erase_ops(connection: Connection, project_id: str, memory_id: str) -> int:
    """Erases the payloads of the ops that name a memory and carry text; gives how many."""
    connection.execute(
        "UPDATE op SET payload = NULL, salt = NULL WHERE project_id = ? AND payload IS NOT NULL"
        " AND (target_event_id = ? OR resulting_event_id = ?) AND op_type NOT IN (?, ?, ?)",
        (project_id, memory_id, memory_id, *KEPT_OPS),
    )
    return connection.changes()


def joined_by_ops(connection: Connection, project_id: str, memory_id: str) -> set[str]:
    """Gives the memories that an op which carries text names together with this one."""
    rows = connection.rows(
        "SELECT DISTINCT target_event_id, resulting_event_id FROM op WHERE project_id = ?"
        " AND (target_event_id = ? OR resulting_event_id = ?) AND op_type NOT IN (?, ?, ?)",
        (project_id, memory_id, memory_id, *KEPT_OPS),
    )
    return {name for pair in rows for name in pair if name is not None} - {memory_id}


def erase_events(connection: Connection, project_id: str, memory_id: str) -> int:
    """Erases the text of the events that a memory came from or that speak of it; gives how many."""
    connection.execute(
        "UPDATE event SET content = NULL, salt = NULL WHERE project_id = ? AND content IS NOT NULL AND content <> ''"
        " AND (event_id = ? OR memory_id = ?)",
        (project_id, memory_id, memory_id),
    )
    return connection.changes()
