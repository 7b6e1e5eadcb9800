"""The durability settings of a SQLite connection: set, read back, and refused when weaker (10-operations, durability)."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from memory_git.domain.errors import Unavailable

OLDEST_SQLITE = (3, 51, 3)
_SYNCHRONOUS = {"FULL": 2, "EXTRA": 3}
_STATEMENTS_KEPT = 512


@dataclass(frozen=True, slots=True)
class SqliteSettings:
    """What may be set; `autocheckpoint_pages` 0 means that a background thread checkpoints each 250 ms."""

    synchronous: str = "FULL"
    busy_timeout_ms: int = 5000
    autocheckpoint_pages: int = 0

    def __post_init__(self) -> None:
        if self.synchronous.upper() not in _SYNCHRONOUS:
            raise _weak(f"synchronous may be FULL or EXTRA, not {self.synchronous}")
        if not 0 < self.busy_timeout_ms <= 600_000:
            raise _weak(f"busy_timeout_ms must lie between 1 and 600000, not {self.busy_timeout_ms}")
        if not 0 <= self.autocheckpoint_pages <= 1_000_000:
            raise _weak(
                f"autocheckpoint_pages must lie between 0 and 1000000, not {self.autocheckpoint_pages}"
            )

    @property
    def busy_timeout_s(self) -> float:
        """How long a writer waits for another process before it is refused."""
        return self.busy_timeout_ms / 1000


def require_sqlite(version: str) -> None:
    """Refuses a SQLite with the WAL-reset fault (2-architecture, engines)."""
    found = tuple(int(part) for part in version.split("."))
    if found < OLDEST_SQLITE:
        raise Unavailable(
            "sqlite_too_old",
            f"SQLite {version} can corrupt a database that two connections checkpoint at once; "
            "install an apsw that brings 3.51.3 or newer",
        )


def connect(path: str, settings: SqliteSettings, *, read_only: bool, cache_kib: int) -> apsw.Connection:
    """Opens one connection whose settings were read back and found as asked; never creates the file."""
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    connection = apsw.Connection(path, flags=flags, statementcachesize=_STATEMENTS_KEPT)
    try:
        _strict_text(connection)
        for name, value, expected in _pragmas(settings, cache_kib, read_only):
            _set(connection, name, value, expected)
    except BaseException:
        connection.close(True)
        raise
    return connection


def _strict_text(connection: apsw.Connection) -> None:
    """Makes a double-quoted word a name and never a string, so that a misspelt column is an error."""
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)


def _pragmas(
    settings: SqliteSettings, cache_kib: int, read_only: bool
) -> list[tuple[str, str | int, object]]:
    """Lists name, value, and what reading it back must give. Temporary tables stay in memory: no text in /tmp."""
    pragmas: list[tuple[str, str | int, object]] = [
        ("busy_timeout", settings.busy_timeout_ms, settings.busy_timeout_ms)
    ]
    if not read_only:
        pragmas.append(("journal_mode", "WAL", "wal"))
    synchronous = settings.synchronous.upper()
    return [
        *pragmas,
        ("synchronous", synchronous, _SYNCHRONOUS[synchronous]),
        ("foreign_keys", 1, 1),
        ("secure_delete", 1, 1),
        ("fullfsync", 1, 1),
        ("checkpoint_fullfsync", 1, 1),
        ("trusted_schema", 0, 0),
        ("temp_store", 2, 2),
        ("cache_size", -cache_kib, -cache_kib),
        ("wal_autocheckpoint", settings.autocheckpoint_pages, settings.autocheckpoint_pages),
    ]


def _set(connection: apsw.Connection, name: str, value: str | int, expected: object) -> None:
    connection.execute(f"PRAGMA {name} = {value}").fetchall()
    found = connection.execute(f"PRAGMA {name}").fetchone()
    if found is None or found[0] != expected:
        raise _weak(f"the storage does not hold {name} = {value}: it answers {found and found[0]}")


def _weak(why: str) -> Unavailable:
    return Unavailable("weak_durability", f"{why}; an acknowledged write could be lost")
