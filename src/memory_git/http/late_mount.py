"""A door whose application comes later: listening starts before the MCP face, whose SDK takes a second to import.

1. Until it is attached, the door answers 503 with Retry-After.
2. The attached application's own lifespan runs in one task of the server's loop, and ends with the server's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_git.domain.errors import Unavailable

_LOG = logging.getLogger("memory_git.http")


class LateMount:
    """The door itself, an ASGI application."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._life: _Life | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request (rule 1)."""
        if self._app is None:
            raise Unavailable("starting", "this face is still starting", retry_after_s=1)
        await self._app(scope, receive, send)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Holds the door while the server runs."""
        self._loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            self._loop = self._app = None
            if self._life is not None:
                await self._life.end()

    def attach(self, app: ASGIApp) -> None:
        """Puts the application behind the door; called from any other thread while the server runs."""
        if self._loop is None:
            raise Unavailable("not_serving", "the server does not run")
        asyncio.run_coroutine_threadsafe(self._begin(app), self._loop).result()

    async def _begin(self, app: ASGIApp) -> None:
        life = _Life(app)
        await life.begin()
        self._life, self._app = life, app


class _Life:
    """The lifespan protocol of one application, held open in a task of its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._asked: asyncio.Queue[Message] = asyncio.Queue()
        self._answered: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Starts the application, or raises Unavailable `not_started`."""
        scope: Scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
        self._task = asyncio.create_task(self._run(scope))
        await self._asked.put({"type": "lifespan.startup"})
        answer = await self._answered.get()
        if answer["type"] != "lifespan.startup.complete":
            raise Unavailable("not_started", "this face could not be started")

    async def end(self) -> None:
        """Ends the application and waits for it."""
        await self._asked.put({"type": "lifespan.shutdown"})
        if self._task is not None:
            await self._task

    async def _run(self, scope: Scope) -> None:
        try:
            await self._app(scope, self._asked.get, self._answered.put)
        except Exception as error:
            _LOG.error("a face ended with %s", type(error).__name__)
        await self._answered.put({"type": "lifespan.startup.failed"})
