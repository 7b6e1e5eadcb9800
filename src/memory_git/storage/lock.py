"""A fair lock between processes, taken before BEGIN IMMEDIATE (2-architecture, engines).

SQLite's own busy timeout polls, and lets one process write two thousand times while another waits. Here two locked
files make a turnstile: who holds `.turn` is next, and lets go of it on getting `.lock`. So nobody who has just written
gets in again before those who wait. The kernel drops both when a process dies.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path


class WriterLock:
    """Lets one process at a time write; used by one thread of each."""

    def __init__(self, database: Path) -> None:
        self._turn = _open(database.with_name(database.name + ".turn"))
        self._lock = _open(database.with_name(database.name + ".lock"))
        self._state = threading.Condition()
        self._queued = False
        self._wanted = False
        self._granted = False
        self._closed = False

    def acquire(self, timeout_s: float) -> bool:
        """Decides within the time if this process may write; False leaves nothing held."""
        with self._state:
            if not self._queued:
                if self._enter(fcntl.LOCK_NB):
                    return True
                self._queued = True
                threading.Thread(target=self._queue, name="writer-lock", daemon=True).start()
            self._wanted = True
            self._state.wait_for(lambda: self._granted, timeout_s)
            granted, self._granted, self._wanted = self._granted, False, False
            return granted

    def release(self) -> None:
        """Lets the next process write."""
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        """Closes the files; a wait still under way closes them when it ends."""
        with self._state:
            self._closed = True
            if not self._queued:
                self._close_files()

    def _queue(self) -> None:
        """Waits in the kernel's queue, which has no time limit, for an acquire that has one."""
        self._enter(0)
        with self._state:
            self._queued = False
            if self._wanted:
                self._granted = True
                self._state.notify()
            else:
                self.release()
            if self._closed:
                self._close_files()

    def _close_files(self) -> None:
        os.close(self._turn)
        os.close(self._lock)

    def _enter(self, flags: int) -> bool:
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX | flags)
        except BlockingIOError:
            return False
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | flags)
        except BlockingIOError:
            return False
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)
        return True


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
