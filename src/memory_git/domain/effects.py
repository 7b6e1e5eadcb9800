"""What each op type does to a draft, and when the state forbids it (3-model, operations).

1. add: the id is not an active memory's; on a retired id it makes a new version that keeps its owner. An id that names an
   event adopts exactly that event's content.
2. correct: in place it overlays the record; with a resulting id the target becomes `corrected` and the result its successor.
3. supersede: the target becomes `superseded`; with content a successor is made, which inherits what it doesn't say;
   an inference never supersedes what a user approved.
4. mark_duplicate: the duplicate leaves active memory and points to the canonical one, never in a circle.
5. relationships: both ends exist; one is removed only if it stands.
6. propose_deprecation, deprecated, disputed: of what is in active memory. retracted: of anything. active: rules 3 and 4 of `draft`.
7. attach, detach: attachments are a sorted set; one is taken away by its digest. Without a target nothing is touched.
8. Trust: a claim about the target must agree with the store; a record has the least trust of its lineage; an approval does
   not outlive a change of what it approved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from memory_git.domain import text
from memory_git.domain.draft import Draft, OpRefused
from memory_git.domain.ops import ATTACHMENT_KEYS, RECORD_KEYS, Op, is_inference, least_trust, trust_of
from memory_git.domain.record import (
    APPROVED_FIELDS,
    Conflicted,
    Edge,
    Lineage,
    Record,
    with_attachment,
    without_attachment,
)

STATUS_FIELDS = frozenset(
    {"status", "status_reason", "lineage.corrected_by", "lineage.superseded_by", "lineage.duplicate_of"}
)
_INHERITED = (
    "kind",
    "event_type",
    "type",
    "title",
    "scope",
    "subject",
    "fact_key",
    "tags",
    "visibility",
    "protected",
    "pinned",
)
_EMPTY: dict[str, Any] = {"tags": (), "sources": (), "protected": False, "pinned": False}


def take_effect(draft: Draft, op: Op) -> None:
    """Applies one op to a draft, or raises OpRefused or OpPresumed and leaves the draft as it was."""
    _EFFECTS[op.op_type](draft, op)


def _add(draft: Draft, op: Op) -> None:
    memory_id, content = _given(op.resulting_event_id), op.payload["content"]
    before = _former(draft, op, memory_id, content)
    fields = {key: _field_value(key, value) for key, value in op.payload.items() if key in RECORD_KEYS}
    owner = draft.owner_of_successor(op, before, None)
    trust = op.payload.get("source_trust")
    draft.put_new(op, Record(memory_id, owner_principal=owner, source_trust=trust, **fields))


def _former(draft: Draft, op: Op, memory_id: str, content: str) -> Record | None:
    """Gives the retired record under the id that an op gives to a new memory; refuses an id that this memory can't have."""
    field = "payload.content" if "content" in op.payload else "resulting_event_id"
    before = draft.refuse_taken(memory_id)
    draft.refuse_event_of_other_content(memory_id, content, field)
    is_tombstone = before is not None and before.is_retracted and not op.payload.get("revive")
    if before is not None and is_tombstone and text.normalize(before.content) == text.normalize(content):
        raise OpRefused(field, "this value was retracted: `revive` brings it back")
    return before


def _correct(draft: Draft, op: Op) -> None:
    target = draft.need(op.target_event_id)
    _check_trust_claim(op, target)
    if op.resulting_event_id is not None or "content" in op.payload:
        draft.refuse_retracted(op)
    corrected = _with_trust(_assigned(target, op.payload), target, op)
    if op.resulting_event_id is None:
        _correct_in_place(draft, op, target, corrected)
        return
    draft.refuse_second_heir(target, None)
    before = _former(draft, op, op.resulting_event_id, corrected.content)
    successor = replace(
        corrected,
        memory_id=op.resulting_event_id,
        status="active",
        status_reason=None,
        owner_principal=draft.owner_of_successor(op, before, target),
        lineage=Lineage(corrected_from=(target.memory_id,)),
    )
    draft.put(op, _retired(target, "corrected", corrected_by=op.resulting_event_id))
    draft.put_new(op, successor)


