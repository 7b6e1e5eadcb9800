"""Three-way merge of one memory (4-history, three-way merge). Newest never wins.

For a record against its base, left and right, 13 cases in the order of the code:

 base    left      right      result
 1 any   = right   = left     that record (changed the same way, or not at all)
 2 any   = base    changed    right
 3 any   changed   = base     left
 4 -     absent    absent     absent (case 1)
 5 some  absent    changed    conflict: changed against removed (states of imports only; no op removes a record)
 6 some  changed   absent     conflict, the same
 7 -     added     added      field by field against nothing: any field that differs is in conflict
 8 some  changed   changed    field by field:
   8a set fields                     union of what was added, less what either side removed
   8b scalar = on both, or changed on one side only    that value
   8c scalar changed differently     conflict in that field
   8d one side left active memory and the other changed anything else    conflict in `status`
 9 ambiguous base (criss-cross whose bases disagree)   as 7
Relationships merge as a set: a key is in or out, so both sides that changed it agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from memory_git.domain.canonical import canonical_bytes
from memory_git.domain.record import FIELD_NAMES, Attachment, Conflicted, Lineage, Record, sorted_attachments

T = TypeVar("T")

_SETS = ("tags", "sources")
_ATTACHED = ("evidence", "verification")
_LINEAGE_SETS = ("corrected_from", "supersedes")
_LINEAGE_SCALARS = ("corrected_by", "superseded_by", "duplicate_of")
_APART = frozenset((*_SETS, *_ATTACHED, "lineage", "memory_id", "owner_principal"))
_SCALARS = tuple(name for name in FIELD_NAMES if name not in _APART)


def merge_records(base: Record | None, left: Record, right: Record) -> Record | Conflicted:
    """Merges two records of one memory, both present; absent sides are settled by the caller (cases 4 to 6)."""
    if left == right:
        return left
    if left == base:
        return right
    if right == base:
        return left
    open_fields: set[str] = set()
    values: dict[str, Any] = {}
    for name in _SCALARS:
        found = merge_field(_value(base, name), getattr(left, name), getattr(right, name))
        values[name] = getattr(left, name) if found is _DIFFERS else found
        if found is _DIFFERS:
            open_fields.add(name)
    for name in _SETS:
        values[name] = _merge_set(_value(base, name) or (), getattr(left, name), getattr(right, name))
    for name in _ATTACHED:
        values[name] = _merge_attachments(_value(base, name) or (), getattr(left, name), getattr(right, name))
    values["lineage"], open_lineage = _merge_lineage(
        base.lineage if base else Lineage(), left.lineage, right.lineage
    )
    open_fields |= open_lineage
    if base is not None and _is_retired_against_change(base, left, right):
        open_fields.add("status")
    merged = replace(left, **values)
    if not open_fields:
        return merged
    return Conflicted(left.memory_id, base, left, right, frozenset(open_fields), merged)


class _Differs:
    """Stands for a field that was changed differently on both sides."""


_DIFFERS = _Differs()


def merge_field(base: T, left: T, right: T) -> T | _Differs:
    """Merges one scalar field; two different changes have no answer.

    >>> merge_field("a", "a", "b")
    'b'
    """
    if left == right:
        return left
    if left == base:
        return right
    if right == base:
        return left
    return _DIFFERS


def changed_fields(before: Record | None, after: Record | None) -> list[str]:
    """Gives the names of the fields that differ, sorted; lineage by its parts."""
    if before is None or after is None:
        present = after or before
        return sorted(present.to_json()) if present else []
    names = [
        name for name in FIELD_NAMES if name != "lineage" and getattr(before, name) != getattr(after, name)
    ]
    names += [
        f"lineage.{name}"
        for name in (*_LINEAGE_SETS, *_LINEAGE_SCALARS)
        if getattr(before.lineage, name) != getattr(after.lineage, name)
    ]
    return sorted(names)


def _value(base: Record | None, name: str) -> Any:
    return None if base is None else getattr(base, name)


def _merge_set(base: Sequence[str], left: Sequence[str], right: Sequence[str]) -> tuple[str, ...]:
    kept = set(base) & set(left) & set(right)
    return tuple(sorted(kept | (set(left) - set(base)) | (set(right) - set(base))))


def _merge_attachments(
    base: Sequence[Attachment], left: Sequence[Attachment], right: Sequence[Attachment]
) -> tuple[Attachment, ...]:
    by_bytes = {canonical_bytes(dict(item)): item for item in (*base, *left, *right)}
    keys = [[canonical_bytes(dict(item)) for item in side] for side in (base, left, right)]
    kept = set(keys[0]) & set(keys[1]) & set(keys[2])
    kept |= (set(keys[1]) | set(keys[2])) - set(keys[0])
    return sorted_attachments([by_bytes[key] for key in kept])


def _merge_lineage(base: Lineage, left: Lineage, right: Lineage) -> tuple[Lineage, set[str]]:
    values: dict[str, Any] = {}
    open_fields: set[str] = set()
    for name in _LINEAGE_SETS:
        values[name] = _merge_set(getattr(base, name), getattr(left, name), getattr(right, name))
    for name in _LINEAGE_SCALARS:
        found = merge_field(getattr(base, name), getattr(left, name), getattr(right, name))
        values[name] = getattr(left, name) if found is _DIFFERS else found
        if found is _DIFFERS:
            open_fields.add(f"lineage.{name}")
    return Lineage(**values), open_fields


def _is_retired_against_change(base: Record, left: Record, right: Record) -> bool:
    """Decides case 8d: one side took an active record out of active memory, the other changed its value."""
    if not base.is_active or left.is_active == right.is_active:
        return False
    still_active = left if left.is_active else right
    return bool(set(changed_fields(base, still_active)) - {"evidence", "verification"})


def unsettled_to_json(found: Conflicted) -> Mapping[str, Any]:
    """Gives the wire form of a key that a merge changeset must answer."""
    return {
        "memory_id": found.memory_id,
        "fields": sorted(found.fields),
        "base": found.base.to_json() if found.base else None,
        "left": found.left.to_json(),
        "right": found.right.to_json(),
    }
