"""Three-way merge of one memory (4-history, three-way merge). Newest never wins.

For a record against its base, left and right, 13 cases in the order of the code:

 base    left      right      result
 1 any   = right   = left     that record (changed the same way, or not at all)
 2 any   = base    changed    right
 3 any   changed   = base     left
 4 -     added     added      field by field against nothing: any field that differs is in conflict, one that is set on one side too
 5 ?     changed   changed    the base is ambiguous (criss-cross whose bases disagree): as 4
 6 some  changed   changed    field by field:
   6a set fields                     union of what was added, less what either side removed
   6b scalar = on both, or changed on one side only    that value
   6c scalar changed differently     conflict in that field
   6d `source_trust`                 the least of both
   6e `approval`                     stays only where an approving side's own words are what is merged, else conflict in it
   6f `owner_principal`              the first side's; conflict in it where one of two owners has the memory as private
   6g one side left active memory and the other changed anything but attachments    conflict in `status`
 7 any   absent    any        nothing to merge: no op takes a memory out of a state

For a relationship, which is in or out, 2 cases and no conflict:

 8 any   = right   = left     as both have it
 9 some  changed   = base     as the side that changed it has it, whichever that is

Lineage is merged as fields: its lists as in 6a, its single successors as in 6b and 6c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import astuple, replace

from memory_git.domain.canonical import canonical_bytes
from memory_git.domain.ops import least_trust
from memory_git.domain.record import (
    APPROVED_FIELDS,
    FIELD_NAMES,
    Attachment,
    Conflicted,
    Lineage,
    Record,
    sorted_attachments,
)

T = TypeVar("T")

_SETS = ("tags", "sources")
_ATTACHED = ("evidence", "verification")
_LINEAGE_SETS = ("corrected_from", "supersedes")
_LINEAGE_SCALARS = ("corrected_by", "superseded_by", "duplicate_of")
_APART = frozenset((*_SETS, *_ATTACHED, "lineage", "memory_id", "owner_principal", "source_trust"))
_SCALARS = tuple(name for name in FIELD_NAMES if name not in _APART)


def merge_records(base: Record | None, left: Record, right: Record) -> Record | Conflicted:
    """Merges two records of one memory, both present (cases 1 to 6)."""
    if left == right:
        return left
    if left == base:
        return right
    if right == base:
        return left
    values, open_fields = _merge_scalars(base, left, right)
    for name in _SETS:
        values[name] = _merge_set(_value(base, name) or (), getattr(left, name), getattr(right, name))
    for name in _ATTACHED:
        values[name] = _merge_attachments(_value(base, name) or (), getattr(left, name), getattr(right, name))
    values["lineage"], open_lineage = _merge_lineage(base, left.lineage, right.lineage)
    values["source_trust"] = least_trust(left.source_trust, right.source_trust)
    values["owner_principal"] = left.owner_principal or right.owner_principal
    merged = replace(left, **values)
    open_fields |= open_lineage | _open_authority(merged, left, right, open_fields)
    if base is not None and _is_retired_against_change(base, left, right):
        open_fields.add("status")
    if not open_fields:
        return merged
    return Conflicted(left.memory_id, base, left, right, frozenset(open_fields), merged)


class _Differs:
    """Stands for a field that was changed differently on both sides."""


_DIFFERS = _Differs()
_NOTHING = _Differs()
"""Stands for the base of a field when there is no base: equal to no value, so that any difference is one."""


def merge_field(base: object, left: T, right: T) -> T | _Differs:
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


def _merge_scalars(base: Record | None, left: Record, right: Record) -> tuple[dict[str, Any], set[str]]:
    """Gives the scalars' values, the first side's where they are in conflict, and the names of those that are."""
    values: dict[str, Any] = {}
    open_fields: set[str] = set()
    for name in _SCALARS:
        before = _NOTHING if base is None else getattr(base, name)
        found = merge_field(before, getattr(left, name), getattr(right, name))
        values[name] = getattr(left, name) if found is _DIFFERS else found
        if found is _DIFFERS:
            open_fields.add(name)
    return values, open_fields


def _open_authority(merged: Record, left: Record, right: Record, open_fields: set[str]) -> set[str]:
    """Finds an approval that would come to stand on words it was not given to, and a private memory of two owners."""
    found: set[str] = set()
    approving = [side for side in (left, right) if side.approval is not None]
    is_open = bool(open_fields & APPROVED_FIELDS)
    if merged.approval is not None and (
        is_open or not any(_says_the_same(merged, side) for side in approving)
    ):
        found.add("approval")
    is_private = "private" in (left.visibility, right.visibility)
    if is_private and left.owner_principal != right.owner_principal:
        found.add("owner_principal")
    return found


def _says_the_same(one: Record, two: Record) -> bool:
    return all(getattr(one, name) == getattr(two, name) for name in APPROVED_FIELDS)


def stands_merged(base: bool, left: bool, right: bool) -> bool:
    """Decides whether a relationship stands (cases 8 and 9); which side is which makes no difference."""
    return right if left == base else left


def changed_fields(before: Record | None, after: Record | None) -> list[str]:
    """Gives the names of the fields that differ, sorted; lineage by its parts."""
    if before is None or after is None:
        present = after or before
        return sorted(present.to_json()) if present else []
    values = zip(FIELD_NAMES, astuple(before), astuple(after), strict=True)
    names = [name for name, old, new in values if old != new and name != "lineage"]
    if before.lineage is after.lineage:
        return sorted(names)
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


def _merge_lineage(base: Record | None, left: Lineage, right: Lineage) -> tuple[Lineage, set[str]]:
    values: dict[str, Any] = {}
    open_fields: set[str] = set()
    before = base.lineage if base else Lineage()
    for name in _LINEAGE_SETS:
        values[name] = _merge_set(getattr(before, name), getattr(left, name), getattr(right, name))
    for name in _LINEAGE_SCALARS:
        known = _NOTHING if base is None else getattr(before, name)
        found = merge_field(known, getattr(left, name), getattr(right, name))
        values[name] = getattr(left, name) if found is _DIFFERS else found
        if found is _DIFFERS:
            open_fields.add(f"lineage.{name}")
    return Lineage(**values), open_fields


def _is_retired_against_change(base: Record, left: Record, right: Record) -> bool:
    """Decides case 6g: one side took an active record out of active memory, the other changed its value."""
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
