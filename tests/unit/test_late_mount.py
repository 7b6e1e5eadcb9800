"""The door whose application comes after listening, over a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from memory_git.domain.errors import Unavailable
from memory_git.http.late_mount import LateMount
from memory_git.http.limits import LastCatch
from memory_git.http.serving import running


async def _hello(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"hello at {request.url.path}")


def _host(door: LateMount) -> Starlette:
    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with door.opened():
            yield

    return Starlette(routes=[Mount("/", door)], middleware=[Middleware(LastCatch)], lifespan=lifespan)


def test_until_it_is_attached_the_door_says_when_to_come_again_and_then_it_serves() -> None:
    door, told = LateMount(), []

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        told.append("began")
        yield
        told.append("ended")

    with running(_host(door)) as where:
        before = httpx.get(f"{where.url}/mcp")
        assert (before.status_code, before.headers["retry-after"], before.json()["code"]) == (
            503,
            "1",
            "starting",
        )
        door.attach(Starlette(routes=[Route("/mcp", _hello)], lifespan=lifespan))
        assert httpx.get(f"{where.url}/mcp").text == "hello at /mcp"
        assert told == ["began"]
    assert told == ["began", "ended"]
    with pytest.raises(Unavailable) as refusal:
        door.attach(Starlette())
    assert refusal.value.code == "not_serving"


def test_an_application_that_can_not_start_is_refused_and_the_door_stays_closed() -> None:
    door = LateMount()

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        raise RuntimeError
        yield

    with running(_host(door)) as where:
        with pytest.raises(Unavailable) as refused:
            door.attach(Starlette(lifespan=lifespan))
        assert refused.value.code == "not_started"
        assert httpx.get(f"{where.url}/mcp").status_code == 503


def test_nothing_can_be_attached_while_the_server_does_not_run() -> None:
    with pytest.raises(Unavailable):
        LateMount().attach(Starlette())
