"""A semantic diff as rows for a page: per memory, the fields that differ, before and after.

Conflicts are left out: a page shows them apart, with both sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

SECTION_TITLES = {
    "memories_added": "Added",
    "corrections_proposed": "Corrected",
    "records_superseded": "Superseded",
    "statuses_changed": "Status changed",
    "decisions_changed": "Decisions changed",
    "tasks_or_flags_changed": "Tasks or flags changed",
    "duplicates_detected": "Duplicates",
    "permissions_or_visibility_affected": "Visibility changed",
    "evidence_added_or_removed": "Evidence and verification",
    "relationships_added": "Relationships added",
    "relationships_removed": "Relationships removed",
    "kind_notes": "Notes",
}
_FIELD_ORDER = ("status", "kind", "title", "content", "summary", "visibility", "source_trust", "confidence")
_LEFT_OUT = frozenset({"memory_id", "lineage"})


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field; None stands for an unset value."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """One item of a diff; `repeats` when an earlier section has the same."""

    title: str
    summary: str
    fields: tuple[FieldChange, ...]
    repeats: bool = False

    @property
    def is_new(self) -> bool:
        """Says that there was nothing before."""
        return bool(self.fields) and all(field.before is None for field in self.fields)


@dataclass(frozen=True, slots=True)
class Section:
    """The items of one kind."""

    name: str
    title: str
    changes: tuple[Change, ...]


def sections(diff: Mapping[str, Any]) -> list[Section]:
    """Gives the sections of a diff that hold anything, in the order of reading."""
    earlier: set[Change] = set()
    found = []
    for name, title in SECTION_TITLES.items():
        changes = [_change(item) for item in diff.get(name) or ()]
        shown = tuple(
            replace(change, repeats=change in earlier and bool(change.fields)) for change in changes
        )
        earlier.update(changes)
        if shown:
            found.append(Section(name, title, shown))
    return found


def field_text(value: Any) -> str | None:
    """Gives a record's field as text, None when unset."""
    if value in (None, "", [], {}):
        return None
    if isinstance(value, list):
        return "\n".join(str(field_text(item)) for item in value)
    if isinstance(value, dict):
        return "\n".join(
            f"{name}: {field_text(item)}"
            for name, item in sorted(value.items())
            if item not in (None, "", [])
        )
    return str(value)


def record_fields(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Gives the set fields of a record, the telling ones first."""
    names = sorted(record, key=_rank)
    texts = ((name, field_text(record[name])) for name in names if name != "memory_id")
    return [(name, text) for name, text in texts if text is not None]


def _change(item: Mapping[str, Any]) -> Change:
    before, after = item.get("before") or {}, item.get("after") or {}
    names = set(item.get("changed_fields") or ()) | ({*before, *after} if not (before and after) else set())
    fields = (
        FieldChange(name, field_text(before.get(name)), field_text(after.get(name)))
        for name in sorted(names - _LEFT_OUT, key=_rank)
    )
    return Change(_title(item, before, after), str(item.get("summary") or ""), tuple(fields))


def _title(item: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if "from_memory_id" in item:
        return f"{item['from_memory_id']} {item.get('kind', '')} {item['to_memory_id']}"
    for named in (after.get("memory_id"), before.get("memory_id"), item.get("memory_id")):
        if named:
            return str(named)
    ends = [item.get("target_event_id"), item.get("resulting_event_id")]
    said = str(item.get("note") or item.get("conflict_type") or "").replace("_", " ")
    about = ", ".join(str(named) for named in item.get("memory_ids") or ())
    return " -> ".join(str(end) for end in ends if end) or (f"{said}: {about}" if about else said)


def _rank(name: str) -> tuple[int, str]:
    return (_FIELD_ORDER.index(name) if name in _FIELD_ORDER else len(_FIELD_ORDER), name)
