"""A bare FastAPI application with one route: a durable insert of the request's body into a table, one transaction a request.

The same server settings and body as ours, apsw with WAL and synchronous FULL read back, statements prepared, one connection. Two ways to
write the route are tried, and the faster one is the peer: a plain function, which FastAPI runs in its pool of threads behind a lock, and
a coroutine that inserts on the loop.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import apsw
import fastapi
import orjson
from fastapi import FastAPI

from bench.participant import Json, timed
from memory_git.http.serving import running

_INSERT = "INSERT INTO taken(body) VALUES (?)"


class Participant:
    """The table and its HTTP face in the worker's process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._exits = ExitStack()
        self._lock = threading.Lock()
        self._database: apsw.Connection | None = None

    def version(self) -> str:
        """Names what it is made of."""
        return f"fastapi {fastapi.__version__}, apsw {apsw.apsw_version()}"

    def serve(self) -> Json:
        """Makes the table, serves the route in both ways, and gives the port."""
        self._database = database = apsw.Connection(str(self._folder / "bare.db"))
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        assert database.execute("PRAGMA synchronous").fetchone() == (2,), "every insert is synced"
        database.execute("CREATE TABLE taken(id INTEGER PRIMARY KEY, body BLOB) STRICT")
        where = self._exits.enter_context(running(self._app()))
        return {"port": where.port}

    def raw(self, count: int) -> Json:
        """Times the same inserts by direct calls, one transaction each."""
        assert self._database is not None, "serve() comes first"
        body = b"x" * 500
        with timed() as clock:
            for _ in range(count):
                self._database.execute(_INSERT, (body,))
        return clock.told(count=count)

    def cpu(self) -> float:
        """Gives the seconds of processor time that the server's process took so far."""
        return time.process_time()

    def close(self) -> None:
        """Ends the server and closes the table."""
        self._exits.close()
        if self._database is not None:
            self._database.close()

    def _app(self) -> FastAPI:
        app = FastAPI(openapi_url=None)

        @app.post("/threaded", status_code=201)
        def threaded(body: dict[str, Any]) -> dict[str, int]:
            with self._lock:
                return {"id": self._insert(body)}

        @app.post("/inline", status_code=201)
        async def inline(body: dict[str, Any]) -> dict[str, int]:
            return {"id": self._insert(body)}

        return app

    def _insert(self, body: dict[str, Any]) -> int:
        assert self._database is not None, "the route is served after serve()"
        self._database.execute(_INSERT, (orjson.dumps(body),))
        return self._database.last_insert_rowid()
