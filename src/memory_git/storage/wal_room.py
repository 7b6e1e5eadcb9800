"""Room in the WAL file ahead of what is written of it (10-operations, durability).

A sync of a file that has grown writes its length and blocks too, and takes twice as long as one of pages that were there. So the
file is made longer by zeros, ahead of need: SQLite takes what lies behind the last whole frame for nothing, as after any crash.
"""

from __future__ import annotations

import contextlib
import os

LEAST_BYTES = 1 << 20
"""A WAL that never was so long gets no room: a program that writes once and ends does not pay for it."""
MOST_BYTES = 8 << 20
"""So much is added at once; before, as much again as there is."""
_MOST_IN_ALL = 128 << 20
_ZEROS = bytes(1 << 20)


class WalRoom:
    """The room made in one WAL file by one process; asked and made only while nobody else can write to the database."""

    def __init__(self, database: str) -> None:
        self._path = f"{database}-wal"
        self._descriptor: int | None = None
        self._length = LEAST_BYTES
        self._is_refused = False

    def is_used_up(self) -> bool:
        """Decides whether SQLite has written beyond what was there when this was last asked or made."""
        if self._is_refused:
            return False
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return False
        length = os.fstat(self._descriptor).st_size
        self._length = max(LEAST_BYTES, min(self._length, length))  # shorter than it was: it was cut since
        return self._length < length < _MOST_IN_ALL

    def make(self) -> None:
        """Makes room, durably; where there is none on the disk, leaves the file as it was and asks no more."""
        descriptor = self._descriptor
        assert descriptor is not None, "asked before"
        length = os.fstat(descriptor).st_size
        try:
            self._length = _lengthened(descriptor, length, min(length, MOST_BYTES))
        except OSError:
            self.close()
            self._is_refused = True
            with contextlib.suppress(OSError):
                os.truncate(self._path, length)

    def close(self) -> None:
        """Lets go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _lengthened(descriptor: int, length: int, more: int) -> int:
    """Writes zeros behind the end of a file, durably, and gives its new length."""
    for start in range(length, length + more, len(_ZEROS)):
        os.pwrite(descriptor, _ZEROS[: length + more - start], start)
    os.fsync(descriptor)
    return os.fstat(descriptor).st_size
