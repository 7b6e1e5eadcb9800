"""How a database file comes to be, and how one that can't be used is told apart (10-operations, durability).

A new database is built beside its place and renamed into it when it is whole and durable. So an empty file, or a WAL
without its database, was never left by us: it is damage, and is refused instead of being taken for a new one.
"""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from memory_git.domain.errors import Unavailable
from memory_git.storage.migrate import Schema, migrate, name_database
from memory_git.storage.settings import SqliteSettings, connect

_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_COMPANIONS = ("", "-wal", "-shm", "-journal")
_RESTORE = "restore it from a backup; the file was left as it is"


def make_directory(directory: Path) -> None:
    """Makes the directory, for its owner alone, where it is absent."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    directory.mkdir(mode=0o700, exist_ok=True)
    sync_directory(directory.parent)


def create(path: Path, schema: Schema, settings: SqliteSettings) -> None:
    """Makes a database with the whole schema appear at the path at once; the caller holds the lock."""
    _require_no_remains(path)
    new = path.with_name(path.name + ".new")
    remove(new)
    os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    driver = connect(str(new), settings, read_only=False, cache_kib=2048)
    try:
        name_database(driver, schema)
        migrate(driver, schema)
    finally:
        driver.close()
    install(new, path)


def install(new: Path, path: Path) -> None:
    """Moves a closed database to its place, durably."""
    descriptor = os.open(new, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    new.rename(path)
    sync_directory(path.parent)


def remove(path: Path) -> None:
    """Removes a database file and what SQLite keeps beside it."""
    for suffix in _COMPANIONS:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def require_database(path: Path) -> None:
    """Refuses a file that is no SQLite database, or is cut short, before SQLite opens it.

    SQLite itself finds a missing end only when a query comes to it. While a WAL holds pages the file may be short.
    """
    if not path.is_file():
        raise unreadable(path, "is no file")
    head = _header(path)
    if head[: len(_MAGIC)] != _MAGIC:
        raise unreadable(path, "is no SQLite database" if head else "is empty")
    if len(head) < _HEADER_BYTES or (not _has_wal(path) and path.stat().st_size < _whole_size(head)):
        raise unreadable(path, "is cut short")


def _header(path: Path) -> bytes:
    """Reads through SQLite's own file layer: closing a file of ours would drop the locks of its other openings here."""
    flags = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0]
    file = apsw.VFSFile("", str(path), flags)
    try:
        return file.xRead(min(_HEADER_BYTES, file.xFileSize()), 0)
    finally:
        file.xClose()


def _whole_size(head: bytes) -> int:
    """Gives the size that a header promises; 0 when an old program wrote the count (file format, 1.3.7)."""
    page_bytes, changes, pages, counted_at = (
        int.from_bytes(head[at : at + size]) for at, size in ((16, 2), (24, 4), (28, 4), (92, 4))
    )
    return pages * (65_536 if page_bytes == 1 else page_bytes) if changes == counted_at else 0


def _has_wal(path: Path) -> bool:
    wal = path.with_name(path.name + "-wal")
    return wal.exists() and wal.stat().st_size > 0


def unreadable(path: Path, what: str) -> Unavailable:
    """Gives the refusal of a damaged file, with what to do about it."""
    return Unavailable("database_unreadable", f"{path.name} {what}; {_RESTORE}")


def unusable(path: Path, error: OSError) -> Unavailable:
    """Gives the refusal for a place that the system does not let us use."""
    return Unavailable("database_unreadable", f"{path.name} can't be opened: {error.strerror}")


def sync_directory(directory: Path) -> None:
    """Makes names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _require_no_remains(path: Path) -> None:
    if _has_wal(path):
        raise unreadable(path, "is absent, but its write-ahead log is there")
