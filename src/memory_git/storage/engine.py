"""What the upper floors ask of an engine, whichever it is (2-architecture, engines)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from memory_git.storage.connection import Connection

T = TypeVar("T")
Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn a write waits for where many write at once: all of its project, or with a ref, only that ref's.

    `ahead` asks by the tables' functions for what the work will read, so that one round trip brings it all. A `repeatable` work finds
    out by itself that it was done before, and then gives the same.
    """

    project_id: str = ""
    ref_name: str | None = None
    ahead: Callable[[Connection], None] | None = None
    repeatable: bool = False


ANY = Turn()


class Database(Protocol):
    """A database of one schema; any number of threads may call."""

    @property
    def name(self) -> str:
        """The engine's name, as readiness tells it."""

    @property
    def is_shared(self) -> bool:
        """Says whether other processes announce to this one and hear from it."""

    @property
    def place(self) -> str:
        """Where the database is, without a password."""

    @property
    def waiting(self) -> int:
        """Counts the writes that wait, about; for metrics."""

    def write(self, work: Callable[[Connection], T], turn: Turn = ANY) -> T:
        """Gives what the work returned once it is durable; an exception of the work undoes it and is raised here.

        On PostgreSQL a work may run again where nothing of it was written: it leaves no trace outside the connection.
        """

    def write_soon(
        self, work: Callable[[Connection], T], told: Callable[[], None], turn: Turn = ANY
    ) -> Callable[[], T]:
        """Begins a write without waiting, and gives what to call for its outcome once `told` was called, in another thread."""

    def read(self) -> AbstractContextManager[Connection]:
        """Lends a connection on one snapshot, taken on entry."""

    def backup(self, to: Path) -> None:
        """Writes a consistent copy to a file, or refuses and says what does."""

    def scrub(self) -> None:
        """Leaves no trace of erased rows in the database's files."""

    def check(self) -> str:
        """Gives how durable an acknowledged write is, or refuses with the reason why it can't be read or written."""

    def announce(self, notice: str) -> None:
        """Tells the other processes on this database, soon; never waits."""

    def hear(self, notice: Notice, missed: Callable[[], None]) -> None:
        """Has `notice` called with what other processes announce, and `missed` when something may have been lost."""

    def close(self) -> None:
        """Answers the writes that wait and closes; a second call does nothing."""
