"""Room in the WAL file ahead of what is written of it (10-operations, durability).

A sync of a file that has grown writes its length and blocks too, and takes twice as long as one of pages that were there. So the
file is made longer by zeros, ahead of need: SQLite takes what lies behind the last whole frame for nothing, as after any crash.
"""

from __future__ import annotations

import contextlib
import os

import apsw

LEAST_BYTES = 1 << 20
"""A WAL that holds less gets no room: a program that writes once and ends does not pay for it."""
AHEAD_BYTES = 1 << 18
"""With less room than this left, more is made: as much as the WAL holds, up to MOST_BYTES."""
MOST_BYTES = 8 << 20
_HEADER, _FRAME_HEADER = 32, 24
_ZEROS = bytes(1 << 20)


class WalRoom:
    """The room in the WAL of a connection that writes; made only while nobody else can write to the database."""

    def __init__(self, driver: apsw.Connection) -> None:
        self._path = f"{driver.filename}-wal"
        self._frame_bytes = _FRAME_HEADER + int(driver.pragma("page_size"))
        self._held = 0
        self._length = 0
        self._is_refused = False
        driver.set_wal_hook(self._note)

    def _note(self, _connection: apsw.Connection, _name: str, frames: int) -> int:
        held = _HEADER + frames * self._frame_bytes
        if held < self._held:
            self._length = 0  # begun anew, perhaps cut: to be looked at
        self._held = held
        return apsw.SQLITE_OK

    def is_short(self) -> bool:
        """Decides whether the WAL holds much, and what is left of its file is little."""
        if self._held < LEAST_BYTES or self._is_refused:
            return False
        if self._held + AHEAD_BYTES <= self._length:
            return False
        self._length = os.stat(self._path).st_size  # noqa: PTH116 - Path costs three times as much
        return self._held + AHEAD_BYTES > self._length

    def make(self) -> None:
        """Makes room, durably; where the disk has none, leaves the file as it was and asks no more."""
        length = os.stat(self._path).st_size  # noqa: PTH116
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            self._length = _lengthened(descriptor, length, min(length, MOST_BYTES))
        except OSError:
            self._is_refused = True
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, length)
        finally:
            os.close(descriptor)


def _lengthened(descriptor: int, length: int, more: int) -> int:
    """Writes zeros behind the end of a file, durably, and gives its new length."""
    for start in range(length, length + more, len(_ZEROS)):
        os.pwrite(descriptor, _ZEROS[: length + more - start], start)
    os.fsync(descriptor)
    return os.fstat(descriptor).st_size
