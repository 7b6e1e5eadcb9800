"""A balancer that gives each request to the next of several servers, whoever sends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from memory_git.http.serving import running

PATIENCE_S = 60.0
_OWN = frozenset({b"host", b"content-length", b"transfer-encoding", b"connection"})


@contextmanager
def balancing(addresses: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Serves before the addresses; gives its own, and the list of who was given a request, as it grows."""
    given: list[str] = []
    with running(_alternating(addresses, given)) as where:
        yield where.url, given


def _alternating(addresses: Sequence[str], given: list[str]) -> ASGIApp:
    turns = cycle(addresses)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        address = next(turns)
        given.append(address)
        body = b""
        more = True
        while more:
            part = await receive()
            body += part.get("body", b"")
            more = part.get("more_body", False)
        url = f"{address}{scope['path']}?{scope['query_string'].decode()}"
        headers = [(name, value) for name, value in scope["headers"] if name not in _OWN]
        async with (
            httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as client,
            client.stream(scope["method"], url, headers=headers, content=body) as answer,
        ):
            kept = [(name, value) for name, value in answer.headers.raw if name.lower() not in _OWN]
            await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
            async for part in answer.aiter_raw():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return app
