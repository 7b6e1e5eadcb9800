"""What the SQLite driver raises, translated in one function (10-operations, durability).

    busy                another writer holds the database; a retry may succeed
    storage_full        no room; nothing was written, and writing goes on once there is room
    storage_failed      an I/O error or a damaged page; the writer stops rather than guess
    recovery_readonly   the database was opened to be read only
    not_text            a parameter is a text that UTF-8 can't write: a lone surrogate; nothing was written
    ConstraintBroken    a constraint refused a row; the caller of the statement says what that means

Anything else is a mistake in the statement and stays as the driver raised it.
"""

from __future__ import annotations

import apsw

from memory_git.domain.errors import Invalid, Unavailable

_FULL = frozenset({apsw.SQLITE_FULL, apsw.SQLITE_IOERR_SHMSIZE})
_BUSY = frozenset({apsw.SQLITE_BUSY, apsw.SQLITE_LOCKED, apsw.SQLITE_PROTOCOL})
_FAILED = frozenset({apsw.SQLITE_IOERR, apsw.SQLITE_CORRUPT, apsw.SQLITE_NOTADB, apsw.SQLITE_CANTOPEN})


class ConstraintBroken(Exception):
    """A UNIQUE, CHECK, NOT NULL or foreign key constraint refused a row."""


def translate(error: apsw.Error | UnicodeEncodeError) -> Exception:
    """Gives the exception that the upper floors know for one of the driver's; itself when it is a mistake in SQL."""
    if isinstance(error, UnicodeEncodeError):
        return Invalid("not_text", "a text holds a lone surrogate, which UTF-8 can't write")
    extended = getattr(error, "extendedresult", 0)
    primary = extended & 0xFF
    if extended in _FULL:
        return Unavailable("storage_full", "the disk that holds the database is full", retry_after_s=5)
    if primary in _BUSY:
        return busy("another process holds the database")
    if primary in _FAILED:
        return Unavailable("storage_failed", f"the storage failed: {error}")
    if primary == apsw.SQLITE_READONLY:
        return Unavailable("recovery_readonly", "the database is open for reading only")
    if primary == apsw.SQLITE_CONSTRAINT:
        return ConstraintBroken(str(error))
    return error


def ends_writing(error: apsw.Error) -> bool:
    """Decides if the writer must stop: after a failed sync or a damaged page no later commit can be trusted.

    A full disk is no failure. A damaged virtual table is one request's failure: its index can be rebuilt.
    """
    extended = getattr(error, "extendedresult", 0)
    if extended in _FULL or extended == apsw.SQLITE_CORRUPT_VTAB:
        return False
    return extended & 0xFF in _FAILED


def busy(message: str, retry_after_s: int = 1) -> Unavailable:
    """Gives the refusal for a caller who should come back in a moment."""
    return Unavailable("busy", message, retry_after_s=retry_after_s)


def again(refusal: Unavailable) -> Unavailable:
    """Gives a fresh copy of a refusal, so that each waiting thread raises one of its own."""
    return Unavailable(refusal.code, refusal.message, **refusal.facts)
