"""What the tables call, on PostgreSQL: writes are kept back and go out with the next question or the commit (5-lethe, writing).

1. A statement that asks nothing costs no round trip of its own; what it breaks is raised with the next answer.
2. What was asked ahead is answered from the first round trip, once, and only until something is written.
3. A lock is held until the transaction ends, and taken once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal

from memory_git.storage.connection import Action, Connection, Value
from memory_git.storage.engine import Turn
from memory_git.storage.lethe_schema import PROJECT_SHIFT
from memory_git.storage.postgres_errors import Lost, NotItsTurn
from memory_git.storage.postgres_link import Answer, Link

_LOCK = "SELECT pg_advisory_xact_lock(?)"
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_TRY_LOCK = "SELECT pg_try_advisory_xact_lock(?)"
_SHARED_LOCK = "SELECT pg_advisory_xact_lock_shared(?)"
_BLOCK = "SELECT nextval('row_block') AS block"
_MARK = (
    "INSERT INTO write_mark (project_id, writer, number) VALUES (?, ?, ?)"
    " ON CONFLICT (project_id, writer) DO UPDATE SET number = excluded.number, at = now()"
)
BLOCK_BITS = 8
"""A block has so many rows; a changeset takes the first, what it makes the rest."""

Way = Literal["at once", "looks", "waits"]
Asked = tuple[str, tuple[Value, ...]]


class PostgresConnection(Connection):
    """Statements on one transaction of one link; never used by two threads at once."""

    __slots__ = (
        "_ahead",
        "_block",
        "_is_alone",
        "_last",
        "_link",
        "_locked",
        "_next_rows",
        "_only_looks",
        "_spare_block",
        "schema",
    )
    is_postgres = True

    def __init__(self, link: Link, schema: str, *, writes: bool = False) -> None:
        self._link = link
        self._writes = writes
        self._actions: list[Action] = []
        self.memo = {}
        self.schema = schema
        self._ahead: dict[Asked, list[tuple[Any, ...]]] = {}
        self._locked: set[tuple[str, ...]] = set()
        self._last: int | None = None
        self._block: int | None = None
        self._is_alone = False
        self._only_looks = False
        self._spare_block: int | None = None
        self._next_rows: dict[str, int] = {}

    # beginning and end

    def begin(self, turn: Turn, way: Way) -> None:
        """Begins a write: its locks, then what its work will ask, then a block of rows, in one round trip.

        Raises NotItsTurn where it was to take its turn at once, and another has it.
        """
        ahead, tried = turn.ahead, None
        names = ("ref", turn.project_id, turn.ref_name or "")
        self._only_looks = way == "looks"
        if self._only_looks:
            self._wait_for(names)
        self._link.ask(_BEGIN)
        self.lock("project", turn.project_id, shared=turn.ref_name is not None)
        if turn.ref_name is not None and way == "at once":
            self._locked.add(names)
            tried = self._link.ask(_TRY_LOCK, (_key(self.schema, names),))
        elif turn.ref_name is not None and way == "waits":
            self.lock(*names)
        asking = _Asking(self)
        if ahead is not None:
            ahead(asking)
        answers = self._link.answers()
        if tried is not None and not _rows(answers[tried])[0][0]:
            raise NotItsTurn
        for asked, place in asking.places.items():
            self._ahead[asked] = _rows(answers[place])
        if asking.block is not None:
            self._spare_block = _rows(answers[asking.block])[0][0]

    def _wait_for(self, names: tuple[str, ...]) -> None:
        """Waits until whoever has a name is done, without having it: all who wait go on at once."""
        self._link.ask(_BEGIN)
        self._link.ask(_SHARED_LOCK, (_key(self.schema, names),))
        self._link.ask("COMMIT")

    @property
    def server_life(self) -> str:
        """Which life of the server the transaction is in (`arrived`)."""
        return self._link.life

    @property
    def server_version(self) -> int:
        """The server's version, as libpq counts it."""
        return self._link.server_version

    def begin_reading(self) -> None:
        """Begins to read on a snapshot that is fixed now."""
        self._link.ask("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        self._link.ask("SELECT 1 AS snapshot")
        self._link.answers()

    def mark_written(self, project_id: str) -> tuple[str, str, int]:
        """Notes with what is written that it is, and gives by what it is found; one row a connection and project."""
        self._link.marks += 1
        mark = (project_id, self._link.name, self._link.marks)
        self._link.ask(_MARK, mark)
        return mark

    def commit(self) -> None:
        """Sends what was kept back with the commit, and returns once it is durable."""
        self._link.ask("COMMIT")
        self._link.answers()

    def roll_back(self) -> None:
        """Undoes everything, unless the link is gone, whose server does it."""
        if not self._link.is_open:
            return
        try:
            if self._link.has_sent:
                self._drain()
            self._link.ask("ROLLBACK")
            self._link.answers()
        except Lost:
            return

    # statements

    def execute(self, sql: str, params: Sequence[Value] = ()) -> None:
        """Sends a statement with those that go out next."""
        if self._only_looks:
            raise NotItsTurn
        self._ahead.clear()
        self._last = self._link.ask(sql, params)

    def execute_many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """Sends one statement once for each row of parameters."""
        for row in rows:
            self.execute(sql, row)

    def execute_later(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        """Sends rows of an index: all is kept back here as it is."""
        self.execute_many(sql, rows)

    def settle(self) -> None:
        """Does nothing: what was sent is seen by whatever is asked after it."""

    def mark(self) -> tuple[int, int]:
        """Gives nothing to go back to: a savepoint of the server's keeps what was sent."""
        return 0, 0

    def return_to(self, mark: tuple[int, int]) -> None:
        """Does nothing, like `mark`."""

    def rows(self, sql: str, params: Sequence[Value] = ()) -> list[tuple[Any, ...]]:
        """Gives all rows of a query."""
        if self._ahead:
            known = self._ahead.pop((sql, tuple(params)), None)
            if known is not None:
                return known
        place = self._link.ask(sql, params)
        self._last = None
        return _rows(self._link.answers()[place])

    def row(self, sql: str, params: Sequence[Value] = ()) -> tuple[Any, ...] | None:
        """Gives the first row, or None when there is none."""
        found = self.rows(sql, params)
        return found[0] if found else None

    def changes(self) -> int:
        """Counts the rows that the last INSERT, UPDATE or DELETE touched; asks for it, so that it is known."""
        assert self._last is not None, "no statement was sent since the last answer"
        answer = self._link.answers()[self._last]
        self._last = None
        return answer.touched if answer else 0

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Opens an inner savepoint; an exception rolls back to it, drops its actions, and propagates."""
        actions = len(self._actions)
        self.execute("SAVEPOINT part")
        try:
            yield
            self.execute("RELEASE SAVEPOINT part")
            self._link.answers()
        except BaseException:
            del self._actions[actions:]
            self.forget()
            self._ahead.clear()
            if self._link.is_open:
                self._drain()
                self._link.ask("ROLLBACK TO SAVEPOINT part")
                self._link.answers()
            raise

    def send(self, sql: str, params: Sequence[Value]) -> int:
        """Sends a query with those that go out next and gives its place among the answers."""
        return self._link.ask(sql, params)

    # locks and rows

    def lock(self, *names: str, shared: bool = False) -> None:
        """Waits, with what is asked next, until nobody else holds a name in this schema; shared holders don't exclude each other.

        Who has all of a project needs no memory of it besides: a large write would hold more locks than the server has room for.
        """
        if names not in self._locked and not ((self._is_alone or self._only_looks) and names[0] == "memory"):
            self._locked.add(names)
            self._is_alone = self._is_alone or (names[0] == "project" and not shared)
            self._link.ask(_SHARED_LOCK if shared else _LOCK, (_key(self.schema, names),))

    def new_row(self, table: str, number: int) -> int:
        """Gives a row of a project that nobody else was or will be given (decision 14).

        A changeset takes a block of its own, which begins with it; what it makes is counted in that block, table by table. The
        number of a block is taken after the reads that it stands on, so a changeset's row is beyond its parents'.
        """
        row = None if table == "changeset" else self._next_rows.get(table)
        if table == "changeset" or (row is None and self._block is None):
            self._block = self._take_block()
            self._next_rows = {}
        if row is None:
            assert self._block is not None
            row = self._block << BLOCK_BITS
        elif not row % (1 << BLOCK_BITS):
            row = self._take_block() << BLOCK_BITS
        if table != "changeset":
            self._next_rows[table] = row + 1
        return (number << PROJECT_SHIFT) + row

    def _take_block(self) -> int:
        if self._spare_block is not None:
            spare, self._spare_block = self._spare_block, None
            return spare
        found: int = self.rows(_BLOCK)[0][0]
        return found

    def _drain(self) -> None:
        """Takes the answers that are due, whatever they are."""
        try:
            if self._link.has_sent:
                self._link.answers()
        except Lost:
            raise
        except Exception:  # noqa: S110 - what they refuse is undone next
            pass

    def require_foreign_keys(self) -> None:
        """Does nothing: no foreign key is deferred, and each statement is checked."""


class _Asking(Connection):
    """Sends what the tables' functions ask and gives them nothing yet: for `Turn.ahead`."""

    __slots__ = ("_for", "block", "places")
    is_postgres = True

    def __init__(self, connection: PostgresConnection) -> None:
        self._for = connection
        self._writes = False
        self.places: dict[Asked, int] = {}
        self.block: int | None = None

    def rows(self, sql: str, params: Sequence[Value] = ()) -> list[tuple[Any, ...]]:
        """Sends a query; it has no rows yet."""
        self.places[sql, tuple(params)] = self._for.send(sql, params)
        return []

    def row(self, sql: str, params: Sequence[Value] = ()) -> tuple[Any, ...] | None:
        """Sends a query; it has no row yet."""
        self.rows(sql, params)
        return None

    def value(self, sql: str, params: Sequence[Value] = ()) -> Any:
        """Sends a query; 0 stands for what it will give."""
        self.rows(sql, params)
        return 0

    def settle(self) -> None:
        """Does nothing, like the connection that it asks for."""

    def foresee_row(self) -> None:
        """Takes a block of rows, after all that was asked before."""
        self.block = self._for.send(_BLOCK, ())

    def lock(self, *names: str, shared: bool = False) -> None:
        """Waits for a name in the first round trip."""
        self._for.lock(*names, shared=shared)


def _rows(answer: Answer | None) -> list[tuple[Any, ...]]:
    return answer.rows if answer is not None else []


@lru_cache(maxsize=4096)
def _key(schema: str, names: tuple[str, ...]) -> int:
    return int.from_bytes(hashlib.sha256("\0".join((schema, *names)).encode()).digest()[:8], signed=True)
