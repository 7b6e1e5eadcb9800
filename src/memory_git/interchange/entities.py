"""What one entity of a memory server says, as the payload of one memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_git.domain.canonical import canonical_bytes
from memory_git.domain.ops import KINDS, MAX_STRING_BYTES
from memory_git.interchange.fitting import fit_extra, fit_line, one_line
from memory_git.interchange.imported import Findings

_OWN_KEYS = frozenset({"type", "_type", "name", "entityType", "entity_type", "observations"})
_TEXT_KEYS = ("text", "content", "observation", "value")
_TIME_KEYS = ("timestamp", "createdAt", "created_at", "date")


def entity_payload(entity: Mapping[str, Any], name: str, where: str, findings: Findings) -> dict[str, Any]:
    """Gives the payload of one entity: its observations as a Markdown list, its name as the title."""
    lines, times = _observations(entity.get("observations"), where, findings)
    title = fit_line(name, MAX_STRING_BYTES, where, "name", findings)
    bullets = "\n".join(f"- {line}" for line in lines)
    whole_name = name if title.endswith("…") and title != one_line(name) else ""
    extra = {key: value for key, value in entity.items() if key not in _OWN_KEYS}
    if any(times):
        extra["observed_at"] = times
    payload: dict[str, Any] = {
        "content": "\n\n".join(filter(None, [whole_name, bullets])) or title,
        "title": title,
        **_kind(entity.get("entityType", entity.get("entity_type")), extra, where, findings),
        "sources": [where],
    }
    extra = fit_extra(extra, where, findings)
    return {**payload, "extra": extra} if extra else payload


def _kind(entity_type: Any, extra: dict[str, Any], where: str, findings: Findings) -> dict[str, str]:
    """Gives `kind`, and `type` when the entity's type is a word of its own; only a kind's very name makes the kind."""
    if not isinstance(entity_type, str) or not one_line(entity_type):
        findings.warn(where, "entityType", "absent or not a text: taken as a fact")
        return {"kind": "fact"}
    word = entity_type.strip().casefold()
    if word in KINDS:
        if word != entity_type:
            extra["entityType"] = entity_type
        return {"kind": word}
    return {"kind": "fact", "type": fit_line(entity_type, MAX_STRING_BYTES, where, "entityType", findings)}


def _observations(value: Any, where: str, findings: Findings) -> tuple[list[str], list[str | None]]:
    """Gives the text and the time (or None) of every observation, a further line indented under its bullet."""
    if value is None:
        value = []
    texts: list[str] = []
    times: list[str | None] = []
    for observation in value if isinstance(value, list) else [value]:
        text, time = _observation(observation, where, findings)
        if not text.strip():
            findings.warn(where, "observations", "an empty one left out")
            continue
        texts.append("\n  ".join(text.strip().splitlines()))
        times.append(time)
    return texts, times


def _observation(value: Any, where: str, findings: Findings) -> tuple[str, str | None]:
    if isinstance(value, str):
        return value, None
    if isinstance(value, dict):
        text = next((value[key] for key in _TEXT_KEYS if isinstance(value.get(key), str)), None)
        time = next((str(value[key]) for key in _TIME_KEYS if isinstance(value.get(key), str | int)), None)
        if text is not None:
            for key in sorted(value.keys() - {*_TEXT_KEYS, *_TIME_KEYS}):
                findings.warn(where, "observations", f"key {one_line(key)[:80]} of one left out")
            return text, time
    findings.warn(where, "observations", "one is not a text: kept as JSON")
    return canonical_bytes(value).decode("utf-8"), None
