"""Rows of the original that have no place of their own here, each kept as an event, word for word."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from memory_git.domain.canonical import canonical_bytes
from memory_git.domain.ids import is_memory_id
from memory_git.interchange.original.source import Beside
from memory_git.lethe.adopting import GivenEvent

EVENT_PREFIX = "lethe_import/"
_NAMES = uuid.UUID("6f1f9d58-2b43-5c0e-8d0a-5b0f3a3a7c11")
_TEXTS_OF_CONFLICTS = frozenset({"summary", "details_json"})
"""Texts of memories stand in these: a copy that no later erasure would reach is not made."""


def event_of(item: Beside, project_id: str) -> GivenEvent:
    """Gives the event that keeps a row; its id is that of its content, so that the same row is kept once."""
    row = {name: value for name, value in item.row.items() if value not in (None, "")}
    if item.table == "memory_conflicts":
        row = {name: value for name, value in row.items() if name not in _TEXTS_OF_CONFLICTS}
    content = canonical_bytes(row).decode()
    own = item.key if item.table == "events" and is_memory_id(item.key) else None
    return GivenEvent(
        str(uuid.uuid5(_NAMES, f"{project_id}/{item.table}/{item.key}/{content}")),
        EVENT_PREFIX + item.table,
        content,
        None,
        item.at or datetime.fromtimestamp(0, UTC),
        own,
    )
