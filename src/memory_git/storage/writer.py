"""The one writer thread of a process, with group commit (2-architecture, engines; 5-lethe, writing).

The rules, in the order of the code:

1. A request waits in a bounded queue; a full queue, a closed or a failed writer refuses at once.
2. The writer takes the lock between processes, begins, and runs every request that waits or arrives meanwhile, up to
   BATCH_REQUESTS or BATCH_S, each in a savepoint of its own: what one raises rolls back that one alone.
3. What they kept back for the end is written, and one COMMIT makes them all durable; then their after-commit actions run;
   then they are answered, those that were refused first.
4. If SQLite gives the transaction up, or COMMIT fails, every request of the batch gets that error.
5. Between batches the WAL is copied when it has grown long, and given room when little is left of it.
6. After an I/O error or a damaged page nothing is written any more: what the disk holds is unknown.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, TypeVar

import apsw

from memory_git.domain.errors import Unavailable
from memory_git.storage.connection import Action, Connection
from memory_git.storage.errors import again, busy, ends_writing, translate
from memory_git.storage.lock import WriterLock
from memory_git.storage.wal_room import WalRoom

T = TypeVar("T")
BATCH_REQUESTS = 128
BATCH_S = 0.05
QUEUE_REQUESTS = 1024
MEMO_ENTRIES = 10_000
_log = logging.getLogger(__name__)


class _Request:
    """One caller's work and, after the commit, what came of it; `told`, if there is one, is called then in the writer's thread."""

    __slots__ = ("actions", "answered", "error", "result", "told", "work")

    def __init__(self, work: Callable[[Connection], Any], told: Action | None = None) -> None:
        self.work = work
        self.told = told
        self.result: Any = None
        self.error: BaseException | None = None
        self.actions: list[Action] = []
        self.answered = threading.Lock()
        self.answered.acquire()

    def answer(self) -> None:
        """Lets the caller have its answer."""
        self.answered.release()
        if self.told is not None:
            _act(self.told)

    def outcome(self) -> Any:
        """Waits for the answer, then gives the result or raises what the work or the commit raised."""
        self.answered.acquire()
        error, self.error = self.error, None
        if error is None:
            return self.result
        try:
            raise error
        finally:
            del error


class Writer:
    """Owns the connection that writes; every other thread asks it."""

    def __init__(
        self,
        driver: apsw.Connection,
        lock: WriterLock,
        lock_timeout_s: float,
        wal_room: WalRoom | None = None,
    ) -> None:
        self._driver = driver
        self._connection = Connection(driver, writes=True)
        self._lock = lock
        self._lock_timeout_s = lock_timeout_s
        self._queue: SimpleQueue[_Request | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._catching_up = False
        self._file = _identity(driver.filename)
        self._wal_room = wal_room
        self._seen_version: tuple[Any, ...] | None = None
        self.failure: Unavailable | None = None
        self._thread = threading.Thread(target=self._serve, name="sqlite-writer", daemon=True)
        self._thread.start()

    def write(self, work: Callable[[Connection], T]) -> T:
        """Gives what the work returned, once it is durable; raises what it raised, with nothing of it written."""
        if threading.get_ident() == self._thread.ident:
            raise RuntimeError(
                "write() inside a write() or its after-commit action would wait for itself for ever"
            )
        result: T = self._enqueue(_Request(work))()
        return result

    def write_soon(self, work: Callable[[Connection], T], told: Action) -> Callable[[], T]:
        """Queues a work and gives what to call for its answer once `told` was called, in the writer's thread: no thread waits for it."""
        return self._enqueue(_Request(work, told))

    def _enqueue(self, request: _Request) -> Callable[[], Any]:
        with self._gate:
            self.check()
            if self._queue.qsize() >= QUEUE_REQUESTS:
                raise busy(f"{QUEUE_REQUESTS} writes are waiting already")
            self._queue.put(request)
        return request.outcome

    @property
    def waiting(self) -> int:
        """Counts the requests in the queue."""
        return self._queue.qsize()

    def check(self) -> None:
        """Refuses when nothing can be written any more."""
        if self.failure is not None:
            raise again(self.failure)
        if self._closed:
            raise Unavailable("closed", "the database is closed")

    def catch_up(self) -> None:
        """Asks for a checkpoint while no one writes, after which the WAL starts again from its beginning."""
        self._catching_up = True

    def fail(self, error: apsw.Error) -> None:
        """Stops writing for good; the WAL is left as it is for the next start to verify."""
        refusal = translate(error)
        if isinstance(refusal, Unavailable):
            self.failure = refusal

    def close(self) -> None:
        """Refuses new requests, answers those that wait, and ends the thread."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (first := self._queue.get()) is not None:
            batch: list[_Request] = []
            arriving = self._arriving(first, batch)
            try:
                self._commit(arriving)
            except BaseException as error:
                self._refuse(error, batch or list(arriving))
            for request in _refused_first(batch):
                request.answer()

    def _arriving(self, first: _Request, batch: list[_Request]) -> Iterator[_Request]:
        """Gives the requests of one batch, those that arrive while it runs included, and notes them in `batch`."""
        until = time.monotonic() + BATCH_S
        request: _Request | None = first
        while request is not None:
            batch.append(request)
            yield request
            if len(batch) >= BATCH_REQUESTS or not self._queue.qsize() or time.monotonic() >= until:
                return
            request = self._queue.get()
        self._queue.put(None)

    def _commit(self, arriving: Iterator[_Request]) -> None:
        """Makes one batch durable and runs its actions, or raises with nothing of it written."""
        if self.failure is not None:
            raise self.failure
        if not self._lock.acquire(self._lock_timeout_s):
            raise busy("another process has been writing all the while")
        try:
            self._require_same_file()
            actions = self._transact(arriving)
            self._catch_up_if_asked()
            if self._wal_room is not None and self._wal_room.is_short():
                self._make_room(self._wal_room)
        finally:
            self._lock.release()
        for action in actions:
            _act(action)

    def _require_same_file(self) -> None:
        """Stops writing when the file was moved or replaced: what goes into an unlinked file is lost."""
        if _identity(self._driver.filename) != self._file:
            self.failure = Unavailable(
                "storage_failed", "the database file was moved or replaced while in use"
            )
            raise self.failure

    def _transact(self, arriving: Iterator[_Request]) -> list[Action]:
        """Gives the actions of one transaction that is durable now."""
        self._driver.execute("BEGIN IMMEDIATE")
        try:
            self._forget_if_changed()
            actions = [action for request in arriving for action in self._run(request)]
            self._connection.settle()
            self._driver.execute("COMMIT")
        except BaseException:
            self._connection.forget()
            if self._driver.in_transaction:
                self._driver.execute("ROLLBACK")
            raise
        finally:
            self._connection.return_to((0, 0))
        return actions

    def _forget_if_changed(self) -> None:
        """Empties the memo when another connection has written since the last batch, or when it has grown large."""
        found = self._driver.execute("PRAGMA data_version").fetchone()
        if found != self._seen_version or len(self._connection.memo) > MEMO_ENTRIES:
            self._connection.forget()
        self._seen_version = found

    def _run(self, request: _Request) -> list[Action]:
        """Runs one work in its savepoint and gives its actions; raises only what ends the whole batch."""
        connection, driver = self._connection, self._driver
        mark = connection.mark()
        driver.execute("SAVEPOINT request")
        try:
            request.result = request.work(connection)
            connection.require_foreign_keys()
        except BaseException as error:
            request.error = error
        actions = connection.take_actions()
        if connection.failure is not None:
            raise connection.failure
        if not driver.in_transaction:
            raise request.error or RuntimeError("a work ended the transaction, which is the writer's")
        if request.error is None:
            driver.execute("RELEASE request")
            return actions
        connection.forget()
        connection.return_to(mark)
        driver.execute("ROLLBACK TO request")
        driver.execute("RELEASE request")
        return []

    def _refuse(self, error: BaseException, batch: list[_Request]) -> None:
        """Gives every request of a lost batch its own copy of the reason, and stops writing if it must."""
        refusal = translate(error) if isinstance(error, apsw.Error) else error
        if not isinstance(refusal, Unavailable):
            refusal = busy(f"the transaction was given up and nothing was written: {type(refusal).__name__}")
        if self._connection.failure or (isinstance(error, apsw.Error) and ends_writing(error)):
            self.failure = refusal
        for request in batch:
            request.error = again(refusal)

    def _catch_up_if_asked(self) -> None:
        """Copies what is left of the WAL; the batch is durable already, so a failure ends only the writing."""
        if not self._catching_up:
            return
        self._catching_up = False
        try:
            self._driver.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:
            if ends_writing(error):
                self.fail(error)

    def _make_room(self, room: WalRoom) -> None:
        """Lengthens the WAL file while nobody, not even another program, can write to it; without a turn at once, not now."""
        try:
            self._driver.execute("BEGIN IMMEDIATE")
        except apsw.Error:
            return
        try:
            room.make()
        finally:
            self._driver.execute("ROLLBACK")


def _refused_first(batch: list[_Request]) -> list[_Request]:
    """Gives a batch in the order of its answers: who lost a race for a ref comes back for it before who won."""
    return sorted(batch, key=lambda request: request.error is None)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - once a commit, and Path costs three times as much
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _act(action: Action) -> None:
    """Runs an after-commit action; the write is durable, so what the action raises is logged and no answer changes."""
    try:
        action()
    except BaseException as error:
        _log.error("an after-commit action failed: %s in %s", type(error).__name__, action)
