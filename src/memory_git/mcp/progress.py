"""Progress of long calls, for clients that ask for it: how many seconds a call has taken so far (6-charon, MCP).

What a call does happens in one piece inside the store, so there is no share of it to tell; a client that waits learns that it
goes on, and need not give it up.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
from mcp.server.mcpserver import Context
from mcp.server.session import ServerSession

T = TypeVar("T")
EVERY_S = 1.0


async def reporting(context: Context[Any, Any] | None, name: str, work: Callable[[], Awaitable[T]]) -> T:
    """Gives the outcome of work, and tells its caller every second that it goes on."""
    if context is None or not wants_progress(context.request_context.meta):
        return await work()
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_report, context.session, name)
        try:
            outcome = await work()
        except Exception as error:  # it would come out of the group in another shape
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return outcome


def wants_progress(meta: Any) -> bool:
    """Decides by the `_meta` of a request whether its caller wants to hear of progress."""
    return bool(meta) and ("progress_token" in meta or "progressToken" in meta)


async def _report(session: ServerSession, name: str) -> None:
    began = time.monotonic()
    while True:
        await anyio.sleep(EVERY_S)
        passed = round(time.monotonic() - began, 1)
        await session.report_progress(passed, None, f"{name} goes on: {passed:.0f} s")
