"""The journal's copy beside the ledger's anchor: a file of lines `{seq, previous, link, view}`, only ever appended to."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memory_git.domain.chain import link_keyed
from memory_git.domain.envelope import MergeKeys
from memory_git.domain.errors import Unavailable
from memory_git.storage.charon_journal import JournalRow

JOURNAL = "journal.jsonl"


class JournalFile:
    """One file, shared by the processes of a data directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        """Says whether there is a copy here."""
        return self.path.exists()

    def read(self, keys: MergeKeys) -> list[JournalRow]:
        """Gives all entries, none where there is no file; raises Unavailable `journal_damaged` where one does not verify."""
        rows = list(self._rows())
        previous: str | None = None
        for place, row in enumerate(rows, start=1):
            secret = keys.secret(str(row.view.get("key_id")))
            if secret is None:
                raise self._damaged(place, "it was written under a ledger key that is not in keys/ledger")
            if (row.seq, row.previous) != (place, previous) or row.link != link_keyed(
                secret, previous, row.view
            ):
                raise self._damaged(place, "it is not what was written")
            previous = row.link
        return rows

    def last_seq(self) -> int:
        """Gives the number of the last entry, 0 where there is none."""
        try:
            lines = _whole_lines(self.path.read_bytes())
        except FileNotFoundError:
            return 0
        return int(json.loads(lines[-1])["seq"]) if lines else 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps the other processes from appending; the folder is made where it is absent."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        lock = os.open(self.path.with_name(f".{self.path.name}.lock"), flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def append(self, rows: Sequence[JournalRow]) -> None:
        """Appends entries, durable; what a crash left of a line is cut off first. The caller holds the file."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            file.truncate(sum(len(line) + 1 for line in _whole_lines(file.read())))
            file.seek(0, os.SEEK_END)
            file.write(b"".join(_line(row) for row in rows))
            file.flush()
            os.fsync(file.fileno())

    def put_aside(self) -> None:
        """Renames a file that is no use here, so that a new one can begin; nothing of it is lost."""
        place = 1
        while (aside := self.path.with_name(f"{self.path.name}.aside-{place}")).exists():
            place += 1
        if self.path.exists():
            self.path.rename(aside)

    def _rows(self) -> Iterator[JournalRow]:
        try:
            lines = _whole_lines(self.path.read_bytes())
        except FileNotFoundError:
            return
        for place, line in enumerate(lines, start=1):
            try:
                stored: dict[str, Any] = json.loads(line)
                yield JournalRow(stored["seq"], stored["previous"], stored["link"], stored["view"])
            except (ValueError, KeyError, TypeError):
                raise self._damaged(place, "it can't be read") from None

    def _damaged(self, place: int, why: str) -> Unavailable:
        return Unavailable(
            "journal_damaged",
            f"entry {place} of {self.path}: {why}. Put the right file, and the keys it was written under, in its place",
        )


def _whole_lines(content: bytes) -> list[bytes]:
    return content.split(b"\n")[:-1]


def _line(row: JournalRow) -> bytes:
    stored = {"seq": row.seq, "previous": row.previous, "link": row.link, "view": row.view}
    return json.dumps(stored, ensure_ascii=False, sort_keys=True).encode() + b"\n"
