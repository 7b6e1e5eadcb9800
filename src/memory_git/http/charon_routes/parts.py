"""What the routes share: the gate behind the application, the caller of a request, the router's settings."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from memory_git.charon.caller import Caller
from memory_git.charon.gate import Gate
from memory_git.domain.errors import Unauthenticated
from memory_git.http.limits import bearer
from memory_git.http.strict import StrictRoute

API_PREFIX = "/api/v1"
Page = Annotated[int, Query(ge=1, le=200)]
"""The most that a list of the gate gives at once."""
Limit = Annotated[int, Query(ge=1, le=1000)]


def router(tag: str, prefix: str = API_PREFIX) -> APIRouter:
    """Gives a router of strict routes."""
    return APIRouter(prefix=prefix, route_class=StrictRoute, tags=[tag])


async def _gate(request: Request) -> Gate:
    gate: Gate = request.app.state.gate
    return gate


def caller_of(request: Request) -> Caller:
    """Gives who calls, by the obol in the Authorization header."""
    gate: Gate = request.app.state.gate
    return gate.authenticate(obol_of(request), "http")


def obol_of(request: Request) -> str:
    """Gives the obol of a request, or raises Unauthenticated; a session cookie opens no route of the API."""
    obol = bearer(request)
    if not obol:
        raise Unauthenticated("unauthenticated", "send an obol: Authorization: Bearer obol_...")
    return obol


TheGate = Annotated[Gate, Depends(_gate)]
By = Annotated[Caller, Depends(caller_of)]
