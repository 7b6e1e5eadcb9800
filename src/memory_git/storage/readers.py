"""A pool of connections that read, each use one snapshot (2-architecture, engines)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

from memory_git.domain.errors import Unavailable
from memory_git.storage.connection import Connection
from memory_git.storage.errors import translate

IDLE_READERS = 16


class Readers:
    """Lends connections; as many as are asked for at once, of which IDLE_READERS are kept.

    There is no upper bound here: a thread that reads inside a read would wait for itself.
    """

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._idle: list[apsw.Connection] = []
        self._gate = threading.Lock()
        self._closed = False

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Lends a connection whose snapshot is fixed on entry, until the end of the block."""
        driver = self._lend()
        try:
            _begin(driver)
            yield Connection(driver)
        finally:
            self._take_back(driver)

    def close(self) -> None:
        """Closes the idle connections; those lent are closed on their return."""
        with self._gate:
            self._closed = True
            idle, self._idle = self._idle, []
        for driver in idle:
            driver.close(True)

    def _lend(self) -> apsw.Connection:
        with self._gate:
            if self._closed:
                raise Unavailable("closed", "the database is closed")
            if self._idle:
                return self._idle.pop()
        try:
            return self._connect()
        except apsw.Error as error:
            raise translate(error) from error

    def _take_back(self, driver: apsw.Connection) -> None:
        try:
            driver.execute("ROLLBACK")
        except apsw.Error:
            driver.close(True)
            return
        with self._gate:
            if not self._closed and len(self._idle) < IDLE_READERS:
                self._idle.append(driver)
                return
        driver.close(True)


def _begin(driver: apsw.Connection) -> None:
    """Begins, and reads once: SQLite fixes the snapshot at the first read, not at BEGIN."""
    try:
        driver.execute("BEGIN")
        driver.execute("SELECT 1 FROM sqlite_schema").fetchone()
    except apsw.Error as error:
        raise translate(error) from error
