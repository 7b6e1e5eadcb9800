"""How answers are said over HTTP, where clients of the original read names that the protocol has elsewhere (5-lethe, HTTP API).

1. `unresolved_conflicts` of a context or a diff is a list of conflict ids; the protocol's own objects stand beside, as `conflicts`.
2. A memory of a context also has the fields of its record at the top, as far as the original names them.
3. A project is an object with its id and name.
What `to_wire` says, `from_wire` takes back: with or without HTTP between, a caller reads the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_git.domain.errors import Invalid, Unavailable
from memory_git.domain.ids import SHARED_MAIN

Json = dict[str, Any]

_FLAT = ("content", "event_type", "kind", "scope", "visibility", "tags", "confidence", "status")
_ENTRY = ("memory_id", "record", "record_digest", "salt", "version", "introduced_by", "changed_by")
_TOKENS = ("summary", "recent", "accepted", "conversation", "total")


def context_to_wire(shown: Mapping[str, Any]) -> Json:
    """Gives a context with rules 1 and 2."""
    return {**_conflicts_to_wire(shown), "memories": [_flat(item) for item in shown["memories"]]}


def context_from_wire(said: Mapping[str, Any]) -> Json:
    """Gives the context that was said."""
    memories = [{name: item[name] for name in _ENTRY if name in item} for item in said["memories"]]
    return {**_conflicts_from_wire(said), "memories": memories}


def diff_to_wire(shown: Mapping[str, Any]) -> Json:
    """Gives a diff with rule 1."""
    return _conflicts_to_wire(shown)


def diff_from_wire(said: Mapping[str, Any]) -> Json:
    """Gives the diff that was said."""
    return _conflicts_from_wire(said)


def projects_to_wire(names: Sequence[str]) -> list[Json]:
    """Gives projects by rule 3."""
    return [{"project_id": name, "name": name} for name in names]


def projects_from_wire(said: Sequence[Any]) -> list[str]:
    """Gives the project ids that were said."""
    if not all(isinstance(item, dict) and isinstance(item.get("project_id"), str) for item in said):
        raise Unavailable("lethe_failed", "what answers there does not speak Lethe's API")
    return [item["project_id"] for item in said]


def context_request(raw: Mapping[str, Any]) -> Json:
    """Gives a context request with the ref that is meant when none is named."""
    return {**raw, "ref_name": SHARED_MAIN} if raw.get("ref_name") in (None, "") else dict(raw)


def is_report(raw: Mapping[str, Any]) -> bool:
    """Decides whether an assembly comes as the original's plugin reports it."""
    return "assembler_version" in raw


def assembly_of_report(raw: Mapping[str, Any], project_id: str) -> Json:
    """Gives the assembly that a report of the original's plugin tells: items by event or kind, counts by what was counted."""
    items = raw.get("items") or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Invalid("invalid_assembly", "items is a list of objects")
    counts = {name: raw.get(f"{name}_estimated_tokens") for name in _TOKENS}
    counts |= {"budget": raw.get("provided_token_budget"), "packed_bytes": raw.get("packed_bytes")}
    return {
        "project_id": project_id,
        "manifest_id": raw.get("memory_manifest_id") or None,
        "head_changeset_id": raw.get("memory_head_changeset_id"),
        "items": [_item(item) for item in items],
        "token_counts": {name: value for name, value in counts.items() if value is not None},
    }


def _item(raw: Mapping[str, Any]) -> Json:
    item = {
        "memory_id": raw.get("event_id") or raw.get("item_kind"),
        "content_digest": raw.get("content_sha256"),
    }
    return item if raw.get("estimated_tokens") is None else {**item, "tokens": raw["estimated_tokens"]}


def _flat(entry: Mapping[str, Any]) -> Json:
    record = entry["record"]
    is_event = "legacy_event" in record.get("sources", ())
    return {
        **{name: record[name] for name in _FLAT if name in record},
        "source": "legacy_event" if is_event else "memory_git",
        "introduced_changeset_id": entry["introduced_by"],
        "last_changeset_id": entry["changed_by"],
        **entry,
    }


def _conflicts_to_wire(shown: Mapping[str, Any]) -> Json:
    found = shown["unresolved_conflicts"]
    return {
        **shown,
        "unresolved_conflicts": [item["conflict_id"] for item in found],
        "conflicts": list(found),
    }


def _conflicts_from_wire(said: Mapping[str, Any]) -> Json:
    rest = {name: value for name, value in said.items() if name != "conflicts"}
    return {**rest, "unresolved_conflicts": said["conflicts"]}
