"""The semantic diff of two states (4-history, semantic diff).

From states, not from lists of ops: what was made and taken back shows as nothing, a correction as one update. Each section is sorted by
memory id (relationships by from, kind, to), so the same two states give the same bytes always. A change may stand in several sections:

memories_added                       a memory that was not there, unless it came by correction or supersession
corrections_proposed                 content or another value of a memory changed in place, or by a successor
records_superseded                   a memory left active memory as corrected or superseded
duplicates_detected                  a memory left active memory as a duplicate
statuses_changed                     any other change of status
decisions_changed, tasks_or_flags_changed   whatever of the above concerns those kinds
permissions_or_visibility_affected   visibility, owner or protection changed, or a new memory is wider than internal
evidence_added_or_removed            attachments changed
relationships_added, relationships_removed
kind_notes                           temporal_update: joined by lineage; direct_contradiction: two active records that contradict
unresolved_conflicts                 the open conflicts that the caller hands in
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from memory_git.domain.change import Change, EdgeChange, OpRef
from memory_git.domain.merge import changed_fields
from memory_git.domain.record import Record

SECTIONS = (
    "memories_added",
    "corrections_proposed",
    "records_superseded",
    "relationships_added",
    "decisions_changed",
    "tasks_or_flags_changed",
    "duplicates_detected",
    "permissions_or_visibility_affected",
    "evidence_added_or_removed",
    "statuses_changed",
    "relationships_removed",
)
SUMMARY_CHARACTERS = 160

_STATUS_FIELDS = frozenset({"status", "status_reason"})
_ACCESS_FIELDS = frozenset({"visibility", "owner_principal", "protected"})
_ATTACHED_FIELDS = frozenset({"evidence", "verification"})

Contradicts = Callable[[Record], Iterable[Record]]
"""Gives the active records of the target state that a record contradicts without lineage."""


def semantic_diff(
    changes: Iterable[Change],
    edges: Iterable[EdgeChange] = (),
    *,
    contradicts: Contradicts = lambda _: (),
    unresolved: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Gives the sections of the diff; all are there, empty when nothing belongs in them."""
    diff: dict[str, Any] = {name: [] for name in SECTIONS}
    notes: dict[tuple[str, ...], dict[str, Any]] = {}
    for change in sorted(changes, key=lambda item: item.memory_id):
        item = _item(change)
        for section in _sections(change, item["changed_fields"]):
            diff[section].append(item)
        for note in _notes(change, contradicts):
            notes.setdefault((note["note"], *note["memory_ids"]), note)
    for edge in sorted(edges, key=lambda item: item.edge):
        section = "relationships_added" if edge.stands else "relationships_removed"
        diff[section].append({**_op_fields(edge.by), **edge.edge.to_json()})
    diff["kind_notes"] = [notes[key] for key in sorted(notes)]
    diff["unresolved_conflicts"] = list(unresolved)
    return diff


def is_empty(diff: Mapping[str, Any]) -> bool:
    """Decides whether a diff holds no change."""
    return not any(diff[name] for name in SECTIONS)


def _sections(change: Change, fields: Sequence[str]) -> list[str]:
    before, after = change.before, change.after
    changed = set(fields)
    found: list[str] = []
    if before is None and after is not None:
        from_others = after.lineage.corrected_from or after.lineage.supersedes
        found.append("corrections_proposed" if from_others else "memories_added")
        if after.visibility in ("shared", "public"):
            found.append("permissions_or_visibility_affected")
        if changed & _ATTACHED_FIELDS:
            found.append("evidence_added_or_removed")
    else:
        found += _changed_sections(change, changed)
    kind = change.present.kind
    if kind == "decision":
        found.append("decisions_changed")
    elif kind in ("task", "flag"):
        found.append("tasks_or_flags_changed")
    return found


def _changed_sections(change: Change, changed: set[str]) -> list[str]:
    found: list[str] = []
    if change.after is None:
        return ["statuses_changed"]
    if "status" in changed:
        left_as = {
            "corrected": "records_superseded",
            "superseded": "records_superseded",
            "duplicate": "duplicates_detected",
        }
        found.append(left_as.get(change.after.status, "statuses_changed"))
    elif changed & _STATUS_FIELDS:
        found.append("statuses_changed")
    lineage = {name for name in changed if name.startswith("lineage.")}
    if changed - _STATUS_FIELDS - _ACCESS_FIELDS - _ATTACHED_FIELDS - lineage:
        found.append("corrections_proposed")
    if changed & _ACCESS_FIELDS:
        found.append("permissions_or_visibility_affected")
    if changed & _ATTACHED_FIELDS:
        found.append("evidence_added_or_removed")
    return found or ["statuses_changed"]


def _item(change: Change) -> dict[str, Any]:
    present = change.present
    return {
        **_op_fields(change.by),
        "memory_id": change.memory_id,
        "summary": shorten(present.summary or present.title or present.content),
        "kind": present.kind,
        "before": change.before.to_json() if change.before else None,
        "after": change.after.to_json() if change.after else None,
        "changed_fields": changed_fields(change.before, change.after),
    }


def _op_fields(by: OpRef) -> dict[str, Any]:
    return {
        "op_ordinal": by.ordinal,
        "op_type": by.op_type,
        "changeset_id": by.changeset_id,
        "target_event_id": by.target_event_id,
        "resulting_event_id": by.resulting_event_id,
        "payload": dict(by.payload) if by.payload is not None else None,
    }


def _notes(change: Change, contradicts: Contradicts) -> list[dict[str, Any]]:
    after = change.after
    if after is None:
        return []
    notes = []
    came_from = sorted({*after.lineage.corrected_from, *after.lineage.supersedes})
    before_lineage = change.before.lineage if change.before else None
    for name in came_from:
        if before_lineage is None or name not in (*before_lineage.corrected_from, *before_lineage.supersedes):
            notes.append({"note": "temporal_update", "memory_ids": [name, after.memory_id]})
    if after.is_active:
        for other in contradicts(after):
            notes.append(
                {"note": "direct_contradiction", "memory_ids": sorted((after.memory_id, other.memory_id))}
            )
    return notes


def shorten(text: str, most: int = SUMMARY_CHARACTERS) -> str:
    """Gives the first line's worth of a text, cut between two characters, with an ellipsis when it was cut.

    >>> shorten("one two three", 8)
    'one two…'
    """
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    cut = line[: most - 1]
    while cut and (line[len(cut)] in _JOINERS or cut[-1] in _JOINERS or _combines(line[len(cut)])):
        cut = cut[:-1]
    return cut.rstrip() + "…"


_JOINERS = "\u200d\ufe0e\ufe0f"


def _combines(character: str) -> bool:
    """Decides whether a character belongs to the one before it: a combining mark or an emoji modifier."""
    return (
        "\u0300" <= character <= "\u036f"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or character in _JOINERS
    )
