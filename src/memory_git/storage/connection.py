"""A thin connection: what tables call, with the driver's exceptions translated (5-lethe, writing)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from typing import Any, TypeVar

import apsw

from memory_git.domain.errors import Unavailable
from memory_git.storage.errors import ConstraintBroken, again, ends_writing, translate

Value = None | int | float | str | bytes
Action = Callable[[], None]
T = TypeVar("T")


class Connection:
    """Statements on one open transaction; never used by two threads at once."""

    __slots__ = ("_actions", "_driver", "_failure", "_later", "_settled", "_writes", "memo")
    is_postgres = False
    """Where a table's function has another way on the other engine (`postgres_connection`)."""

    def __init__(self, driver: apsw.Connection, *, writes: bool = False) -> None:
        self._driver = driver
        self._writes = writes
        self._actions: list[Action] = []
        self._failure: Unavailable | None = None
        self._later: list[tuple[str, Sequence[Sequence[Value]]]] = []
        self._settled = 0
        self.memo: dict[Hashable, Any] = {}
        """What the writer read or wrote, as long as nobody else has written since and nothing was rolled back."""

    def execute(self, sql: str, params: Sequence[Value] = ()) -> None:
        """Runs the statements to their end; rows, if any, are dropped."""
        try:
            self._driver.execute(sql, params).fetchall()
        except (apsw.Error, UnicodeEncodeError) as error:
            raise self._translated(error) from error

    def execute_many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """Runs one statement once for each row of parameters; for no row, nothing."""
        if isinstance(rows, Sized) and not rows:
            return
        try:
            self._driver.executemany(sql, rows).fetchall()
        except (apsw.Error, UnicodeEncodeError) as error:
            raise self._translated(error) from error

    def execute_later(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        """Keeps rows of an index back until the batch ends or somebody asks to `settle`: one statement then serves many works."""
        if rows:
            self._later.append((sql, rows))

    def settle(self) -> None:
        """Writes the rows that were kept back: whoever reads or changes what they are for asks for it first."""
        if self._settled == len(self._later):
            return
        together: dict[str, list[Sequence[Value]]] = {}
        for sql, rows in self._later[self._settled :]:
            together.setdefault(sql, []).extend(rows)
        for sql, rows in together.items():
            self.execute_many(sql, rows)
        self._settled = len(self._later)

    def mark(self) -> tuple[int, int]:
        """Gives how much is kept back, and how much of it is written: what `return_to` goes back to."""
        return len(self._later), self._settled

    def return_to(self, mark: tuple[int, int]) -> None:
        """Keeps back what was kept back at a mark, also what was written since: for a rollback to where the mark was taken."""
        kept, self._settled = mark
        del self._later[kept:]

    def rows(self, sql: str, params: Sequence[Value] = ()) -> list[tuple[Any, ...]]:
        """Gives all rows of a query."""
        try:
            return self._driver.execute(sql, params).fetchall()
        except (apsw.Error, UnicodeEncodeError) as error:
            raise self._translated(error) from error

    def row(self, sql: str, params: Sequence[Value] = ()) -> tuple[Any, ...] | None:
        """Gives the first row, or None when there is none."""
        try:
            return self._driver.execute(sql, params).fetchone()
        except (apsw.Error, UnicodeEncodeError) as error:
            raise self._translated(error) from error

    def value(self, sql: str, params: Sequence[Value] = ()) -> Any:
        """Gives the first column of the first row, or None when there is no row."""
        found = self.row(sql, params)
        return None if found is None else found[0]

    def recall(self, key: Hashable, read: Callable[[], T]) -> T:
        """Gives what `read` gave for a key before, as long as it must still hold; a connection that only reads asks anew."""
        if not self._writes:
            return read()
        if key not in self.memo:
            self.memo[key] = read()
        found: T = self.memo[key]
        return found

    def forget(self) -> None:
        """Empties the memo: for writes that change rows which are otherwise written once."""
        self.memo.clear()

    def changes(self) -> int:
        """Counts the rows that the last INSERT, UPDATE or DELETE touched."""
        return self._driver.changes()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Opens an inner savepoint; an exception rolls back to it, drops its actions, and propagates."""
        actions, mark = len(self._actions), self.mark()
        self.execute("SAVEPOINT part")
        try:
            yield
            self.execute("RELEASE part")
        except BaseException:
            del self._actions[actions:]
            self.return_to(mark)
            self.forget()
            if self._driver.in_transaction:
                self.execute("ROLLBACK TO part")
                self.execute("RELEASE part")
            raise

    @property
    def server_life(self) -> str:
        """Tells apart the lives of a server, which may give the numbers of lost transactions to others; a file has one."""
        return ""

    def lock(self, *names: str, shared: bool = False) -> None:
        """Waits until nobody else holds a name; here one thread writes at a time, and there is nothing to wait for."""

    def foresee_row(self) -> None:
        """Asks ahead for the next row of a changeset, where the database counts them."""

    def new_row(self, table: str, number: int) -> int:
        """Gives a row that nobody else was or will be given, where the database counts them (`is_postgres`)."""
        raise NotImplementedError(f"the rows of {table} are counted in memory")

    def after_commit(self, action: Action) -> None:
        """Leaves an action for the writer to run once the commit is durable, before the answer."""
        if not self._writes:
            raise RuntimeError("after_commit() belongs to a write; this connection only reads")
        self._actions.append(action)

    def require_foreign_keys(self) -> None:
        """Refuses a work that leaves a deferred foreign key open, which would fail the whole commit."""
        if self._driver.status(apsw.SQLITE_DBSTATUS_DEFERRED_FKS)[0]:
            raise ConstraintBroken("a deferred foreign key is left open")

    def take_actions(self) -> list[Action]:
        """Gives the actions left since the last call, and forgets them."""
        actions, self._actions = self._actions, []
        return actions

    @property
    def failure(self) -> Unavailable | None:
        """Why no later commit on this connection can be trusted, even if the work swallowed the error."""
        return self._failure and again(self._failure)

    @property
    def in_transaction(self) -> bool:
        """Is False once SQLite has given the transaction up by itself."""
        return self._driver.in_transaction

    def _translated(self, error: apsw.Error | UnicodeEncodeError) -> Exception:
        found = translate(error)
        if isinstance(found, Unavailable) and isinstance(error, apsw.Error) and ends_writing(error):
            self._failure = found
        return found
