"""What the routes share: the store behind the application, the audience of a reading, the router's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from memory_git.domain.errors import Fault, Invalid
from memory_git.domain.policy import VISIBILITIES, Audience
from memory_git.http import forms
from memory_git.http.strict import StrictRoute
from memory_git.lethe.protocol import Lethe

MEMORY_PREFIX = "/api/memory"


def router(tag: str, prefix: str = MEMORY_PREFIX) -> APIRouter:
    """Gives a router of strict routes."""
    return APIRouter(prefix=prefix, route_class=StrictRoute, tags=[tag])


async def _store(request: Request) -> Lethe:
    lethe: Lethe = request.app.state.lethe
    return lethe


async def _audience(reader: forms.Reader = None, visibility: forms.Visibilities = None) -> Audience | None:
    """Gives for whom to read; None when the query names nobody."""
    if reader is None:
        if visibility is not None:
            raise _unfit("reader", "is required with visibility")
        return None
    opened = frozenset(part for item in visibility or () for part in item.split(",") if part)
    if not reader or not opened <= set(VISIBILITIES):
        raise _unfit(
            "visibility" if reader else "reader",
            f"is one of {', '.join(VISIBILITIES)}" if reader else "is empty",
        )
    return Audience(reader, opened)


def page_of(name: str, rows: Sequence[Mapping[str, Any]], limit: int) -> dict[str, Any]:
    """Gives a page of numbered rows under a name; a full one says with `next` where the following one begins."""
    return {name: rows, **({"next": rows[-1]["seq"]} if len(rows) == limit else {})}


def _unfit(name: str, rule: str) -> Invalid:
    return Invalid("invalid_request", f"the query does not fit: {name}", [Fault(None, name, rule)])


Store = Annotated[Lethe, Depends(_store)]
Reader = Annotated[Audience | None, Depends(_audience)]
