"""What stands in a row, in its type; a value of another type, or a time that is none, makes the whole file malformed.

Nobody can tell what else is wrong with such a file, so it is refused before anything is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from memory_git.domain.canonical import MAX_INTEGER
from memory_git.domain.errors import Invalid
from memory_git.interchange.original import go_json
from memory_git.storage.original import Row

_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)? ?(Z|UTC|[+-]\d\d:?\d\d)?(?: [A-Za-z0-9+-]{1,8})?(?: m=\S+)?",
    re.ASCII,
)
Types = Mapping[str, Iterable[str]]
"""Which columns of a table hold what: `text`, `maybe` (text or nothing), `time`, `names` (a JSON list of texts), `texts` (a JSON
object of texts)."""


def cell(row: Row, table: str, name: str) -> str:
    """Gives a text that must be there."""
    value = row.get(name)
    if not isinstance(value, str):
        raise malformed(table, _key(row), name, "is no text")
    return value


def optional(row: Row, table: str, name: str) -> str | None:
    """Gives a text, or None where it is absent or empty."""
    value = row.get(name)
    if value is None or value == "":
        return None
    return cell(row, table, name)


def moment(row: Row, table: str, name: str) -> datetime:
    """Gives a time that must be there, in UTC."""
    found = parse_moment(row.get(name))
    if found is None:
        raise malformed(table, _key(row), name, "is no time")
    return found


def parse_moment(text: object) -> datetime | None:
    """Reads a time in any form that the original wrote: its own, SQLite's, RFC 3339; None when it is none."""
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    try:
        found = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=UTC)
        found += timedelta(microseconds=int((fraction or ".0")[1:7].ljust(6, "0")))
        if zone and zone[0] in "+-":
            minutes = int(zone[1:3]) * 60 + int(zone[-2:])
            found -= timedelta(minutes=-minutes if zone[0] == "-" else minutes)
    except (ValueError, OverflowError):
        return None
    return found


def listed(row: Row, table: str, name: str, kind: type) -> Any:
    """Gives the value of a JSON column, which must be of a kind; an absent one is empty."""
    raw = row.get(name)
    if raw is None:
        return kind()
    try:
        value = go_json.read(cell(row, table, name))
    except go_json.Unread:
        value = ...
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise malformed(table, _key(row), name, f"is no JSON {kind.__name__}")
    return value


def names_in(row: Row, table: str, name: str) -> list[str]:
    """Gives the texts of a JSON list."""
    found: list[str] = listed(row, table, name, list)
    if not all(isinstance(item, str) for item in found):
        raise malformed(table, _key(row), name, "is no list of texts")
    return found


def texts_in(row: Row, table: str, name: str) -> dict[str, str]:
    """Gives the texts of a JSON object, by name."""
    found: dict[str, str] = listed(row, table, name, dict)
    if not all(isinstance(item, str) for item in found.values()):
        raise malformed(table, _key(row), name, "is no object of texts")
    return found


def plain(row: Row, table: str) -> Row:
    """Gives a row that JSON can hold: no blob, no number beyond what a double counts exactly."""
    for name, value in row.items():
        if isinstance(value, bytes):
            raise malformed(table, _key(row), name, "is a blob")
        if isinstance(value, int) and abs(value) > MAX_INTEGER:
            raise malformed(table, _key(row), name, "is a number beyond 2^53-1")
        if isinstance(value, float) and not math.isfinite(value):
            raise malformed(table, _key(row), name, "is no number")
    return row


def typed(row: Row, table: str, types: Types) -> Row:
    """Gives a row whose columns are of their types; those that its schema version does not have are let be."""
    plain(row, table)
    for kind, names in types.items():
        for name in names:
            if name in row or kind in ("text", "time"):
                _READERS[kind](row, table, name)
    return row


def unique(rows: list[Row], table: str, name: str) -> list[Row]:
    """Gives rows that each have a name of their own."""
    seen: set[object] = set()
    for row in rows:
        if row[name] in seen:
            raise malformed(table, row[name], name, "is there twice")
        seen.add(row[name])
    return rows


def malformed(table: str, key: object, column: str, why: str) -> Invalid:
    """Gives the refusal of a file in which a row is not what the original writes."""
    named = str(key)[:80].encode("unicode_escape").decode("ascii")
    return Invalid(
        "import_malformed",
        f"{table}, row {named}: {column} {why}; nothing was imported: import a backup from before the file was damaged",
        table=table,
        column=column,
    )


def _key(row: Row) -> object:
    return next(iter(row.values()), "")


_READERS = {"text": cell, "maybe": optional, "time": moment, "names": names_in, "texts": texts_in}
