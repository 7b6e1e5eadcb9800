"""The semantic diff of two states (4-history, semantic diff).

From states, not from lists of ops: what was made and retired again shows as nothing, a correction as one update (`succession`). Each
section is sorted by memory id, notes by the memory that they are told of, relationships by from, kind, to: so the same two states give
the same bytes always, and the pages of a diff, one after another, are the whole. A change may stand in several sections:

memories_added                       a memory that was not there, unless it took the place of one that was
corrections_proposed                 content or another value of a memory changed in place; or a successor, beside what it took the place of
records_superseded                   a memory left active memory as superseded, or as corrected by what this diff does not show
duplicates_detected                  a memory left active memory as a duplicate
statuses_changed                     any other change of status
decisions_changed, tasks_or_flags_changed   whatever of the above concerns those kinds, or such an event, before or after
permissions_or_visibility_affected   visibility, owner or protection changed; or a memory that is shown more widely than internal, or than
                                     what it took the place of, is new
evidence_added_or_removed            attachments changed
relationships_added, relationships_removed
kind_notes                           temporal_update: joined by lineage; direct_contradiction: two active records that contradict
unresolved_conflicts                 the open conflicts that the caller hands in
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from memory_git.domain.change import Change, EdgeChange, OpRef
from memory_git.domain.merge import changed_fields
from memory_git.domain.policy import is_wider, narrowest
from memory_git.domain.record import Attachment, Record
from memory_git.domain.succession import ChangeOf, Origins, Succession, came_and_went

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
_LEFT_AS = {
    "corrected": "records_superseded",
    "superseded": "records_superseded",
    "duplicate": "duplicates_detected",
}

Contradicts = Callable[[Record], Iterable[Record]]
"""Gives the active records of the target state that a record contradicts without lineage."""


def semantic_diff(
    changes: Iterable[Change],
    edges: Iterable[EdgeChange] = (),
    *,
    change_of: ChangeOf | None = None,
    contradicts: Contradicts = lambda _: (),
    unresolved: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Gives the sections of the diff; all are there, empty when nothing belongs in them.

    Of a page, `changes` and `edges` are those of the page, and `change_of` looks into the whole.
    """
    diff: dict[str, Any] = {name: [] for name in (*SECTIONS, "kind_notes")}
    by_memory = {change.memory_id: change for change in changes}
    look_up = change_of or by_memory.get
    succession = Succession(look_up)
    for _, change in sorted(by_memory.items()):
        if came_and_went(change) or succession.is_shown_with_heir(change):
            continue
        origins = succession.origins(change)
        item = _item(change, _only(origins))
        for section in _sections(change, origins, set(item["changed_fields"])):
            diff[section].append(item)
        notes = [*_updates(change, origins), *_contradictions(change, look_up, contradicts)]
        diff["kind_notes"] += [{"note": note, "memory_ids": list(names)} for note, names in sorted(notes)]
    for edge in sorted(edges, key=lambda item: item.edge):
        section = "relationships_added" if edge.stands else "relationships_removed"
        diff[section].append(_edge_item(edge))
    diff["unresolved_conflicts"] = list(unresolved)
    return diff


def is_empty(diff: Mapping[str, Any]) -> bool:
    """Decides whether a diff holds no change."""
    return not any(diff[name] for name in SECTIONS)


def _only(origins: Origins) -> Record | None:
    return next(iter(origins.values())) if len(origins) == 1 else None


def _sections(change: Change, origins: Origins, changed: set[str]) -> list[str]:
    before, after = change.before, change.after
    found: list[str] = []
    if after is None:
        found.append("statuses_changed")
    elif before is None:
        found += _new_sections(after, origins)
    else:
        found += _changed_sections(after, changed)
    concerned = [record for record in (before, after, *origins.values()) if record is not None]
    kinds = {record.kind for record in concerned}
    if "decision" in kinds:
        found.append("decisions_changed")
    if (kinds | {record.event_type for record in concerned}) & {"task", "flag"}:
        found.append("tasks_or_flags_changed")
    return found


