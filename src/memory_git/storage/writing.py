"""All that a process needs to write to one file: lock, connection, writer, checkpoints (10-operations, durability)."""

from __future__ import annotations

from pathlib import Path

import apsw

from memory_git.storage import birth
from memory_git.storage.checkpoint import Checkpoints
from memory_git.storage.errors import busy, ends_writing
from memory_git.storage.lock import WriterLock
from memory_git.storage.migrate import Schema, migrate
from memory_git.storage.settings import SqliteSettings, connect
from memory_git.storage.wal_room import WalRoom
from memory_git.storage.writer import Writer

_CACHE_KIB = 65_536


class Writing:
    """Opens, creates or migrates the file, and serves writes until it is closed."""

    def __init__(self, path: Path, schema: Schema, settings: SqliteSettings) -> None:
        self._closed = False
        birth.make_directory(path.parent)
        self._lock = WriterLock(path)
        try:
            self._driver = _open(path, schema, settings, self._lock)
        except BaseException:
            self._lock.close()
            raise
        is_apart = not settings.autocheckpoint_pages
        room = WalRoom(self._driver) if is_apart else None  # SQLite's own checkpoints and this share one hook
        self.writer = Writer(self._driver, self._lock, settings.busy_timeout_s, room)
        self._checkpoints = self._checkpoint_apart(path, settings) if is_apart else None

    def close(self) -> None:
        """Answers what waits, moves the WAL into the file unless the storage failed, and closes; once."""
        if self._closed:
            return
        self._closed = True
        self.writer.close()
        if self._checkpoints is not None:
            self._checkpoints.close()
        if self.writer.failure is None:
            _checkpoint(self._driver)
        else:
            self._driver.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._driver.close(True)
        self._lock.close()

    def _checkpoint_apart(self, path: Path, settings: SqliteSettings) -> Checkpoints:
        driver = connect(str(path), settings, read_only=False, cache_kib=64)
        driver.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return Checkpoints(driver, self.writer.catch_up, self.writer.fail)


def _open(path: Path, schema: Schema, settings: SqliteSettings, lock: WriterLock) -> apsw.Connection:
    if not lock.acquire(settings.busy_timeout_s):
        raise busy("another process is writing and did not let this one open the database")
    try:
        if not path.exists():
            birth.create(path, schema, settings)
        birth.require_database(path)
        driver = connect(str(path), settings, read_only=False, cache_kib=_CACHE_KIB)
        try:
            migrate(driver, schema)
            _checkpoint(driver)
        except BaseException:
            driver.close(True)
            raise
        return driver
    finally:
        lock.release()


def _checkpoint(driver: apsw.Connection) -> None:
    """Copies the WAL into the file, when opening also what an earlier process could not make durable.

    After a failed sync the kernel holds pages that it takes for written; copying them writes them anew.
    """
    try:
        driver.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    except apsw.Error as error:
        if ends_writing(error):
            raise
