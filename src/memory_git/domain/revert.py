"""The ops that take changes back on a state, and those that make one record into another (4-history, revert).

1. Per memory, its change is merged out of what stands now; what was changed again since is refused, or the later change would be lost.
2. What the changeset made is retracted, unless it was changed since.
3. What leaves active memory goes first, so that a memory returns only after what had taken its place has left.
4. Authority is not a payload: an approval is taken away, never given; trust is that of whoever reverts.
5. A retracted memory that comes back says `revive`: the revert is the explicit act that lets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from memory_git.domain.change import Change, EdgeChange
from memory_git.domain.merge import merge_records
from memory_git.domain.ops import RECORD_KEYS
from memory_git.domain.record import Attachment, Conflicted, Record, attachment_digest
from memory_git.domain.state import Salts, StateView

WireOp = Mapping[str, Any]


@dataclass(slots=True)
class TakenBack:
    """Ops, in wire form, and the changes that can't be taken back, each with the reason."""

    ops: list[WireOp] = field(default_factory=list)
    refused: list[Mapping[str, Any]] = field(default_factory=list)


def take_back(
    state: StateView, changes: Iterable[Change], edges: Iterable[EdgeChange], reason: str, salts: Salts
) -> TakenBack:
    """Gives the ops that take changes back on a state (rules 1 to 3)."""
    taken = TakenBack()
    targets: list[tuple[Record, Record]] = []
    for change in changes:
        current = state.record(change.memory_id)
        if not isinstance(current, Record) or change.after is None:
            taken.refused.append(_refusal(change, "the memory is not there any more", []))
            continue
        target = _without(change, change.after, current, reason)
        if isinstance(target, Conflicted):
            taken.refused.append(_refusal(change, "it was changed again since", sorted(target.fields)))
        else:
            targets.append((current, target))
    for current, target in sorted(targets, key=_leaves_first):
        taken.ops += ops_between(current, target, reason, salts)
    for item in edges:
        if state.has_edge(item.edge) == item.stands:
            taken.ops.append(_edge_op(item))
    return taken


def _without(change: Change, after: Record, current: Record, reason: str) -> Record | Conflicted:
    """Gives a record as it stands now, with one change merged out of it."""
    if change.before is not None:
        return merge_records(after, current, change.before)
    if current.is_retracted:
        return current
    return merge_records(after, current, replace(after, status="retracted", status_reason=reason))


def _leaves_first(pair: tuple[Record, Record]) -> tuple[bool, str]:
    return pair[1].is_active, pair[1].memory_id


def _refusal(change: Change, reason: str, fields: list[str]) -> Mapping[str, Any]:
    return {
        "ordinal": change.by.ordinal,
        "memory_id": change.memory_id,
        "reason": reason,
        "fields": fields,
        "needs": [],
    }


def _edge_op(item: EdgeChange) -> WireOp:
    return {
        "op_type": "remove_relationship" if item.stands else "add_relationship",
        "target_event_id": item.edge.from_memory_id,
        "resulting_event_id": item.edge.to_memory_id,
        "payload": {"kind": item.edge.kind},
    }


def ops_between(current: Record, target: Record, reason: str, salts: Salts) -> list[WireOp]:
    """Gives the ops that make one record of a memory into another, as far as ops may (rules 4 and 5)."""
    status_ops: list[WireOp] = []
    if (current.status, current.status_reason) != (target.status, target.status_reason):
        status_ops = _status_ops(current, target, reason)
    field_ops = [*_correction(current, target), *_attachment_ops(current, target, reason, salts)]
    # A retracted memory takes no new content, so fields change before it is retracted and after it came back.
    return [*field_ops, *status_ops] if target.is_retracted else [*status_ops, *field_ops]


def _status_ops(current: Record, target: Record, reason: str) -> list[WireOp]:
    memory_id, lineage = target.memory_id, target.lineage
    revive = {"revive": True} if current.is_retracted else {}
    returned = _op("set_status", memory_id, {"status": "active", **revive})
    if target.status == "active":
        return [returned]
    if target.status in ("corrected", "superseded"):
        heir = lineage.superseded_by or lineage.corrected_by
        return [_op("supersede_memory", memory_id, revive, heir)]
    if target.status == "retracted":
        return [_set_status(target, reason)]
    first = [] if current.is_active else [returned]
    if target.status == "duplicate":
        first = [returned] if current.is_retracted else []
        return [*first, _op("mark_duplicate", memory_id, {}, lineage.duplicate_of)]
    if target.status == "deprecation_proposed":
        return [*first, _op("propose_deprecation", memory_id, {"reason": target.status_reason or reason})]
    return [*first, _set_status(target, reason)]


def _set_status(target: Record, reason: str) -> WireOp:
    payload = {"status": target.status, "reason": target.status_reason or reason}
    return _op("set_status", target.memory_id, payload)


def _op(op_type: str, target: str, payload: Mapping[str, Any], result: str | None = None) -> WireOp:
    op = {"op_type": op_type, "target_event_id": target, "payload": dict(payload)}
    return {**op, "resulting_event_id": result} if result is not None else op


def _correction(current: Record, target: Record) -> list[WireOp]:
    payload: dict[str, Any] = {}
    cleared = []
    for name in sorted(RECORD_KEYS):
        before, after = getattr(current, name), getattr(target, name)
        if before != after and after is None:
            cleared.append(name)
        elif before != after and name != "approval":
            payload[name] = list(after) if isinstance(after, tuple) else after
    if cleared:
        payload["clear"] = cleared
    return [_op("correct_memory", current.memory_id, payload)] if payload else []


def _attachment_ops(current: Record, target: Record, reason: str, salts: Salts) -> list[WireOp]:
    """Gives the ops for attachments; a digest takes away evidence and verification of the same words at once."""
    taken = [item for item in current.evidence if item not in target.evidence]
    taken += [item for item in current.verification if item not in (*target.verification, *taken)]
    ops: list[WireOp] = []
    for item in taken:
        digest = attachment_digest(salts(current.memory_id), item)
        ops.append(_op("detach", current.memory_id, {"attachment_digest": digest, "reason": reason}))
    for name, op_type in (("evidence", "attach_evidence"), ("verification", "attach_verification")):
        have: tuple[Attachment, ...] = getattr(current, name)
        for item in getattr(target, name):
            if item not in have or item in taken:
                ops.append(_op(op_type, current.memory_id, item))
    return ops
