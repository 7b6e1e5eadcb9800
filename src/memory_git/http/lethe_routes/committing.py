"""The quick road of `POST /changesets`: read on the loop, stored by the writer, answered when it is durable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from memory_git.http.quick import Road, outcome, send_json
from memory_git.http.strict import CREATE_BYTES, INLINE_BYTES, check_query, read_object, take
from memory_git.lethe.protocol import Json


class Committing(Protocol):
    """A store that can begin a changeset without waiting for it."""

    def create_changeset(self, request: Mapping[str, Any]) -> tuple[Json, bool]:
        """Stores a changeset and gives it, and whether it is a replay."""
        ...

    def create_changeset_soon(
        self, request: Mapping[str, Any], told: Callable[[], None]
    ) -> Callable[[], tuple[Json, bool]]:
        """Begins one; gives what to call for the answer once `told` was called."""
        ...


def create_road(lethe: Committing) -> Road:
    """Gives the road over a store; a large request is read in a thread, so that it does not hold up the others."""

    async def road(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        check_query(request, ())
        body, size = await read_object(request, CREATE_BYTES)
        take(request, body)
        if size < INLINE_BYTES:
            changeset, replayed = await outcome(lambda told: lethe.create_changeset_soon(body, told))
        else:
            changeset, replayed = await run_in_threadpool(lethe.create_changeset, body)
        await send_json(send, changeset, 200 if replayed else 201)

    return road
