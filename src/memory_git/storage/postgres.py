"""The PostgreSQL engine: a transaction a request, many processes over one database (2-architecture, engines).

The rules of a write, in the order of the code:

1. It waits in a line for one of WRITERS places, then for its turn (`Turn`): its project shared and its ref alone, or all of its
   project. The locks, and what the work will read, are one round trip; what it writes goes out with the COMMIT, in another.
2. What broke off before COMMIT was sent is not written: the work runs again, once the server is there, in a bounded time.
3. Two transactions in each other's way (a deadlock, a key that another took meanwhile): the one that gave in runs again.
4. COMMIT was sent and the connection broke: a repeatable work runs again and finds what it did. Others mark what they write, and the
   mark is looked for. (The transaction's number would not do: after a crash or a failover another may have it.) Only where nobody
   can say, the answer is `outcome_unknown`; nothing is acknowledged that is not durable, and nothing durable is written twice.
5. Its after-commit actions run once it is durable, then it is answered.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import local
from typing import TypeVar

from memory_git.domain.errors import Unavailable
from memory_git.storage.connection import Connection
from memory_git.storage.engine import ANY, Turn
from memory_git.storage.errors import ConstraintBroken, busy
from memory_git.storage.migrate import Schema
from memory_git.storage.postgres_connection import PostgresConnection, Way
from memory_git.storage.postgres_errors import Collided, Lost, NotItsTurn, outcome_unknown, unreachable
from memory_git.storage.postgres_link import Link
from memory_git.storage.postgres_links import Links, Places, patiently
from memory_git.storage.postgres_migrate import require_version
from memory_git.storage.postgres_notices import Notices
from memory_git.storage.postgres_url import SETTINGS_ASKED, DatabaseUrl, require_durable, require_server

T = TypeVar("T")
WRITERS = 8
READERS = 24
WAITING = 1_024
WAIT_S = 15.0
RECONNECT_S = 10.0
TRIES = 5
_WAYS: tuple[Way, ...] = ("at once", "looks", "at once", "looks", "waits")
_VERSION = "SELECT version, name FROM migration ORDER BY version DESC LIMIT 1"
_MARKED = (
    "INSERT INTO write_mark (project_id, writer, number) VALUES (?, ?, ?)"
    " ON CONFLICT (project_id, writer) DO UPDATE SET number = write_mark.number RETURNING number"
)
_FORGET_MARKS = "DELETE FROM write_mark WHERE at < now() - interval '1 day'"
_HAS_TABLES = "SELECT to_regclass('migration') IS NOT NULL"
_log = logging.getLogger(__name__)


class PostgresDatabase:
    """One schema of a PostgreSQL database."""

    name = "postgresql"
    is_shared = True

    def __init__(self, url: DatabaseUrl, schema: Schema, *, read_only: bool) -> None:
        self._url = url
        self._schema = schema
        self._read_only = read_only
        self._links = Links(url)
        self._writers = Places(WRITERS, WAITING, WAIT_S)
        self._readers = Places(READERS, WAITING, WAIT_S)
        self._depth = local()
        self._notices = Notices(url)
        self._threads = ThreadPoolExecutor(WRITERS, "postgres-write")

    @classmethod
    def open(cls, url: str, schema: Schema, *, read_only: bool = False) -> PostgresDatabase:
        """Opens a database that `lethe migrate` has made; refuses one that is absent, of another schema, or not durable.

        `read_only` is for recovery: every read works and nothing is written.
        """
        database = cls(DatabaseUrl.parse(url, schema.name), schema, read_only=read_only)
        try:
            database.check()
            if not read_only:
                database.write(lambda connection: connection.execute(_FORGET_MARKS), Turn(repeatable=True))
        except BaseException:
            database.close()
            raise
        return database

    @property
    def place(self) -> str:
        """Where the database is, without a password."""
        return self._url.place

    @property
    def waiting(self) -> int:
        """Counts the writes in the line, about."""
        return self._writers.waiting + self._threads._work_queue.qsize()

    # writing

    def write(self, work: Callable[[Connection], T], turn: Turn = ANY) -> T:
        """Gives what the work returned once it is durable; an exception of the work undoes it and is raised here."""
        if self._read_only:
            raise Unavailable("recovery_readonly", "the database is open for reading only, for recovery")
        with self._writers.one():
            result, connection = self._try(work, turn)
        for action in connection.take_actions():
            _act(action)
        return result

    def write_soon(
        self, work: Callable[[Connection], T], told: Callable[[], None], turn: Turn = ANY
    ) -> Callable[[], T]:
        """Begins a write in another thread, and gives what to call for its outcome once `told` was called, in that thread."""
        if self.waiting >= WAITING:
            raise busy(f"{WAITING} writes are waiting already")
        done = self._threads.submit(self.write, work, turn)
        done.add_done_callback(lambda _: told())
        return done.result

    def _try(self, work: Callable[[Connection], T], turn: Turn) -> tuple[T, PostgresConnection]:
        until = time.monotonic() + RECONNECT_S
        for tried in range(1, TRIES + 1):
            try:
                return self._in_turn(work, turn, until)
            except Lost as error:
                if time.monotonic() >= until or tried == TRIES:
                    raise unreachable(str(error)) from error
            except ConstraintBroken as error:
                if not isinstance(error, Collided) or tried == TRIES:
                    raise
            except Collided as error:
                if tried == TRIES:
                    raise busy("other writers were in the way every time") from error
        raise AssertionError("unreachable")

    def _in_turn(
        self, work: Callable[[Connection], T], turn: Turn, until: float
    ) -> tuple[T, PostgresConnection]:
        """Takes the ref's turn, or waits with all others until whoever has it is done, and looks.

        Who stood in a line for it would learn only at its end that the head is another by now, one after the other, and the one
        who won would be back before them: some would never win. So all are told at once.
        """
        for way in _WAYS if turn.ref_name is not None else _WAYS[-1:]:
            try:
                return self._once(work, turn, way, max(0.0, until - time.monotonic()))
            except NotItsTurn:
                continue
        raise AssertionError("who waits gets its turn")

    def _once(
        self, work: Callable[[Connection], T], turn: Turn, way: Way, wait_s: float
    ) -> tuple[T, PostgresConnection]:
        link = patiently(self._links, wait_s)
        connection = PostgresConnection(link, self._url.schema, writes=True)
        try:
            connection.begin(turn, way)
            result = work(connection)
            connection.settle()
            self._commit(connection, turn)
        except BaseException as error:
            if not isinstance(error, Lost):
                connection.roll_back()
            raise
        finally:
            self._links.give_back(link)
        return result, connection

    def _commit(self, connection: PostgresConnection, turn: Turn) -> None:
        mark = None if turn.repeatable else connection.mark_written(turn.project_id)
        try:
            connection.commit()
        except Lost as error:
            if mark is not None and self._is_there(mark):
                return
            raise Lost("it broke off while it committed") from error

    def _is_there(self, mark: tuple[str, str, int]) -> bool:
        """Decides whether what a mark stands for was committed, also while the server restarts or another takes over.

        Asking for the mark's row waits for a transaction that may still be under way there. Raises `outcome_unknown` where nobody can say.
        """
        until = time.monotonic() + RECONNECT_S
        while time.monotonic() < until:
            try:
                link = patiently(self._links, until - time.monotonic())
                link.ask(_MARKED, (*mark[:2], 0))
                answer = link.answers()[-1]
                self._links.give_back(link)
            except (Lost, Unavailable):
                continue
            return answer is not None and answer.rows[0][0] == mark[2]
        raise outcome_unknown()

    # reading

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Lends a connection on one snapshot, taken on entry; a read inside a read has a snapshot of its own."""
        depth = getattr(self._depth, "value", 0)
        if depth:
            with self._snapshot() as connection:
                yield connection
            return
        with self._readers.one():
            self._depth.value = 1
            try:
                with self._snapshot() as connection:
                    yield connection
            finally:
                self._depth.value = 0

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        link, connection = self._begin_reading()
        try:
            yield connection
        except Lost as error:
            raise unreachable(str(error)) from error
        finally:
            connection.roll_back()
            self._links.give_back(link)

    def _begin_reading(self) -> tuple[Link, PostgresConnection]:
        """Begins on a link that works: those that stood idle while the server restarted are of no use."""
        until = time.monotonic() + RECONNECT_S
        while True:
            link: Link | None = None
            try:
                link = patiently(self._links, until - time.monotonic())
                connection = PostgresConnection(link, self._url.schema)
                connection.begin_reading()
                return link, connection
            except Lost as error:
                if link is not None:
                    self._links.give_back(link)
                if time.monotonic() >= until:
                    raise unreachable(str(error)) from error

    # the database itself

    def backup(self, to: Path) -> None:
        """Refuses: PostgreSQL's own programs do this, while everything goes on."""
        del to
        raise Unavailable(
            "backup_elsewhere",
            f"nothing was written: back this database up with pg_dump --schema={self._url.schema}, or with the "
            "server's base backups and its WAL, the gate's database first",
        )

    def scrub(self) -> None:
        """Writes the tables that hold text anew, without what was erased; reads and writes of them wait meanwhile.

        The server's WAL, its archive and its standbys hold the text until they are recycled: that is the server's to do.
        """
        link = patiently(self._links, RECONNECT_S)
        try:
            for table in self._tables(link):
                link.ask(f"VACUUM (FULL) {table}")
                link.answers()
        except Lost as error:
            raise unreachable(str(error)) from error
        finally:
            self._links.give_back(link)

    def check(self) -> str:
        """Gives how durable a commit is; refuses a server or a schema that this program can't work on, with the reason."""
        with self.read() as connection:
            assert isinstance(connection, PostgresConnection)
            require_server(connection.server_version)
            durable = require_durable(connection.rows(SETTINGS_ASKED)[0])
            found = connection.row(_VERSION) if connection.value(_HAS_TABLES) else None
        require_version((found[0], found[1]) if found else None, self._schema, self.place)
        return "recovery_readonly" if self._read_only else durable

    def announce(self, notice: str) -> None:
        """Tells the other processes, soon."""
        self._notices.send(notice)

    def hear(self, notice: Callable[[str], None], missed: Callable[[], None]) -> None:
        """Has `notice` called with what other processes announce, and `missed` when something may have been lost."""
        self._notices.hear(notice, missed)

    def close(self) -> None:
        """Sends what is still to be announced and closes the connections."""
        self._threads.shutdown()
        self._notices.close()
        self._links.close()

    def _tables(self, link: Link) -> list[str]:
        link.ask(
            "SELECT CAST(tablename AS text) FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
        )
        answer = link.answers()[-1]
        return [name for (name,) in answer.rows] if answer else []


def _act(action: Callable[[], None]) -> None:
    """Runs an after-commit action; the write is durable, so what it raises is logged and no answer changes."""
    try:
        action()
    except BaseException as error:
        _log.error("an after-commit action failed: %s in %s", type(error).__name__, action)