def _correct_in_place(draft: Draft, op: Op, target: Record, corrected: Record) -> None:
    conflict = draft.state.record(target.memory_id)
    answered = frozenset(op.payload.keys() & RECORD_KEYS) | set(op.payload.get("clear", ()))
    if isinstance(conflict, Conflicted) and answered & APPROVED_FIELDS and "approval" not in answered:
        # Whatever the sides approved, it was not this answer.
        corrected, answered = replace(corrected, approval=None), answered | {"approval"}
    if op.payload.get("revive") and (not target.is_active or isinstance(conflict, Conflicted)):
        draft.refuse_return(target)
        corrected, answered = _reactivated(corrected), answered | STATUS_FIELDS
    draft.put(op, corrected, answered)


def _supersede(draft: Draft, op: Op) -> None:
    target = draft.need(op.target_event_id)
    _check_trust_claim(op, target)
    found = draft.state.record(target.memory_id)
    if found is not None and found.is_user_approved and is_inference(op):
        raise OpRefused("payload.source_trust", "an inference can't supersede what a user approved")
    draft.refuse_retracted(op)
    draft.refuse_second_heir(target, op.resulting_event_id)
    if "content" in op.payload:
        _supersede_by_new(draft, op, target, _given(op.resulting_event_id))
    elif op.resulting_event_id is None:
        draft.put(op, _retired(target, "superseded"))
    else:
        _supersede_by_existing(draft, op, target)


def _supersede_by_new(draft: Draft, op: Op, target: Record, memory_id: str) -> None:
    draft.refuse_second_heir(target, None)
    before = _former(draft, op, memory_id, op.payload["content"])
    inherited = {name: getattr(target, name) for name in _INHERITED}
    successor = replace(
        _assigned(Record(memory_id, "", **inherited), op.payload),
        owner_principal=draft.owner_of_successor(op, before, target),
        lineage=Lineage(supersedes=(target.memory_id,)),
    )
    draft.put(op, _retired(target, "superseded", superseded_by=memory_id))
    draft.put_new(op, _with_trust(successor, target, op))


def _supersede_by_existing(draft: Draft, op: Op, target: Record) -> None:
    successor = draft.need(op.resulting_event_id, "resulting_event_id")
    if successor.is_active and not draft.descends(successor, target.memory_id):
        raise OpRefused("resulting_event_id", "an unrelated active memory has this id")
    draft.put(op, _retired(target, "superseded", superseded_by=successor.memory_id))
    if target.memory_id not in successor.lineage.supersedes:
        supersedes = tuple(sorted((*successor.lineage.supersedes, target.memory_id)))
        lineage = replace(successor.lineage, supersedes=supersedes)
        draft.put(op, replace(successor, lineage=lineage), frozenset())


def _mark_duplicate(draft: Draft, op: Op) -> None:
    duplicate = draft.need(op.target_event_id, "payload.duplicate_id")
    canonical = draft.need(op.resulting_event_id, "payload.duplicate_of")
    draft.refuse_retracted(op)
    draft.refuse_second_heir(duplicate, canonical.memory_id)
    draft.refuse_circle(duplicate, canonical)
    draft.put(op, _retired(duplicate, "duplicate", duplicate_of=canonical.memory_id))


def _relate(draft: Draft, op: Op) -> None:
    draft.put_edge(op, _edge(draft, op), stands=True)


def _unrelate(draft: Draft, op: Op) -> None:
    edge = _edge(draft, op)
    if not draft.state.has_edge(edge):
        raise OpRefused("payload", "no such relationship at this state")
    draft.put_edge(op, edge, stands=False)


def _edge(draft: Draft, op: Op) -> Edge:
    draft.need(op.target_event_id, "payload.from_memory_id")
    draft.need(op.resulting_event_id, "payload.to_memory_id")
    return Edge(_given(op.target_event_id), op.payload["kind"], _given(op.resulting_event_id))


