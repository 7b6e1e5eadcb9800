"""MCP on stdio for a local agent: on the same data directory, or as a client of a running server (6-charon, MCP).

1. The token is resolved to its principal once, at the start; every call still asks what that principal may do now.
2. Without a token there is nobody to act for: it is refused, saying how to get one.
3. On SIGTERM, SIGINT, or the end of the input the gate is closed, so that what waits is written.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread

from memory_git.charon.gate import Gate
from memory_git.domain.errors import Unauthenticated
from memory_git.mcp.bridge import serve_bridge
from memory_git.mcp.server import build_server
from memory_git.mcp.tool import wanted_toolsets

_TO_GET_ONE = (
    "charon mcp acts for one principal and needs its token in CHARON_TOKEN. Whoever owns the data directory makes one: "
    "`charon principal add <name> --kind agent`, `charon grant add <name> --project <project>`, "
    "`charon obol mint <name> --project <project>`."
)


def serve_stdio(gate: Gate, token: str | None, *, toolsets: str = "default") -> None:
    """Serves until the client leaves; closes the gate. Raises Invalid or Unauthenticated before anything is served."""
    try:
        wanted = wanted_toolsets(toolsets)
        caller = gate.authenticate(_require(token), "mcp")
        server = build_server(gate, lambda: caller, lambda: wanted)
        anyio.run(_until_told, server.run_stdio_async, gate.close)
    finally:
        gate.close()


def serve_stdio_client(url: str, token: str | None, *, toolsets: str = "default") -> None:
    """Serves what the server at a base address (CHARON_URL) answers, until the client leaves."""
    named = ",".join(sorted(wanted_toolsets(toolsets)))
    bearer = _require(token)

    async def serve() -> None:
        await serve_bridge(url, bearer, named)

    try:
        anyio.run(_until_told, serve, lambda: None)
    except BaseExceptionGroup as group:
        raise _first(group) from None


def _first(error: BaseException) -> BaseException:
    """Gives the error that a group of tasks ended with."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _require(token: str | None) -> str:
    if not token:
        raise Unauthenticated("token_needed", _TO_GET_ONE)
    return token


async def _until_told(serve: Callable[[], Awaitable[None]], close: Callable[[], None]) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_on_signal, close)
        await serve()
        tasks.cancel_scope.cancel()


async def _end_on_signal(close: Callable[[], None]) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            await anyio.to_thread.run_sync(close)
            # A thread still waits for input that may never come, so the interpreter's own way out would hang.
            os._exit(0)