def _new_sections(after: Record, origins: Origins) -> list[str]:
    found = ["corrections_proposed" if origins else "memories_added"]
    known = [origin for origin in origins.values() if origin is not None]
    usual = narrowest(origin.visibility for origin in known) if known else "internal"
    owner_changes = any(origin.owner_principal != after.owner_principal for origin in known)
    if owner_changes or is_wider(after.visibility, usual):
        found.append("permissions_or_visibility_affected")
    attached_before = [item for origin in known for item in _attached(origin)]
    if any(item not in attached_before for item in _attached(after)):
        found.append("evidence_added_or_removed")
    return found


def _attached(record: Record) -> tuple[Attachment, ...]:
    return (*record.evidence, *record.verification)


def _changed_sections(after: Record, changed: set[str]) -> list[str]:
    found: list[str] = []
    if "status" in changed:
        found.append(_LEFT_AS.get(after.status, "statuses_changed"))
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


def _item(change: Change, origin: Record | None) -> dict[str, Any]:
    present = change.present
    before = change.before or origin
    return {
        **_op_fields(change.by),
        "memory_id": change.memory_id,
        "summary": shorten(present.summary or present.title or present.content),
        "kind": present.kind,
        "before": before.to_json() if before else None,
        "after": change.after.to_json() if change.after else None,
        "changed_fields": changed_fields(before, change.after),
    }


def _edge_item(change: EdgeChange) -> dict[str, Any]:
    edge = change.edge
    summary = shorten(f"{edge.from_memory_id} {edge.kind} {edge.to_memory_id}")
    return {**_op_fields(change.by), "summary": summary, **edge.to_json()}


def _op_fields(by: OpRef) -> dict[str, Any]:
    return {
        "op_ordinal": by.ordinal,
        "op_type": by.op_type,
        "changeset_id": by.changeset_id,
        "target_event_id": by.target_event_id,
        "resulting_event_id": by.resulting_event_id,
        "payload": dict(by.payload) if by.payload is not None else None,
    }


_Note = tuple[str, tuple[str, ...]]


def _updates(change: Change, origins: Origins) -> Iterator[_Note]:
    """Gives a note for each memory that the changed one came to stand for."""
    after = change.after
    if after is None:
        return
    came_from = set(origins)
    if change.before is not None:
        came_from = _predecessors(after) - _predecessors(change.before)
    for name in came_from:
        yield "temporal_update", (name, after.memory_id)


def _predecessors(record: Record) -> set[str]:
    return {*record.lineage.corrected_from, *record.lineage.supersedes}


def _contradictions(change: Change, change_of: ChangeOf, contradicts: Contradicts) -> Iterator[_Note]:
    """Gives a note for each record that the changed one contradicts; of two that both changed, the first one tells."""
    after = change.after
    if after is None or not after.is_active:
        return
    for other in contradicts(after):
        if other.memory_id > after.memory_id or change_of(other.memory_id) is None:
            yield "direct_contradiction", tuple(sorted((after.memory_id, other.memory_id)))


def shorten(text: str, most: int = SUMMARY_CHARACTERS) -> str:
    """Gives the first line's worth of a text, cut between two characters, with an ellipsis when it was cut.

    >>> shorten("one two three", 8)
    'one two…'
    """
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    at = most - 1
    while at > 0 and _is_inside_character(line, at):
        at -= 1
    return line[:at].rstrip() + "…"


_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


def _is_inside_character(line: str, at: int) -> bool:
    """Decides whether a place has one character, as people count them, on both sides."""
    character = line[at]
    if character in _JOINERS or line[at - 1] == "\u200d" or "\U0001f3fb" <= character <= "\U0001f3ff":
        return True
    if unicodedata.category(character) in ("Mn", "Mc", "Me"):
        return True
    return _is_flag_letter(character) and _flag_letters_before(line, at) % 2 == 1


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(line: str, at: int) -> int:
    start = at
    while start > 0 and _is_flag_letter(line[start - 1]):
        start -= 1
    return at - start
