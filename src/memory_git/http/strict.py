"""Strict bodies and queries: what is not declared is refused, and JSON is read by the domain's own reader.

1. A body is JSON with that media type, within its cap (chapter 10: 1 MiB, a create request 8 MiB), without duplicate keys.
2. A query parameter that the route does not declare is refused by name, so that a misspelt one never passes for absent; one that is
   said twice is refused too, so that nobody can read it otherwise than we do.
3. A request counts against the rates of its project and principal, as its path, query and body name them (`rates`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from memory_git.domain.canonical import decode
from memory_git.domain.errors import Fault, Invalid, TooLarge
from memory_git.lethe.rates import Name

BODY_BYTES = 1 << 20
CREATE_BYTES = 8 << 20
_REPEATED = frozenset({"visibility"})
_READ_S = 60
INLINE_BYTES = 32 << 10
"""A larger body is decoded in a thread, so that it does not hold up the others."""


class Body(BaseModel):
    """A request body: exact types, no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)

    def given(self) -> dict[str, Any]:
        """Gives the fields that the client sent, as it sent them."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class StrictRoute(APIRoute):
    """A route that reads its request by the rules of this module."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Gives the handler, with the strict reading in front of FastAPI's own."""
        handle = super().get_route_handler()
        known = set(_query_names(self.dependant))
        cap = (self.openapi_extra or {}).get("x-max-bytes", BODY_BYTES)

        async def strictly(request: Request) -> Response:
            check_query(request, known)
            if self.body_field is not None:
                await _load(request, cap)
            take(request, getattr(request, "_json", None))
            return await handle(request)

        return strictly


def take(request: Request, body: Any) -> None:
    """Counts a request against the rates of its application, where it has some (rule 3)."""
    rates = getattr(request.app.state, "rates", None)
    if rates is not None:
        said = (request.path_params, request.query_params, body)
        rates.take(names_of(part for part in said if isinstance(part, Mapping)))


async def read_capped(request: Request, cap_bytes: int) -> bytes:
    """Gives the body, or raises TooLarge `request_too_large` as soon as it is known to exceed the cap."""
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared[:16]) > cap_bytes:
        raise _too_large(cap_bytes)
    body = bytearray()
    try:
        async with asyncio.timeout(_READ_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > cap_bytes:
                    raise _too_large(cap_bytes)
    except ClientDisconnect:
        raise Invalid("body_cut_short", "the connection ended before the body did") from None
    except TimeoutError:
        raise Invalid("body_too_slow", f"the body did not arrive within {_READ_S} s") from None
    return bytes(body)


async def read_object(request: Request, cap_bytes: int) -> tuple[dict[str, Any], int]:
    """Gives the JSON object of a body that must hold one, and the body's bytes."""
    body = await read_capped(request, cap_bytes)
    if not body:
        raise _unfit_body("is required", "")
    content = await _decoded(request, body)
    if not isinstance(content, dict):
        raise _unfit_body("is not an object", type(content).__name__)
    return content, len(body)


async def _load(request: Request, cap_bytes: int) -> None:
    """Reads and decodes the body into the places where FastAPI looks for it."""
    body = await read_capped(request, cap_bytes)
    request._body = body
    if body:
        request._json = await _decoded(request, body)


async def _decoded(request: Request, body: bytes) -> Any:
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Invalid("bad_media_type", "a body is sent as it is: without Content-Encoding")
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Invalid("bad_media_type", "a body is JSON: send it with Content-Type: application/json")
    return decode(body) if len(body) < INLINE_BYTES else await run_in_threadpool(decode, body)


def _unfit_body(rule: str, found: str) -> Invalid:
    faults = [Fault(None, "body", rule, found)]
    return Invalid("invalid_request", "the request does not fit its shape: body", faults)


def _query_names(dependant: Dependant) -> Iterator[str]:
    yield from (str(field.alias) for field in dependant.query_params)
    for part in dependant.dependencies:
        yield from _query_names(part)


def check_query(request: Request, known: Collection[str]) -> None:
    """Refuses a query parameter that is not known (rule 2)."""
    if not request.scope["query_string"]:
        return
    unknown = sorted(set(request.query_params) - set(known))
    if unknown:
        names = [name if name.isascii() and name.isidentifier() else "?" for name in unknown][:20]
        faults = [Fault(None, name[:64], "is not known here", "str") for name in names]
        raise Invalid("invalid_request", "a query parameter is not known here", faults)
    said = Counter(name for name, _ in request.query_params.multi_items() if name not in _REPEATED)
    if twice := sorted(name for name, count in said.items() if count > 1):
        faults = [Fault(None, name, "is said more than once") for name in twice]
        raise Invalid("invalid_request", "a query parameter is said more than once", faults)


def _too_large(cap_bytes: int) -> TooLarge:
    return TooLarge("request_too_large", f"the request is larger than {cap_bytes} bytes", max_bytes=cap_bytes)


def names_of(parts: Iterable[Any]) -> list[Name]:
    """Gives the names that a request's path, query and body say: its project, and for whom it is."""
    found: dict[str, str] = {}
    for said in parts:
        for key, counted in _SAID.items():
            value = said.get(key)
            if isinstance(value, str) and value:
                found.setdefault(counted, value[:256])
    return list(found.items())


_SAID = {
    "project": "project",
    "project_id": "project",
    "author_principal": "principal",
    "reviewer_principal": "principal",
    "principal": "principal",
    "reader": "principal",
}
