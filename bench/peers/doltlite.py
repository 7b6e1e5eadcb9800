"""doltlite: Dolt inside SQLite, which replaces `sqlite3` in this process; synchronous FULL, read back.

A row is (id, text), WITHOUT ROWID: with a rowid, diff and merge take ten times as long. Nothing lets several `dolt_commit`s share a sync: each syncs for itself, inside a transaction too.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from bench import records
from bench.participant import Json, timed
from bench.participant import Participant as Common
from bench.records import Edit

importlib.import_module("doltlite")
sqlite3: Any = importlib.import_module("sqlite3")

_UPDATE = "UPDATE memory SET body = ? WHERE id = ?"
_INSERT = "INSERT INTO memory (body, id) VALUES (?, ?)"
_COMMIT = "SELECT dolt_commit('-a', '-m', ?)"
_SYNCHRONOUS_FULL = 2


class Participant(Common):
    """One database, one connection without implicit transactions; statements are prepared once unless said otherwise."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._connection: Any = None
        self._branches = itertools.count()
        self._mode = "in_transaction"

    def version(self) -> str:
        return f"doltlite {version('doltlite')} (SQLite {sqlite3.sqlite_version})"

    def begin(self) -> None:
        self._connection = sqlite3.connect(self.folder / "dolt.db", isolation_level=None)
        self._connection.execute("PRAGMA synchronous = FULL")
        assert self._value("PRAGMA synchronous") == _SYNCHRONOUS_FULL, "doltlite is durable"

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def build(self, count: int) -> Json:
        """Makes the base in one transaction and one commit."""
        self.open(count)
        rows = ((records.memory_id(number), records.content(number)) for number in range(count))
        with timed() as clock:
            self._connection.execute(
                "CREATE TABLE memory (id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID"
            )
            self._connection.execute("BEGIN")
            self._connection.executemany("INSERT INTO memory VALUES (?, ?)", rows)
            self._value("SELECT dolt_commit('-A', '-m', 'base')")
            self._connection.execute("COMMIT")
        self.close()
        return clock.told(count=count)

    def _value(self, sql: str, *parameters: str) -> Any:
        return self._connection.execute(sql, parameters).fetchone()[0]

    # commits, in each way there is

    def commit(self, changes: Sequence[Edit]) -> str:
        return _MODES[self._mode](self, changes)

    def in_transaction(self, changes: Sequence[Edit]) -> str:
        """Commits by dolt_commit inside the transaction of the change."""
        self._connection.execute("BEGIN")
        self._apply(changes)
        head = self._value(_COMMIT, "work")
        self._connection.execute("COMMIT")
        return str(head)

    def autocommit(self, changes: Sequence[Edit]) -> str:
        """Commits the change at once, and by dolt_commit after it."""
        self._apply(changes)
        return str(self._value(_COMMIT, "work"))

    def literal(self, changes: Sequence[Edit]) -> str:
        """Commits by dolt_commit inside the transaction, each statement new."""
        self._connection.execute("BEGIN")
        for change in changes:
            words = f"'{change.text}'", f"'{change.memory_id}'"
            sql = "INSERT INTO memory (body, id) VALUES ({}, {})" if change.is_new else None
            self._connection.execute((sql or "UPDATE memory SET body = {} WHERE id = {}").format(*words))
        head = self._value("SELECT dolt_commit('-a', '-m', 'work')")
        self._connection.execute("COMMIT")
        return str(head)

    def _apply(self, changes: Sequence[Edit]) -> None:
        for change in changes:
            sql = _INSERT if change.is_new else _UPDATE
            self._connection.execute(sql, (change.text, change.memory_id))

    def modes(self, count: int) -> Json:
        found: dict[str, list[float]] = {name: [] for name in _MODES}
        for _ in range(3):
            for name in _MODES:
                self._mode = name
                found[name].append(count / self.commit_one(count)["seconds"])
        rates = {name: round(median(rates), 1) for name, rates in found.items()}
        self._mode = max(rates, key=lambda name: rates[name])
        return {"best": self._mode, "commits_s": rates}

    def commit_batch(self, batches: int, width: int) -> Json:
        """Times `width` commits of one change in each transaction; every dolt_commit still syncs."""
        changes = self.take(batches * width)
        with timed() as clock:
            for first in range(0, len(changes), width):
                self._connection.execute("BEGIN")
                for change in changes[first : first + width]:
                    self._apply([change])
                    self._value(_COMMIT, "work")
                self._connection.execute("COMMIT")
        return clock.told(count=len(changes), mode=f"{width} dolt_commits in a transaction")

    # branches

    def head(self) -> str:
        return str(self._value("SELECT hash FROM dolt_branches WHERE name = 'main'"))

    def read_diff(self, before: str, after: str) -> int:
        return len(
            self._connection.execute("SELECT * FROM dolt_diff_memory(?, ?)", (before, after)).fetchall()
        )

    def fork(self, left: Sequence[Edit], right: Sequence[Edit]) -> str:
        branch = f"side{next(self._branches)}"
        self._value("SELECT dolt_branch(?)", branch)
        self._value("SELECT dolt_checkout(?)", branch)
        self.commit(right)
        self._value("SELECT dolt_checkout('main')")
        self.commit(left)
        return branch

    def join(self, branch: Any) -> str:
        return str(self._value("SELECT dolt_merge(?)", branch))

    def parents(self, commit: str) -> int:
        return int(self._value("SELECT count(*) FROM dolt_commit_ancestors WHERE commit_hash = ?", commit))


_MODES: dict[str, Callable[[Participant, Sequence[Edit]], str]] = {
    "in_transaction": Participant.in_transaction,
    "autocommit": Participant.autocommit,
    "literal": Participant.literal,
}
"""dolt_commit inside the transaction, and after autocommit, both prepared; and inside the transaction, not prepared."""
