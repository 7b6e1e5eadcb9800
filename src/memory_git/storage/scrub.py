"""Leaves no trace of erased rows in the file or its WAL (10-operations, redaction)."""

from __future__ import annotations

import time
from pathlib import Path

import apsw

from memory_git.storage.errors import busy
from memory_git.storage.lock import WriterLock
from memory_git.storage.settings import SqliteSettings, connect

_CACHE_KIB = 8_192
_PAUSE_S = 0.01


def scrub(path: Path, settings: SqliteSettings) -> None:
    """Rewrites the file and empties the WAL while every writer waits.

    It queues for the lock like another process would, so this process's own writer waits too. Readers that hold an
    older snapshot longer than the busy timeout make it refuse with `busy`: what they read is still in the WAL.
    """
    lock = WriterLock(path)
    try:
        if not lock.acquire(settings.busy_timeout_s):
            raise busy("another process has been writing all the while; nothing was scrubbed")
        try:
            _rewrite(path, settings)
        finally:
            lock.release()
    finally:
        lock.close()


def _rewrite(path: Path, settings: SqliteSettings) -> None:
    driver = connect(str(path), settings, read_only=False, cache_kib=_CACHE_KIB)
    try:
        driver.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        driver.execute("VACUUM")
        _empty_wal(driver, settings.busy_timeout_s)
    finally:
        driver.close(True)


def _empty_wal(driver: apsw.Connection, timeout_s: float) -> None:
    """Empties the WAL. A checkpoint under way on another connection refuses at once, whatever the busy timeout: so ask again."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            driver.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            return
        except apsw.BusyError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE_S)
