"""Problem documents turned back into the errors that they were."""

from __future__ import annotations

from typing import Any

import orjson

from memory_git.domain.errors import (
    Clash,
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

_CLASSES: dict[int, type[Refused]] = {
    kind.status: kind
    for kind in (Unauthenticated, NotAllowed, NotFound, Clash, TooLarge, TooMany, Unavailable)
}
_FRAME = {"type", "title", "status", "detail", "error", "message", "code"}


def error_of(status: int, content: bytes) -> Refused | Corrupt:
    """Gives the error that a problem document stands for; Unavailable `lethe_failed` for what is none."""
    document = _document(content)
    code, message = document.get("code"), document.get("message")
    if not isinstance(code, str) or not isinstance(message, str):
        return Unavailable("lethe_failed", f"the store answered with status {status}", upstream_status=status)
    facts = {name: value for name, value in document.items() if name not in _FRAME}
    if code == "corrupt":
        return Corrupt(str(facts.get("kind", "object")), facts.get("object_id"), "the store found it so")
    if status == Invalid.status:
        return Invalid(code, message, _faults(facts.pop("faults", [])), **facts)
    if status in _CLASSES:
        return _CLASSES[status](code, message, **facts)
    return Unavailable(
        "lethe_failed", f"the store answered with status {status}", upstream_status=status, **facts
    )


def _faults(listed: Any) -> list[Fault]:
    return [Fault(one.get("ordinal"), one["field"], one["rule"], one.get("found", "")) for one in listed]


def _document(content: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}
