"""What processes on one database tell each other: by LISTEN and NOTIFY, after the commit and never inside one.

A NOTIFY inside a transaction holds a lock of the whole cluster until the commit is synced, so that no two commits share a sync. So a
thread of each process sends what has become durable. What got lost with a process or a connection is not sent again: who listens is
told that it may have missed something, whenever it begins to listen anew.
"""

from __future__ import annotations

import os
import secrets
import select
import threading
from collections.abc import Callable
from queue import SimpleQueue

from memory_git.storage.postgres_errors import Lost, StatementFailed
from memory_git.storage.postgres_link import Link
from memory_git.storage.postgres_url import DatabaseUrl

_PAUSE_S = 0.5
_MOST_BYTES = 7_000
_TOGETHER = 64


class Notices:
    """Sends and hears the notices of one schema, each in a thread of its own, from the first use on."""

    def __init__(self, url: DatabaseUrl) -> None:
        self._url = url
        self._channel = f"memory_git_{url.schema}"[:63]
        self._own = secrets.token_hex(4)
        self._queue: SimpleQueue[str | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._sends = False
        self._stop = threading.Event()
        self._woken, self._wake = os.pipe()

    def send(self, notice: str) -> None:
        """Sends a notice soon; one that is too long for a notice is left out."""
        if len(notice.encode()) > _MOST_BYTES or self._stop.is_set():
            return
        with self._gate:
            if not self._sends:
                self._sends = True
                self._start(self._send_all, "postgres-announce")
        self._queue.put(notice)

    def hear(self, notice: Callable[[str], None], missed: Callable[[], None]) -> None:
        """Has `notice` called with what other processes send, and `missed` when listening began anew."""
        with self._gate:
            self._start(lambda: self._hear_all(notice, missed), "postgres-listen")

    def close(self) -> None:
        """Sends what waits, and ends both threads."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._queue.put(None)
        os.write(self._wake, b".")
        for thread in self._threads:
            thread.join()
        os.close(self._wake)
        os.close(self._woken)

    def _start(self, run: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _send_all(self) -> None:
        link: Link | None = None
        while (first := self._queue.get()) is not None:
            batch = [first]
            while len(batch) < _TOGETHER and self._queue.qsize():
                more = self._queue.get()
                if more is None:
                    self._queue.put(None)
                    break
                batch.append(more)
            try:
                link = link or Link(self._url.conninfo)
                for notice in batch:
                    link.ask("SELECT pg_notify(?, ?)", (self._channel, f"{self._own} {notice}"))
                link.answers()
            except (Lost, StatementFailed):
                link = None
        if link is not None:
            link.close()

    def _hear_all(self, notice: Callable[[str], None], missed: Callable[[], None]) -> None:
        began = False
        while not self._stop.is_set():
            try:
                self._listen(notice, missed if began else None)
            except Lost:
                self._stop.wait(_PAUSE_S)
            began = True

    def _listen(self, notice: Callable[[str], None], missed: Callable[[], None] | None) -> None:
        link = Link(self._url.conninfo)
        try:
            link.ask(f"LISTEN {self._channel}")
            link.answers()
            if missed is not None:
                missed()
            while not self._stop.is_set():
                select.select([link.socket, self._woken], [], [])
                for heard in link.notices():
                    sender, _, body = heard.partition(" ")
                    if sender != self._own:
                        notice(body)
        finally:
            if link.is_open:
                link.close()
