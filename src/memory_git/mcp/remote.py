"""A connection to the MCP endpoint of a server, or a refusal that says why there is none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from memory_git.domain.errors import NotFound, Refused, Unauthenticated, Unavailable

TIMEOUT_S = 60.0


@asynccontextmanager
async def connected(url: str, token: str | None, mode: str = "auto") -> AsyncIterator[Client]:
    """Gives a client of an endpoint.

    Raises Unavailable `charon_unreachable` or `starting`, Unauthenticated, or NotFound `no_mcp_here`.
    """
    statuses: list[int] = []

    async def note(response: Any) -> None:
        statuses.append(response.status_code)

    async with AsyncExitStack() as stack:
        headers = {"Authorization": f"Bearer {token}"} if token else None
        http = await stack.enter_async_context(create_mcp_http_client(headers=headers))
        http.event_hooks = {"response": [note]}
        transport = streamable_http_client(url, http_client=http)
        client = Client(transport, mode=mode, read_timeout_seconds=TIMEOUT_S, cache=None)
        try:
            await stack.enter_async_context(client)
        except Exception:
            # Whatever the transport raised, in whatever group: the last status says what happened.
            raise _refusal(url, statuses[-1] if statuses else None) from None
        yield client


def _refusal(url: str, status: int | None) -> Refused:
    match status:
        case None:
            return Unavailable(
                "charon_unreachable", f"no Charon answers at {url}: start it with `charon serve`"
            )
        case 401:
            return Unauthenticated("unauthenticated", "the token is absent or not known there")
        case 404 | 405:
            return NotFound("no_mcp_here", f"{url} serves no MCP: is it the address of a Charon?")
        case _:
            return Unavailable("starting", f"the Charon at {url} answered {status}", retry_after_s=1)
