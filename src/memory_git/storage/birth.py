"""How a database file comes to be, and how one that can't be used is told apart (10-operations, durability).

A new database is built beside its place and renamed into it when it is whole and durable. So an empty file, or a WAL
without its database, was never left by us: it is damage, and is refused instead of being taken for a new one.
"""

from __future__ import annotations

import os
from pathlib import Path

from memory_git.domain.errors import Unavailable
from memory_git.storage.migrate import Schema, migrate, name_database
from memory_git.storage.settings import SqliteSettings, connect

_MAGIC = b"SQLite format 3\0"
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
    """Refuses a file that is cut short or no SQLite database, before SQLite opens it."""
    with path.open("rb") as file:
        head = file.read(len(_MAGIC))
    if head != _MAGIC:
        what = "is empty" if not head else "is no SQLite database"
        raise unreadable(path, what)


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
    wal = path.with_name(path.name + "-wal")
    if wal.exists() and wal.stat().st_size:
        raise unreadable(path, "is absent, but its write-ahead log is there")
