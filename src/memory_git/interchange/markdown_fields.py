"""What the front matter of a Markdown file says, as keys of a payload (9-repository, files; 3-model, payload keys).

Nothing that gives authority is taken from a file (`protected`, `approval`, `owner_principal`, `source_trust`); like every
other unknown key it is only carried in `extra`. Visibility never widens: one that is not known becomes private.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from memory_git.domain.ops import ASSIGNABLE_STATUSES, KINDS, MAX_NOTE_BYTES, MAX_SOURCES, MAX_STRING_BYTES
from memory_git.domain.policy import VISIBILITIES
from memory_git.domain.times import format_time, parse_time
from memory_git.interchange.fitting import fit_extra, fit_line, fit_tags
from memory_git.interchange.front_matter import Field
from memory_git.interchange.imported import Findings

_DATE = re.compile(r"\d{4}-\d\d-\d\d")

# Target key of each field that is a text, the name that wins first.
_TEXTS = {
    "title": "title",
    "name": "title",
    "summary": "summary",
    "description": "summary",
    "type": "type",
    "scope": "scope",
    "subject": "subject",
    "fact_key": "fact_key",
}
_TIMES = {
    "valid_from": "valid_from",
    "valid_until": "valid_to",
    "valid_to": "valid_to",
    "review_after": "review_after",
}
_ELSEWHERE = frozenset({"id", "status", "extra"})

Reader = Callable[[Field, str, Findings], Any]


def fields_payload(fields: Mapping[str, Field], path: str, findings: Findings) -> tuple[dict[str, Any], str]:
    """Gives the payload keys and the status that the fields state; what has no place goes into `extra`."""
    payload: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, (target, read) in _READERS.items():
        if key in fields and target not in payload:
            value = read(fields[key], f"{path}:{fields[key].line}", findings)
            if value is not None:
                payload[target] = value
                continue
        if key in fields and fields[key].value is not None:
            extra[key] = fields[key].value
    extra.update({key: fields[key].value for key in fields if key not in _READERS and key not in _ELSEWHERE})
    payload.setdefault("kind", "fact")
    _check_period(payload, extra, path, findings)
    extra = fit_extra({**_carried(fields), **extra}, path, findings)
    return {**payload, "extra": extra} if extra else payload, _status(fields, path, findings)


def _carried(fields: Mapping[str, Field]) -> dict[str, Any]:
    """Gives the `extra` that a file states itself."""
    if "extra" not in fields or fields["extra"].value is None:
        return {}
    value = fields["extra"].value
    return value if isinstance(value, dict) else {"extra": value}


def _line(limit_bytes: int, name: str) -> Reader:
    """Gives the reader of a text field within a cap; a broken one is carried in `extra`."""

    def read(field: Field, where: str, findings: Findings) -> str | None:
        if field.text is None:
            findings.warn(where, name, "not a text: kept in extra")
            return None
        return fit_line(field.text, limit_bytes, where, name, findings) or None

    return read


def _kind(field: Field, where: str, findings: Findings) -> str | None:
    word = (field.text or "").strip().casefold()
    if word in KINDS:
        return word
    findings.warn(where, "kind", "not a known kind: taken as a fact")
    return None


def _visibility(field: Field, where: str, findings: Findings) -> str:
    word = (field.text or "").strip().casefold()
    if word in VISIBILITIES:
        return word
    findings.warn(where, "visibility", "not a known visibility: taken as private")
    return "private"


def _confidence(field: Field, where: str, findings: Findings) -> float | None:
    value = field.value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return value
    findings.warn(where, "confidence", "not a number from 0 to 1: kept in extra")
    return None


def _pinned(field: Field, where: str, findings: Findings) -> bool | None:
    if isinstance(field.value, bool):
        return field.value
    findings.warn(where, "pinned", "neither true nor false: kept in extra")
    return None


def _tags(field: Field, where: str, findings: Findings) -> list[str] | None:
    """Gives the tags of a list, or of a text with commas or spaces between."""
    if field.text is not None:
        separator = "," if "," in field.text else None
        return fit_tags(field.text.strip("[] ").split(separator), where, findings) or None
    texts = _texts(field.value)
    if texts is None:
        findings.warn(where, "tags", "not a list of texts: kept in extra")
        return None
    return fit_tags(texts, where, findings) or None


def _sources(field: Field, where: str, findings: Findings) -> list[str] | None:
    texts = [field.text] if field.text is not None else _texts(field.value)
    if texts is None or len(texts) >= MAX_SOURCES:
        findings.warn(where, "sources", f"not a list of up to {MAX_SOURCES - 1} texts: kept in extra")
        return None
    lines = (fit_line(text, MAX_STRING_BYTES, where, "sources", findings) for text in texts)
    return [line for line in lines if line] or None


def _time(name: str) -> Reader:
    """Gives the reader of a time or a date; a date that ends something ends with that day."""

    def read(field: Field, where: str, findings: Findings) -> str | None:
        text = (field.text or "").strip()
        moment = _moment(text, ends=name in ("valid_until", "valid_to"))
        if moment is not None:
            return format_time(moment)
        if text and field.value is not None:
            findings.warn(where, name, "not an RFC 3339 time or date: kept in extra")
        return None

    return read


def _moment(text: str, *, ends: bool) -> datetime | None:
    if not _DATE.fullmatch(text):
        return parse_time(text)
    day = parse_time(f"{text}T00:00:00Z")
    try:
        return day + timedelta(days=1, microseconds=-1) if day is not None and ends else day
    except OverflowError:
        return None


def _check_period(payload: dict[str, Any], extra: dict[str, Any], path: str, findings: Findings) -> None:
    """Moves a period that ends before it starts into `extra`."""
    start, end = payload.get("valid_from"), payload.get("valid_to")
    if start and end and end < start:
        findings.warn(path, "valid_until", "before valid_from: both kept in extra")
        for key in ("valid_from", "valid_to"):
            extra[key] = payload.pop(key)


def _status(fields: Mapping[str, Field], path: str, findings: Findings) -> str:
    if "status" not in fields or fields["status"].value is None:
        return "active"
    word = (fields["status"].text or "").strip().casefold()
    if word in ASSIGNABLE_STATUSES:
        return word
    findings.warn(
        f"{path}:{fields['status'].line}", "status", "not a status that can be set: taken as active"
    )
    return "active"


def _texts(value: Any) -> list[str] | None:
    """Gives a list of scalars as texts, or None."""
    if not isinstance(value, list) or any(isinstance(item, list | dict) for item in value):
        return None
    return [str(item) for item in value if item is not None]


_READERS: dict[str, tuple[str, Reader]] = {
    "kind": ("kind", _kind),
    "visibility": ("visibility", _visibility),
    "confidence": ("confidence", _confidence),
    "pinned": ("pinned", _pinned),
    "tags": ("tags", _tags),
    "sources": ("sources", _sources),
    **{
        key: (target, _line(MAX_NOTE_BYTES if target == "summary" else MAX_STRING_BYTES, key))
        for key, target in _TEXTS.items()
    },
    **{key: (target, _time(key)) for key, target in _TIMES.items()},
}
