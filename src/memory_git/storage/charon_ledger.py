"""The ledger's rows in charon.db: appended, never changed (6-charon, audit ledger). The chain is the ledger's to compute."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memory_git.storage.connection import Connection

PAGE_ROWS = 1000


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One row: `view` is what the link covers; kind and intent_seq are copied from it for look-ups."""

    project_id: str
    seq: int
    previous: str | None
    link: str
    view: dict[str, Any]
    kind: str
    intent_seq: int | None


_COLUMNS = "project_id, seq, previous, link, view, kind, intent_seq"


def head(connection: Connection, project_id: str) -> tuple[int, str | None]:
    """Gives the last row's seq and link; 0 and None for an empty chain."""
    found = connection.row(
        "SELECT seq, link FROM ledger WHERE project_id = ? ORDER BY seq DESC LIMIT 1", (project_id,)
    )
    return (found[0], found[1]) if found else (0, None)


def link_at(connection: Connection, project_id: str, seq: int) -> str | None:
    """Gives the link of one row, None where there is none."""
    found = connection.value("SELECT link FROM ledger WHERE project_id = ? AND seq = ?", (project_id, seq))
    return None if found is None else str(found)


def heads(connection: Connection) -> dict[str, tuple[int, str]]:
    """Gives every chain's last seq and link."""
    return {
        row[0]: (row[1], row[2])
        for row in connection.rows(
            "SELECT l.project_id, l.seq, l.link FROM ledger l "
            "JOIN (SELECT project_id, max(seq) AS seq FROM ledger GROUP BY project_id) last "
            "USING (project_id, seq) ORDER BY l.project_id"
        )
    }


def append(connection: Connection, row: LedgerRow) -> None:
    """Appends a row."""
    connection.execute(
        f"INSERT INTO ledger ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            row.project_id,
            row.seq,
            row.previous,
            row.link,
            json.dumps(row.view, ensure_ascii=False, sort_keys=True, separators=(",", ":")),
            row.kind,
            row.intent_seq,
        ),
    )


def rows(connection: Connection, project_id: str) -> Iterator[LedgerRow]:
    """Gives a chain from its first row."""
    after = 0
    while found := connection.rows(
        f"SELECT {_COLUMNS} FROM ledger WHERE project_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        (project_id, after, PAGE_ROWS),
    ):
        yield from map(_row, found)
        after = found[-1][1]


def tail(connection: Connection, project_id: str, limit: int) -> list[LedgerRow]:
    """Gives a chain's last rows, oldest first."""
    found = connection.rows(
        f"SELECT {_COLUMNS} FROM ledger WHERE project_id = ? ORDER BY seq DESC LIMIT ?", (project_id, limit)
    )
    return [_row(row) for row in reversed(found)]


def of_kind(connection: Connection, project_id: str, kind: str) -> list[LedgerRow]:
    """Gives a chain's rows of one kind other than `read`, oldest first."""
    return [
        _row(row)
        for row in connection.rows(
            f"SELECT {_COLUMNS} FROM ledger WHERE project_id = ? AND kind = ? AND kind <> 'read' ORDER BY seq",
            (project_id, kind),
        )
    ]


def intents_without_outcome(connection: Connection) -> list[LedgerRow]:
    """Gives the intents of all chains whose outcome was never written."""
    columns = ", ".join(f"i.{name}" for name in _COLUMNS.split(", "))
    return [
        _row(row)
        for row in connection.rows(
            f"SELECT {columns} FROM ledger i WHERE i.kind = 'intent' AND NOT EXISTS "
            "(SELECT 1 FROM ledger o WHERE o.project_id = i.project_id AND o.intent_seq = i.seq) "
            "ORDER BY i.project_id, i.seq"
        )
    ]


def _row(found: tuple[Any, ...]) -> LedgerRow:
    project_id, seq, previous, link, view, kind, intent_seq = found
    return LedgerRow(project_id, seq, previous, link, _view(view), kind, intent_seq)


def _view(stored: str) -> dict[str, Any]:
    """Gives the stored view; a damaged one as what no link was made of, so that verify finds the row."""
    try:
        view = json.loads(stored)
    except ValueError:
        return {"damaged": True}
    return view if isinstance(view, dict) else {"damaged": True}
