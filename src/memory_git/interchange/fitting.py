"""Fits what was found into the caps of a payload (3-model, caps); whatever is cut is kept elsewhere or reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memory_git.domain.canonical import canonical_bytes
from memory_git.domain.errors import Invalid
from memory_git.domain.ops import MAX_EXTRA_BYTES, MAX_PAYLOAD_BYTES, MAX_TAG_BYTES, MAX_TAGS
from memory_git.interchange.identity import clip_bytes
from memory_git.interchange.imported import Findings

_MAX_EXTRA_DEPTH = 32  # well within canonical JSON's 64, which a changeset wraps further
_EXTRA_ROOM_BYTES = MAX_EXTRA_BYTES - 64  # a split adds its part numbers


def bytes_of(text: str) -> int:
    """Gives the size in UTF-8 bytes."""
    return len(text.encode("utf-8"))


def one_line(text: str) -> str:
    """Gives the text with every run of white space and control characters as one space."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def clipped(text: str, limit_bytes: int) -> str:
    """Gives the text, or its start with an ellipsis, within so many UTF-8 bytes."""
    if bytes_of(text) <= limit_bytes:
        return text
    return clip_bytes(text, limit_bytes - 3) + "…"


def fit_line(text: str, limit_bytes: int, where: str, field: str, findings: Findings) -> str:
    """Gives a one-line text within its cap, and warns when it had to be cut."""
    line = one_line(text)
    fitted = clipped(line, limit_bytes)
    if fitted != line:
        findings.warn(where, field, f"cut from {bytes_of(line)} to {limit_bytes} bytes")
    return fitted


def fit_tags(tags: Iterable[str], where: str, findings: Findings) -> list[str]:
    """Gives distinct tags within the caps, in their order, and warns of each that is left out."""
    found = dict.fromkeys(filter(None, (one_line(tag).lstrip("#").strip() for tag in tags)))
    short = [tag for tag in found if bytes_of(tag) <= MAX_TAG_BYTES]
    if len(short) < len(found):
        findings.warn(where, "tags", f"{len(found) - len(short)} left out: over {MAX_TAG_BYTES} bytes")
    if len(short) > MAX_TAGS:
        findings.warn(where, "tags", f"{len(short) - MAX_TAGS} left out: over {MAX_TAGS} tags")
    return short[:MAX_TAGS]


def fit_extra(extra: Mapping[str, Any], where: str, findings: Findings) -> dict[str, Any]:
    """Gives what fits into `extra`, the smallest values first, and warns of each key that is left out."""
    kept: dict[str, Any] = {}
    used = 2
    for size, key in sorted((_entry_bytes(key, value), key) for key, value in extra.items()):
        if _is_deeper(extra[key], _MAX_EXTRA_DEPTH):
            findings.warn(
                where, clipped(one_line(key), 80), f"left out: nested deeper than {_MAX_EXTRA_DEPTH}"
            )
        elif used + size > _EXTRA_ROOM_BYTES:
            findings.warn(where, clipped(one_line(key), 80), "left out: no room in extra")
        else:
            kept[key] = extra[key]
            used += size
    return {key: kept[key] for key in extra if key in kept}


def fits_payload(payload: Mapping[str, Any]) -> bool:
    """Decides whether a payload is I-JSON within its cap."""
    try:
        return len(canonical_bytes(payload)) <= MAX_PAYLOAD_BYTES
    except Invalid:
        return False


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, list | dict):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in items)


def _entry_bytes(key: str, value: Any) -> int:
    try:
        return len(canonical_bytes({key: value}))
    except Invalid:
        return MAX_EXTRA_BYTES + 1
