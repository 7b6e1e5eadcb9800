"""Ours over HTTP: the Lethe application over a store on disk, synchronous FULL, served by `http.serving` in a process of its own."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import memory_git
from bench import records
from bench.ours import MAIN, PROJECT, add
from bench.ours import Participant as Store
from bench.participant import Json
from memory_git.http.lethe_app import create_lethe_app
from memory_git.http.serving import running

KEY = "the-key-of-the-benchmarks"
_IMPORT_OPS = 10_000


class Participant:
    """A store and its HTTP face in the worker's process."""

    def __init__(self, folder: Path) -> None:
        self._store = Store(folder)
        self._exits = ExitStack()

    def version(self) -> str:
        """Names the program and its version."""
        return f"memory-git {memory_git.__version__}"

    def serve(self) -> Json:
        """Opens the store, serves it, and gives the address and what a client needs: key, project, ref and its head."""
        self._store.open(0)
        app = create_lethe_app(self._store.store, api_key=KEY)
        where = self._exits.enter_context(running(app, on_stop=self._store.store.feed.close))
        return {"port": where.port, "key": KEY, "project": PROJECT, "ref": MAIN, "head": self._store.head()}

    def widen(self, first: int, count: int) -> Json:
        """Adds memories to the main branch, so many a changeset, as far as `count` of them."""
        self._store.open(count)
        for begin in range(first, count, _IMPORT_OPS):
            numbers = range(begin, min(begin + _IMPORT_OPS, count))
            ops = [add(number, records.content(number)) for number in numbers]
            self._store._head = self._store.create(MAIN, [self._store.head()], ops)
        self._store.close()
        return {"head": self._store.head()}

    def cpu(self) -> float:
        """Gives the seconds of processor time that the server's process took so far."""
        return time.process_time()

    def close(self) -> None:
        """Ends the server and the store."""
        self._exits.close()
        self._store.close()
