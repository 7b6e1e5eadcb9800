"""The quick road of `POST /projects/{project}/changesets`: read and judged on the loop, written by the databases' own threads.

What may have to wait for more than the two writes that every commit waits for goes by a thread: a large body, a head that is kept
with its key, a ref that is yet to be claimed, databases that are elsewhere.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from memory_git.charon.gate import Gate
from memory_git.domain.errors import Corrupt, Refused
from memory_git.http.charon_routes.parts import caller_of, obol_of
from memory_git.http.charon_routes.requests import CommitRequest
from memory_git.http.problems import invalid_request, refused
from memory_git.http.quick import Road, send_json, stepped
from memory_git.http.strict import CREATE_BYTES, INLINE_BYTES, check_query, read_object, take

_OWN = ("refs/agents/", "refs/sessions/")


def commit_road(gate: Gate) -> Road:
    """Gives the road over a gate."""

    async def road(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            done = await _commit(gate, request)
        except (Refused, Corrupt) as error:
            answer = await refused(request, error)
            await answer(scope, receive, send)
        else:
            await send_json(send, done, 200 if done["replayed"] else 201)

    return road


async def _commit(gate: Gate, request: Request) -> dict[str, Any]:
    check_query(request, ())
    try:
        body, size = await read_object(request, CREATE_BYTES)
    except Refused:
        caller_of(request)  # who is not known learns nothing of the body but that
        raise
    take(request, body)
    project = request.path_params["project"]
    if size >= INLINE_BYTES or not gate.takes_steps:
        return await run_in_threadpool(lambda: gate.commit(caller_of(request), project, **_read(body)))
    caller, identity = gate.recognise(obol_of(request), "http")
    work = _read(body)
    if _is_plain(work):
        return await stepped(gate.commit_steps(caller, project, identity=identity, **work))
    return await run_in_threadpool(lambda: gate.commit(caller, project, **work))


def _read(body: dict[str, Any]) -> dict[str, Any]:
    try:
        return CommitRequest.model_validate(body).given()
    except ValidationError as error:
        raise invalid_request(error.errors()) from None


def _is_plain(work: dict[str, Any]) -> bool:
    """Decides whether the commit waits for its intent and its changeset alone."""
    keeps_head = work.get("idempotency_key") is not None and work.get("expected_head") is None
    ref = work.get("ref")
    return not keeps_head and (ref is None or ref.startswith(_OWN))
