"""The journal of what a restore must not undo, as it stands in charon.db; a copy is beside the ledger's anchor."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from memory_git.storage.connection import Connection

_PLACE = "journal"
"""What the end of the journal is called where writers take turns."""


@dataclass(frozen=True, slots=True)
class JournalRow:
    """One entry: `link` is its keyed link after `previous`, `view` all that it says."""

    seq: int
    previous: str | None
    link: str
    view: dict[str, Any]


def take_turn(connection: Connection) -> None:
    """Waits until no other process appends."""
    connection.lock("ref", "", _PLACE)


def last(connection: Connection) -> tuple[int, str | None]:
    """Gives the number and the link of the last entry; (0, None) before the first."""
    row = connection.row("SELECT seq, link FROM journal ORDER BY seq DESC LIMIT 1")
    return (int(row[0]), str(row[1])) if row else (0, None)


def link_at(connection: Connection, seq: int) -> str | None:
    """Gives the link of one entry, None where there is none."""
    found = connection.value("SELECT link FROM journal WHERE seq = ?", (seq,))
    return None if found is None else str(found)


def rows_after(connection: Connection, seq: int) -> list[JournalRow]:
    """Gives the entries after a number, in order."""
    found = connection.rows(
        "SELECT seq, previous, link, view FROM journal WHERE seq > ? ORDER BY seq", (seq,)
    )
    return [JournalRow(int(row[0]), row[1], row[2], json.loads(row[3])) for row in found]


def append(connection: Connection, row: JournalRow) -> None:
    """Stores an entry."""
    connection.execute(
        "INSERT INTO journal (seq, previous, link, view) VALUES (?, ?, ?, ?)",
        (row.seq, row.previous, row.link, json.dumps(row.view, ensure_ascii=False, sort_keys=True)),
    )
