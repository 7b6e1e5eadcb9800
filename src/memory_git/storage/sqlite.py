"""The SQLite engine: one file, one writer thread, snapshot reads (2-architecture, engines)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import apsw

from memory_git.domain.errors import Unavailable
from memory_git.storage import backup, birth
from memory_git.storage.connection import Connection, Value
from memory_git.storage.engine import ANY, Turn
from memory_git.storage.errors import translate
from memory_git.storage.migrate import Schema, require_current
from memory_git.storage.readers import Readers
from memory_git.storage.scrub import scrub
from memory_git.storage.settings import SqliteSettings, connect, require_sqlite
from memory_git.storage.writing import Writing

__all__ = ["Connection", "Database", "Schema", "SqliteSettings", "Value"]

T = TypeVar("T")
_CACHE_KIB = 8_192
_DEFAULT = SqliteSettings()


class Database:
    """One SQLite file, written by one thread and read by many; closed in the end."""

    def __init__(self, path: Path, schema: Schema, settings: SqliteSettings, writing: Writing | None) -> None:
        self.path = path
        self._schema = schema
        self._settings = settings
        self._writing = writing
        self._readers = Readers(self._connect_reader)

    @classmethod
    def open(
        cls, path: Path, schema: Schema, settings: SqliteSettings = _DEFAULT, *, read_only: bool = False
    ) -> Database:
        """Opens the file, creating or migrating it, with its durability proved; else refuses and says why.

        `read_only` is for recovery: every read works, and nothing is created, migrated or written.
        """
        require_sqlite(apsw.sqlite_lib_version())
        path = path.resolve()
        try:
            if read_only:
                _require_readable(path, schema, settings)
            return cls(path, schema, settings, None if read_only else Writing(path, schema, settings))
        except apsw.Error as error:
            raise _cannot_open(path, error) from error
        except OSError as error:
            raise birth.unusable(path, error) from error

    name = "sqlite"
    is_shared = False

    @property
    def place(self) -> str:
        """The path of the file."""
        return str(self.path)

    def write(self, work: Callable[[Connection], T], turn: Turn = ANY) -> T:
        """Gives what the work returned once it is durable; an exception of the work undoes it and is raised here.

        Works of many callers share one commit, each in its savepoint. A work runs on the writer's thread, once,
        and must not call write() on this database. One writes at a time here, so `turn` says nothing.
        """
        del turn
        if self._writing is None:
            raise _read_only()
        return self._writing.writer.write(work)

    def write_soon(
        self, work: Callable[[Connection], T], told: Callable[[], None], turn: Turn = ANY
    ) -> Callable[[], T]:
        """Queues a work as `write` does, and gives what to call for its outcome once `told` was called, in the writer's thread."""
        del turn
        if self._writing is None:
            raise _read_only()
        return self._writing.writer.write_soon(work, told)

    def read(self) -> AbstractContextManager[Connection]:
        """Lends a connection on one snapshot, taken on entry; a read inside a read has a snapshot of its own."""
        return self._readers.read()

    def backup(self, to: Path) -> None:
        """Writes a consistent copy to a file that must not exist, while reads and writes go on."""
        driver = self._connect_reader()
        try:
            backup.copy(driver, to)
        except apsw.Error as error:
            raise translate(error) from error
        finally:
            driver.close(True)

    def scrub(self) -> None:
        """Leaves no trace of erased rows in the file or its WAL; writes wait meanwhile. Not from inside a write."""
        if self._writing is None:
            raise _read_only()
        self._writing.writer.check()
        try:
            scrub(self.path, self._settings)
        except apsw.Error as error:
            raise translate(error) from error

    @property
    def waiting(self) -> int:
        """Counts the writes in the queue, about; for metrics."""
        return self._writing.writer.waiting if self._writing else 0

    def check(self) -> str:
        """Gives how durable a commit is; refuses with the reason when the database can't be read, or written though it should be."""
        if self._writing is not None:
            self._writing.writer.check()
        with self.read() as connection:
            version = connection.value("PRAGMA user_version")
        if version != len(self._schema.migrations):
            raise Unavailable("schema_newer", "another program has migrated the database; restart this one")
        return "recovery_readonly" if self._writing is None else "wal, synchronous full"

    def announce(self, notice: str) -> None:
        """Does nothing: who else has the file open reads it."""

    def hear(self, notice: Callable[[str], None], missed: Callable[[], None]) -> None:
        """Does nothing, like `announce`."""

    def close(self) -> None:
        """Answers the writes that wait, moves the WAL into the file, and closes; a second call does nothing."""
        self._readers.close()
        if self._writing is not None:
            self._writing.close()

    def _connect_reader(self) -> apsw.Connection:
        read_only = self._writing is None
        driver = connect(str(self.path), self._settings, read_only=read_only, cache_kib=_CACHE_KIB)
        driver.execute("PRAGMA query_only = 1")
        driver.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return driver


def _read_only() -> Unavailable:
    return Unavailable("recovery_readonly", "the database is open for reading only, for recovery")


def _require_readable(path: Path, schema: Schema, settings: SqliteSettings) -> None:
    if not path.exists():
        raise Unavailable("database_absent", f"{path.name} is not there; restore it first")
    birth.require_database(path)
    driver = connect(str(path), settings, read_only=True, cache_kib=_CACHE_KIB)
    try:
        require_current(driver, schema)
    finally:
        driver.close(True)


def _cannot_open(path: Path, error: apsw.Error) -> Exception:
    if isinstance(error, apsw.CorruptError | apsw.NotADBError | apsw.CantOpenError):
        return birth.unreadable(path, f"can't be read as a database ({error})")
    return translate(error)
