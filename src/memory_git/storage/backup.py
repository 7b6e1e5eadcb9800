"""A consistent copy of a database that goes on serving (10-operations, backup and recovery)."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from memory_git.domain.errors import Clash
from memory_git.storage import birth


def copy(source: apsw.Connection, to: Path) -> None:
    """Writes one snapshot of the source to a new file, which appears whole and durable, or not at all."""
    if to.exists():
        raise Clash("backup_exists", f"{to.name} is there already; a backup never overwrites a file")
    birth.make_directory(to.parent)
    new = to.with_name(to.name + ".new")
    birth.remove(new)
    try:
        _copy_pages(source, new)
        birth.install(new, to)
    except BaseException:
        birth.remove(new)
        raise


def _copy_pages(source: apsw.Connection, new: Path) -> None:
    """Copies in one step, so that no commit made meanwhile starts it again."""
    os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    target = apsw.Connection(str(new), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with target.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step()
    finally:
        target.close(True)
