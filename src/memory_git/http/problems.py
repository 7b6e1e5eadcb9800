"""Problem documents (RFC 9457) for everything that is refused or goes wrong.

1. A `Refused` is answered with its own status, code and facts.
2. `Corrupt` is a 500 with code `corrupt` that names the object's kind and id, nothing else.
3. Anything else is a 500 with code `internal` and a request id. The log has the id, the exception's type and the places
   it passed; never its text, which may hold content.
4. A request that does not fit the declared shape is `invalid_request`; its faults name fields and rules, never values.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from memory_git.domain.errors import (
    Corrupt,
    Fault,
    Invalid,
    NotAllowed,
    NotFound,
    Refused,
    TooLarge,
    TooMany,
    Unauthenticated,
    Unavailable,
)

_LOG = logging.getLogger("memory_git.http")
_LACKS = "denied: the token lacks the scope "
_RETRY_AFTER_S = 1
ANSWER_BYTES = 64 << 20
_RULES = {
    "missing": "is required",
    "extra_forbidden": "is not known here",
    "model_attributes_type": "is not an object",
    "dict_type": "is not an object",
    "list_type": "is not an array",
}
_NO_RETRY = {"recovery_readonly", "storage_failed"}


class JsonAnswer(Response):
    """A JSON body with sorted keys, so that equal values are equal bytes."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Gives the bytes, or raises TooLarge `answer_too_large`: nothing is cut silently."""
        body = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
        if len(body) > ANSWER_BYTES:
            message = "the answer is larger than an answer may be: ask for less, or by pages"
            raise TooLarge("answer_too_large", message, max_bytes=ANSWER_BYTES)
        return body


class ProblemAnswer(JsonAnswer):
    """A problem document."""

    media_type = "application/problem+json"


def problem_answer(error: Exception, request_id: str = "") -> Response:
    """Gives the answer to any exception, by the rules of this module."""
    if isinstance(error, Refused):
        return ProblemAnswer(error.to_problem(), error.status, headers=_headers(error))
    if isinstance(error, Corrupt):
        _LOG.error(
            "corrupt %s", error.kind, extra={"request_id": request_id, "object_id": str(error.object_id)}
        )
        facts = {"kind": error.kind, "object_id": str(error.object_id)}
        return _failure("corrupt", "a stored object does not agree with its digest", facts)
    _LOG.error(
        "unexpected %s", type(error).__name__, extra={"request_id": request_id, "places": _places(error)}
    )
    return _failure(
        "internal", "something unexpected happened; the log knows the request id", {"request_id": request_id}
    )


def install_problems(app: FastAPI) -> None:
    """Makes an application answer every refusal as a problem document."""
    for kind in (Refused, Corrupt):
        app.add_exception_handler(kind, refused)
    app.add_exception_handler(RequestValidationError, _unfit)
    app.add_exception_handler(HTTPException, _routing)


def invalid_request(errors: Sequence[Any]) -> Invalid:
    """Gives the refusal of a request that does not fit its shape, from pydantic's list of errors."""
    faults = [Fault(None, _field(error["loc"]), _rule(error), _found(error)) for error in errors]
    names = ", ".join(sorted({fault.field for fault in faults}))
    return Invalid("invalid_request", f"the request does not fit its shape: {names}", faults)


async def refused(request: Request, error: Exception) -> Response:
    """Gives the answer to a refusal or a damaged object, and notes its code for the log."""
    request.scope["problem_code"] = getattr(error, "code", "corrupt")
    if isinstance(error, NotAllowed) and (lacking := lacking_scope(error)):
        request.scope["lacking_scope"] = lacking
    return problem_answer(error, request.scope.get("request_id", ""))


async def _unfit(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    request.scope["problem_code"] = "invalid_request"
    return problem_answer(invalid_request(error.errors()))


async def _routing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        request.scope["problem_code"] = "not_found"
        return problem_answer(NotFound("not_found", "there is nothing at this address"))
    refusal = Refused("method_not_allowed" if error.status_code == 405 else "bad_request", str(error.detail))
    request.scope["problem_code"] = refusal.code
    headers = {"Allow": _allowed(request)} if error.status_code == 405 else dict(error.headers or {})
    return ProblemAnswer(
        refusal.to_problem() | {"status": error.status_code}, error.status_code, headers=headers
    )


def _allowed(request: Request) -> str:
    """Gives every method that the address has, of all routes with its pattern: the one that says most of it."""
    matching = [
        route
        for route in _routes(request.app.routes)
        if isinstance(route, Route) and route.matches(request.scope)[0] != Match.NONE
    ]
    least = min((len(route.param_convertors) for route in matching), default=0)
    methods = (route.methods or set() for route in matching if len(route.param_convertors) == least)
    return ", ".join(sorted(set().union(*methods)))


def _routes(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """Yields routes, and those of the routers among them."""
    for route in routes:
        router = getattr(route, "original_router", None)
        yield from _routes(router.routes) if router is not None else [route]


def _failure(code: str, message: str, facts: dict[str, Any]) -> Response:
    document = Refused(code, message, **facts).to_problem() | {"status": 500}
    return ProblemAnswer(document, 500)


def _headers(error: Refused) -> dict[str, str]:
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, TooMany | Unavailable) and error.code not in _NO_RETRY:
        return {"Retry-After": str(error.facts.get("retry_after_s", _RETRY_AFTER_S))}
    return {}


def _field(location: Sequence[Any]) -> str:
    parts = [str(part)[:64] for part in location if part not in ("body", "query", "path")]
    return ".".join(parts) or "body"


def _rule(error: Any) -> str:
    """Gives the broken rule in words; pydantic's own name for the rare ones."""
    kind = str(error["type"])
    if kind in _RULES:
        return _RULES[kind]
    return f"is not a {kind.removesuffix('_type')}" if kind.endswith("_type") else kind.replace("_", " ")


def _found(error: Any) -> str:
    """Gives the kind of the offending value; a missing one has none."""
    return "" if error["type"] == "missing" else type(error.get("input")).__name__


def _places(error: Exception) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    return [
        f"{frame.filename.rpartition('memory_git/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-20:]
    ]


def lacking_scope(error: Refused) -> str | None:
    """Gives the scope that a denied call lacks in its token, None for any other refusal."""
    if error.code == "denied" and error.message.startswith(_LACKS):
        return error.message.removeprefix(_LACKS)
    return None
