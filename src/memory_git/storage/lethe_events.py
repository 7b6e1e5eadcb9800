"""SQL of the event history."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memory_git.storage.connection import Connection

_EVENT = (
    "project_id, seq, event_id, event_type, content, salt, content_digest, memory_id, changeset_id, record_digest,"
    " actor, created_at, event_digest"
)


class EventRow(NamedTuple):
    """One event; `content` and `salt` are None once redacted. `event_digest` chains it to the one before."""

    project_id: str
    seq: int
    event_id: str
    event_type: str
    content: str | None
    salt: str | None
    content_digest: str
    memory_id: str | None
    changeset_id: str | None
    record_digest: str | None
    actor: str | None
    created_at: str
    event_digest: str


def last_event(connection: Connection, project_id: str) -> EventRow | None:
    """Gives the newest event of a project, or None."""
    found = connection.row(
        f"SELECT {_EVENT} FROM event WHERE project_id = ? ORDER BY seq DESC LIMIT 1", (project_id,)
    )
    return EventRow(*found) if found else None


def list_events(connection: Connection, project_id: str, after: int, limit: int) -> list[EventRow]:
    """Gives events beyond a position, in order."""
    rows = connection.rows(
        f"SELECT {_EVENT} FROM event WHERE project_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        (project_id, after, limit),
    )
    return [EventRow(*row) for row in rows]


def get_event(connection: Connection, project_id: str, event_id: str) -> EventRow | None:
    """Gives an event by its id, or None."""
    found = connection.row(
        f"SELECT {_EVENT} FROM event WHERE project_id = ? AND event_id = ?", (project_id, event_id)
    )
    return EventRow(*found) if found else None


def contents_of(connection: Connection, project_id: str, event_ids: Sequence[str]) -> dict[str, str]:
    """Gives the contents of those of many events that are there and have one, by event id."""
    rows = connection.rows(
        "SELECT event_id, content FROM json_each(?) AS named CROSS JOIN event ON project_id = ? AND event_id = named.value"
        " WHERE content IS NOT NULL",
        (json.dumps(list(event_ids)), project_id),
    )
    return dict(rows)


def put_events(connection: Connection, rows: Iterable[EventRow]) -> None:
    """Appends events."""
    connection.execute_many("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
