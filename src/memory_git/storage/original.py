"""Reads a database of the original Lethe, another program's file: never written, not even its companions (5-lethe, legacy baseline).

1. A file without a WAL is opened as immutable; one with a WAL is copied with it into a directory of its own, and the copy is read.
2. What is read is untrusted: tables alone (no views), no trust in its schema, a quick check first, every row in its plain types.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from memory_git.domain.errors import Invalid

Row = dict[str, Any]
MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_FLAGS = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


class OriginalFile:
    """One open database of the original."""

    def __init__(self, driver: apsw.Connection) -> None:
        self._driver = driver
        self._columns: dict[str, tuple[str, ...]] = {}
        with _reading():
            found = driver.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            self.tables = frozenset(str(name) for (name,) in found)

    def columns(self, table: str) -> tuple[str, ...]:
        """Gives the columns of a table, none where there is no such table."""
        if table not in self.tables:
            return ()
        if table not in self._columns:
            with _reading():
                found = self._driver.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
                self._columns[table] = tuple(str(name) for (name,) in found)
        return self._columns[table]

    def rows(self, table: str, where: str | None = None, value: str | None = None) -> Iterator[Row]:
        """Yields the rows of a table in the order in which they were written, those alone whose column `where` has a value."""
        names = self.columns(table)
        if not names:
            return
        condition = f" WHERE {_name(where)} = ?" if where is not None else ""
        listed = ", ".join(map(_name, names))
        statement = f"SELECT {listed} FROM {_name(table)}{condition} ORDER BY rowid"
        yield from self._select(statement, names, () if where is None else (value,))

    def _select(self, statement: str, names: Sequence[str], params: Sequence[Any]) -> Iterator[Row]:
        with _reading():
            for row in self._driver.execute(statement, params):
                yield dict(zip(names, row, strict=True))


@contextmanager
def open_original(path: Path) -> Iterator[OriginalFile]:
    """Lends a database of the original; raises Invalid `import_unreadable` or `import_damaged` with what to do."""
    path = Path(path)
    _require_database(path)
    with _companion_free(path) as (place, is_copy):
        mode = "mode=ro" if is_copy else "mode=ro&immutable=1"
        driver = None
        try:
            driver = apsw.Connection(f"file:{quote(str(place))}?{mode}", flags=_FLAGS)
            _distrust(driver)
            yield OriginalFile(driver)
        except apsw.Error as error:
            raise _damaged(error) from error
        finally:
            if driver is not None:
                driver.close(True)


def _distrust(driver: apsw.Connection) -> None:
    driver.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    driver.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    driver.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    driver.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
    driver.execute("PRAGMA temp_store = 2")
    driver.execute("PRAGMA cell_size_check = 1")
    found = driver.execute("PRAGMA quick_check(1)").fetchone()
    if found is None or found[0] != "ok":
        raise _damaged(found[0] if found else "no answer")


def _require_database(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER_BYTES)
        size = path.stat().st_size
    except OSError as error:
        why = error.strerror or "can't be read"
        raise Invalid("import_unreadable", f"{path.name}: {why}", field="file") from error
    if head[: len(MAGIC)] != MAGIC:
        hint = ": unpack it first (gunzip)" if head[:2] == b"\x1f\x8b" else ""
        raise Invalid("import_unreadable", f"{path.name} is no SQLite database{hint}", field="file")
    if len(head) < _HEADER_BYTES or size < _page_bytes(head):
        raise _damaged("the file is cut short")
    if size % _page_bytes(head) or (_counts_pages(head) and size < _page_bytes(head) * _number(head, 28)):
        raise _damaged("the file is cut short")


def _page_bytes(head: bytes) -> int:
    """Gives the size of a page, as the header tells it (SQLite's file format, 1.3.2)."""
    told = int.from_bytes(head[16:18], "big")
    return 65536 if told == 1 else max(told, 512)


def _counts_pages(head: bytes) -> bool:
    """Decides whether the header's count of pages is one to go by: it is of the last change."""
    return _number(head, 24) == _number(head, 92)


def _number(head: bytes, at: int) -> int:
    return int.from_bytes(head[at : at + 4], "big")


@contextmanager
def _companion_free(path: Path) -> Iterator[tuple[Path, bool]]:
    """Lends a path that can be read without anything being made beside the original (rule 1)."""
    wal = path.with_name(path.name + "-wal")
    if not wal.exists() or wal.stat().st_size == 0:
        yield path, False
        return
    with tempfile.TemporaryDirectory(prefix="memory-git-import-") as directory:
        before = [_stamp(path), _stamp(wal)]
        for source in (path, wal):
            shutil.copyfile(source, Path(directory) / source.name)
        if [_stamp(path), _stamp(wal)] != before:
            raise Invalid(
                "import_unreadable",
                f"{path.name} is being written: stop the program that has it open, or import a backup of it",
                field="file",
            )
        yield Path(directory) / path.name, True


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (apsw.Error, UnicodeDecodeError) as error:
        raise _damaged(error) from error


def _damaged(why: object) -> Invalid:
    told = "a text is not UTF-8" if isinstance(why, UnicodeDecodeError) else str(why)[:200]
    return Invalid(
        "import_damaged",
        f"the database is damaged ({told}): nothing was imported; import a backup of it, or what `sqlite3 FILE .recover` saves",
        field="file",
    )


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
