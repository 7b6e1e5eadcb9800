"""What a proposal would make true, told so that the same value is known again, whoever proposes it under whatever id. Pure.

1. A text that would be active: its normalized form in its scope (`domain.text.normalize`), as retired values are compared (8-lifecycle).
2. A status that an accepted memory would get: the memory and the status.
3. A relationship that would be new: its two ends and its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memory_git.domain.canonical import canonical_bytes
from memory_git.domain.text import fold, normalize


def proposed_values(diff: Mapping[str, Any]) -> dict[bytes, tuple[str, ...]]:
    """Gives the values of a semantic diff, each in canonical bytes, with the memories that they are said of."""
    found: dict[bytes, set[str]] = {}
    for section, items in diff.items():
        if isinstance(items, list):
            for item in items:
                for value, memory_ids in _values(section, item):
                    found.setdefault(canonical_bytes(value), set()).update(memory_ids)
    return {value: tuple(sorted(found[value])) for value in sorted(found)}


def _values(section: str, item: Mapping[str, Any]) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    if section == "relationships_added":
        ends = (str(item["from_memory_id"]), str(item["to_memory_id"]))
        yield ["relationship", ends[0], str(item["kind"]), ends[1]], ends
    before, after = item.get("before"), item.get("after")
    if not after:
        return
    memory_id = str(after["memory_id"])
    if after["status"] == "active":
        if not before or _said(before) != _said(after) or before["status"] != "active":
            yield ["text", *_said(after)], (memory_id,)
    elif before and before["status"] != after["status"]:
        yield ["status", memory_id, str(after["status"])], (memory_id,)


def _said(record: Mapping[str, Any]) -> tuple[str, str]:
    return fold(record.get("scope") or ""), normalize(record.get("content") or "")
