"""The connections of one process to one database: kept, lent, and dropped together when the server went away."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from memory_git.domain.errors import Unavailable
from memory_git.storage.errors import busy
from memory_git.storage.postgres_errors import Lost
from memory_git.storage.postgres_link import Link
from memory_git.storage.postgres_url import DatabaseUrl

_IDLE_LINKS = 16


class Links:
    """Lends links to any thread; a thread that holds one may borrow another."""

    def __init__(self, url: DatabaseUrl) -> None:
        self._url = url
        self._idle: list[Link] = []
        self._gate = threading.Lock()
        self._closed = False

    def take(self) -> Link:
        """Gives an idle link, else a new one; raises Lost when there is no server."""
        with self._gate:
            if self._closed:
                raise Unavailable("closed", "the database is closed")
            if self._idle:
                return self._idle.pop()
        return Link(self._url.conninfo)

    def give_back(self, link: Link) -> None:
        """Keeps a link for the next; one that is of no use any more is a sign that the others are not either."""
        if not link.is_open:
            self.drop()
            return
        with self._gate:
            if not self._closed and len(self._idle) < _IDLE_LINKS:
                self._idle.append(link)
                return
        link.close()

    def drop(self) -> None:
        """Closes the idle links: the server went away, and they with it."""
        with self._gate:
            idle, self._idle = self._idle, []
        for link in idle:
            link.close()

    def close(self) -> None:
        """Closes the idle links; those lent are closed on their return."""
        with self._gate:
            self._closed = True
        self.drop()


class Places:
    """So many threads may pass at once; the others wait in a line, each for a bounded time."""

    def __init__(self, places: int, most_waiting: int, wait_s: float) -> None:
        self._free = places
        self._most_waiting = most_waiting
        self._wait_s = wait_s
        self._line: deque[threading.Lock] = deque()
        self._gate = threading.Lock()

    @property
    def waiting(self) -> int:
        """Counts those in the line."""
        return len(self._line)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Holds a place, first come first served; refuses with `busy` a full line, or when it takes too long."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        with self._gate:
            if self._free:
                self._free -= 1
                return
            if len(self._line) >= self._most_waiting:
                raise busy(f"{self._most_waiting} requests are waiting already")
            ticket = threading.Lock()
            ticket.acquire()
            self._line.append(ticket)
        if ticket.acquire(timeout=self._wait_s):
            return
        with self._gate:
            if ticket in self._line:
                self._line.remove(ticket)
                raise busy("the database has been busy all the while")

    def _leave(self) -> None:
        with self._gate:
            if self._line:
                self._line.popleft().release()
            else:
                self._free += 1


def patiently(links: Links, wait_s: float) -> Link:
    """Gives a link, also while a server restarts or another takes over, for a bounded time; then raises Lost."""
    until = time.monotonic() + wait_s
    pause_s = 0.05
    while True:
        try:
            return links.take()
        except Lost:
            links.drop()
            if time.monotonic() + pause_s >= until:
                raise
        time.sleep(pause_s)
        pause_s = min(1.0, pause_s * 2)
