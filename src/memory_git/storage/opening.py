"""Opens a database by where it is: a file is SQLite's, a URL PostgreSQL's (2-architecture, engines)."""

from __future__ import annotations

from pathlib import Path

from memory_git.storage.engine import Database
from memory_git.storage.migrate import Schema
from memory_git.storage.settings import SqliteSettings
from memory_git.storage.sqlite import Database as SqliteDatabase

_DURABLE = SqliteSettings()


def open_database(
    place: Path | str, schema: Schema, settings: SqliteSettings = _DURABLE, *, read_only: bool = False
) -> Database:
    """Opens, or refuses and says why; `settings` are SQLite's. The other engine is imported only where it is asked for."""
    if isinstance(place, Path):
        return SqliteDatabase.open(place, schema, settings, read_only=read_only)
    from memory_git.storage.postgres import PostgresDatabase  # noqa: PLC0415

    return PostgresDatabase.open(place, schema, read_only=read_only)