def _propose_deprecation(draft: Draft, op: Op) -> None:
    target = _active_target(draft, op)
    marked = replace(target, status="deprecation_proposed", status_reason=op.payload["reason"])
    draft.put(op, marked, frozenset({"status", "status_reason"}))


def _set_status(draft: Draft, op: Op) -> None:
    status = op.payload["status"]
    if status == "active":
        target = draft.need(op.target_event_id)
        draft.refuse_retracted(op)
        draft.refuse_return(target)
        draft.put(op, _reactivated(target), STATUS_FIELDS)
    elif status == "retracted":
        target = draft.need(op.target_event_id)
        draft.put(op, replace(target, status=status, status_reason=op.payload["reason"]))
    else:
        target = _active_target(draft, op)
        draft.put(op, replace(target, status=status, status_reason=op.payload["reason"]), STATUS_FIELDS)


def _active_target(draft: Draft, op: Op) -> Record:
    target = draft.need(op.target_event_id)
    if not target.is_active:
        raise OpRefused("target_event_id", "the memory has left active memory already")
    return target


def _attach(draft: Draft, op: Op) -> None:
    if op.target_event_id is None:
        return
    target = draft.need(op.target_event_id)
    item = {key: op.payload[key] for key in ATTACHMENT_KEYS if op.payload.get(key)}
    if op.op_type == "attach_evidence":
        attached = replace(target, evidence=with_attachment(target.evidence, item))
    else:
        attached = replace(target, verification=with_attachment(target.verification, item))
    draft.put_attached(op, attached, item)


def _detach(draft: Draft, op: Op) -> None:
    target = draft.need(op.target_event_id)
    digest = op.payload["attachment_digest"]
    item = draft.attachment(target, digest)
    if item is None:
        raise OpRefused("payload.attachment_digest", "names no attachment of this memory")
    evidence = without_attachment(target.evidence, item)
    verification = without_attachment(target.verification, item)
    draft.put_detached(op, replace(target, evidence=evidence, verification=verification), digest)


_EFFECTS: dict[str, Callable[[Draft, Op], None]] = {
    "add_memory": _add,
    "correct_memory": _correct,
    "supersede_memory": _supersede,
    "mark_duplicate": _mark_duplicate,
    "add_relationship": _relate,
    "remove_relationship": _unrelate,
    "propose_deprecation": _propose_deprecation,
    "attach_evidence": _attach,
    "attach_verification": _attach,
    "set_status": _set_status,
    "detach": _detach,
}


def _given(memory_id: str | None) -> str:
    """Narrows an identity that `validate` has made sure of."""
    assert memory_id is not None
    return memory_id


def _assigned(record: Record, payload: Mapping[str, Any]) -> Record:
    """Gives the record with the payload's fields assigned; an empty string or list empties a field, as `clear` does."""
    changes: dict[str, Any] = {key: _EMPTY.get(key) for key in payload.get("clear", ())}
    for key in RECORD_KEYS & payload.keys():
        changes[key] = _field_value(key, payload[key])
    is_changed = any(changes[name] != getattr(record, name) for name in APPROVED_FIELDS & changes.keys())
    if is_changed and "approval" not in payload:
        changes["approval"] = None
    return replace(record, **changes)


def _field_value(key: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if value in ("", {}):
        return None
    return float(value) if key == "confidence" else value


def _with_trust(record: Record, target: Record, op: Op) -> Record:
    return replace(record, source_trust=least_trust(target.source_trust, trust_of(op)))


def _check_trust_claim(op: Op, target: Record) -> None:
    claim = op.payload.get("target_trust")
    known = "user_approved" if target.is_user_approved else target.source_trust
    if claim is not None and claim != known:
        raise OpRefused("payload.target_trust", "disagrees with what the store knows of the target")


def _reactivated(record: Record) -> Record:
    return replace(record, status="active", status_reason=None, lineage=record.lineage.without_successor())


def _retired(record: Record, status: str, **successor: Any) -> Record:
    """Gives the record as it leaves active memory, with the one successor that it has now."""
    lineage = replace(record.lineage.without_successor(), **successor)
    return replace(record, status=status, status_reason=None, lineage=lineage)
