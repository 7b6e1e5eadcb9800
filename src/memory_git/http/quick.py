"""Roads around the framework for what is asked most: the same answers, without its routing, its dependencies and its threads.

A route that has such a road is described by its declaration in the framework, and served here alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from starlette.types import ASGIApp, Receive, Scope, Send

from memory_git.charon.steps import Steps

Road = Callable[[Scope, Receive, Send], Awaitable[None]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pattern:
    """What the log names a road by."""

    path: str


class Quick:
    """Sends a request down the road of its method and path, if there is one; a path may have one `{name}` in it, for one segment."""

    def __init__(self, app: ASGIApp, roads: Mapping[tuple[str, str], Road]) -> None:
        self.app = app
        self.roads = [
            (method, *path.partition("{")[::2], road, Pattern(path)) for (method, path), road in roads.items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] == "http":
            for method, before, rest, road, pattern in self.roads:
                if scope["method"] == method and _fits(scope, before, rest):
                    scope["route"] = pattern
                    await road(scope, receive, send)
                    return
        await self.app(scope, receive, send)


def _fits(scope: Scope, before: str, rest: str) -> bool:
    """Decides whether a path is the road's; notes what stands for its name."""
    path: str = scope["path"]
    if not rest:
        return path == before
    name, _, after = rest.partition("}")
    said = path[len(before) : len(path) - len(after)]
    if not said or "/" in said or path != f"{before}{said}{after}":
        return False
    scope["path_params"] = {name: said}
    return True


async def stepped(steps: Steps[T]) -> T:
    """Gives the outcome of work in steps, waiting on the loop; a client that leaves does not leave it half done."""
    return await asyncio.shield(asyncio.ensure_future(_stepped(steps)))


async def _stepped(steps: Steps[T]) -> T:
    try:
        step = next(steps)
        while True:
            try:
                answer = await outcome(step.soon)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        made: T = end.value
        return made


async def outcome(begin: Callable[[Callable[[], None]], Callable[[], T]]) -> T:
    """Gives the outcome of what another thread does, and tells when it is done; waits on the loop, in no thread."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    answer = begin(lambda: _wake(loop, done))
    await done
    return answer()


async def send_json(send: Send, content: Any, status: int) -> None:
    """Sends a JSON answer, keys sorted."""
    body = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _wake(loop: asyncio.AbstractEventLoop, done: asyncio.Future[None]) -> None:
    loop.call_soon_threadsafe(_settle, done)


def _settle(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
