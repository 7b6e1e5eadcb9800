"""Plans that end in ops: cherry-pick, rebase, revert (4-history, shapes). Pure: nothing is committed here.

Each gives ops in wire form for a create request; the ops are tried on the target state with the one projector, and what the state
does not allow is refused by name, with the ops that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memory_git.domain.change import Change, EdgeChange
from memory_git.domain.merge import merge_records
from memory_git.domain.ops import RECORD_KEYS, Op
from memory_git.domain.projector import Applied, apply
from memory_git.domain.record import Attachment, Conflicted, Record, attachment_digest
from memory_git.domain.state import EventContent, Overlay, Salts, StateView

_NOT_REVERTED = frozenset({"approval"})
"""Authority is not a payload: an approval comes back only by an approval."""


@dataclass(frozen=True, slots=True)
class Source:
    """A changeset whose ops are copied."""

    changeset_id: str
    message: str
    ops: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One changeset to make: the ops, in wire form, and the changeset that they were copied from."""

    source_changeset_id: str | None
    message: str
    ops: tuple[Mapping[str, Any], ...]


@dataclass(slots=True)
class Plan:
    """Steps to commit one after another, and what could not be planned, each with the reason."""

    steps: list[Step] = field(default_factory=list)
    refused: list[Mapping[str, Any]] = field(default_factory=list)


def cherry_pick(
    state: StateView,
    selected: Sequence[tuple[str, Op]],
    available: Sequence[tuple[str, Op]],
    *,
    salts: Salts,
    events: EventContent = lambda _: None,
) -> Plan:
    """Plans one changeset of copies of the selected ops, each with `cherrypicked_from`.

    `available` are all ops of the changesets that were picked from: among them is what a refused op needs.
    """
    copies = [
        replace(op.with_payload(cherrypicked_from=changeset_id), ordinal=ordinal)
        for ordinal, (changeset_id, op) in enumerate(selected)
    ]
    applied = apply(state, copies, salts=salts, events=events)
    plan = Plan()
    for fault in applied.faults:
        changeset_id, op = selected[fault.ordinal or 0]
        plan.refused.append(
            {
                "source_changeset_id": changeset_id,
                "ordinal": op.ordinal,
                "reason": f"{fault.field}: {fault.rule}",
                "needs": _needs(op, state, available),
            }
        )
    sources = sorted({changeset_id for changeset_id, _ in selected})
    message = f"Cherry-pick {len(copies)} op(s) from {', '.join(sources)}"
    plan.steps.append(Step(sources[0] if len(sources) == 1 else None, message, _wire(copies)))
    return plan


def _needs(op: Op, state: StateView, available: Sequence[tuple[str, Op]]) -> list[Mapping[str, Any]]:
    """Gives the ops that make what an op names and the state lacks."""
    absent = {name for name in op.memory_ids() if state.record(name) is None}
    return [
        {"changeset_id": changeset_id, "ordinal": other.ordinal}
        for changeset_id, other in available
        if other.resulting_event_id in absent and other != op and other.op_type not in _NAMING_ONLY
    ]


_NAMING_ONLY = frozenset({"mark_duplicate", "add_relationship", "remove_relationship"})


def rebase(
    state: StateView, sources: Iterable[Source], *, salts: Salts, events: EventContent = lambda _: None
) -> Plan:
    """Plans replaying changesets, oldest first, on a new base; each copied op keeps its `source_changeset_id`."""
    plan = Plan()
    current = Overlay(state)
    for source in sources:
        copies = [
            replace(op.with_payload(source_changeset_id=source.changeset_id), ordinal=ordinal)
            for ordinal, op in enumerate(source.ops)
        ]
        if not copies:
            continue
        applied = apply(current, copies, salts=salts, events=events)
        plan.refused += [
            {
                "source_changeset_id": source.changeset_id,
                "ordinal": fault.ordinal,
                "reason": f"{fault.field}: {fault.rule}",
                "needs": [],
            }
            for fault in applied.faults
        ]
        _lay(current, applied)
        plan.steps.append(Step(source.changeset_id, source.message, _wire(copies)))
    return plan


def _lay(overlay: Overlay, applied: Applied) -> None:
    overlay.records.update(applied.records)
    overlay.edges.update(applied.edges)


def _wire(ops: Iterable[Op]) -> tuple[Mapping[str, Any], ...]:
    return tuple({name: value for name, value in op.to_json().items() if value is not None} for op in ops)


def revert(
    state: StateView,
    changeset_id: str,
    message: str,
    changes: Iterable[Change],
    edges: Iterable[EdgeChange],
    *,
    salts: Salts,
) -> Plan:
    """Plans the ops that take one changeset back on a state: per memory, its change is merged out of what stands now.

    What changed again since, in the same field, is refused by name: taking it back would lose the later change.
    """
    plan = Plan()
    ops: list[Mapping[str, Any]] = []
    reason = f"Revert of {changeset_id}"
    for change in sorted(changes, key=_made_last):
        current = state.record(change.memory_id)
        if not isinstance(current, Record) or change.after is None:
            plan.refused.append(_refusal(changeset_id, change, "the memory is not there any more", []))
            continue
        if change.before is None:
            ops += [] if not current.is_active else [_set_status(change.memory_id, "retracted", reason)]
            continue
        target = merge_records(change.after, current, change.before)
        if isinstance(target, Conflicted):
            plan.refused.append(
                _refusal(changeset_id, change, "it was changed again since", sorted(target.fields))
            )
            continue
        ops += ops_between(current, target, reason, salts)
    for item in edges:
        ops += _revert_edge(item, state)
    plan.steps.append(
        Step(changeset_id, f'Revert "{message}"', tuple(_stamped(op, changeset_id) for op in ops))
    )
    return plan


def _made_last(change: Change) -> tuple[bool, str]:
    """Orders what the changeset made before what it changed, so that a successor leaves before its predecessor returns."""
    return change.before is not None, change.memory_id


def _refusal(changeset_id: str, change: Change, reason: str, fields: list[str]) -> Mapping[str, Any]:
    return {
        "source_changeset_id": changeset_id,
        "ordinal": change.by.ordinal,
        "memory_id": change.memory_id,
        "reason": reason,
        "fields": fields,
        "needs": [],
    }


def _stamped(op: Mapping[str, Any], changeset_id: str) -> Mapping[str, Any]:
    return {**op, "payload": {**op["payload"], "source_changeset_id": changeset_id}}


def _revert_edge(item: EdgeChange, state: StateView) -> list[Mapping[str, Any]]:
    if state.has_edge(item.edge) != item.stands:
        return []
    return [
        {
            "op_type": "remove_relationship" if item.stands else "add_relationship",
            "target_event_id": item.edge.from_memory_id,
            "resulting_event_id": item.edge.to_memory_id,
            "payload": {"kind": item.edge.kind},
        }
    ]


def ops_between(current: Record, target: Record, reason: str, salts: Salts) -> list[Mapping[str, Any]]:
    """Gives the ops that make one record of a memory into another, approval and trust apart."""
    ops: list[Mapping[str, Any]] = []
    if current.status != target.status:
        ops += _status_ops(target, reason)
    assigned, cleared = _differing(current, target)
    if assigned or cleared:
        payload = {**assigned, **({"clear": cleared} if cleared else {})}
        ops.append({"op_type": "correct_memory", "target_event_id": current.memory_id, "payload": payload})
    ops += _attachment_ops(current, target, reason, salts)
    return ops


def _status_ops(target: Record, reason: str) -> list[Mapping[str, Any]]:
    memory_id, successor = target.memory_id, target.lineage.successor()
    if target.status in ("corrected", "superseded"):
        supersede = {"op_type": "supersede_memory", "target_event_id": memory_id, "payload": {}}
        return [{**supersede, "resulting_event_id": successor} if successor else supersede]
    if target.status == "duplicate":
        return [
            {
                "op_type": "mark_duplicate",
                "target_event_id": memory_id,
                "resulting_event_id": successor,
                "payload": {},
            }
        ]
    if target.status == "deprecation_proposed":
        return [
            {
                "op_type": "propose_deprecation",
                "target_event_id": memory_id,
                "payload": {"reason": target.status_reason or reason},
            }
        ]
    return [_set_status(memory_id, target.status, target.status_reason or reason)]


def _set_status(memory_id: str, status: str, reason: str) -> Mapping[str, Any]:
    payload = {"status": status} if status == "active" else {"status": status, "reason": reason}
    return {"op_type": "set_status", "target_event_id": memory_id, "payload": payload}


def _differing(current: Record, target: Record) -> tuple[dict[str, Any], list[str]]:
    assigned: dict[str, Any] = {}
    cleared: list[str] = []
    for name in sorted(RECORD_KEYS - _NOT_REVERTED):
        before, after = getattr(current, name), getattr(target, name)
        if before == after:
            continue
        if after is None:
            cleared.append(name)
        else:
            assigned[name] = list(after) if isinstance(after, tuple) else after
    return assigned, cleared


def _attachment_ops(current: Record, target: Record, reason: str, salts: Salts) -> list[Mapping[str, Any]]:
    ops: list[Mapping[str, Any]] = []
    for name, op_type in (("evidence", "attach_evidence"), ("verification", "attach_verification")):
        have: tuple[Attachment, ...] = getattr(current, name)
        want: tuple[Attachment, ...] = getattr(target, name)
        for item in (item for item in have if item not in want):
            payload = {
                "attachment_digest": attachment_digest(salts(current.memory_id), item),
                "reason": reason,
            }
            ops.append({"op_type": "detach", "target_event_id": current.memory_id, "payload": payload})
        for item in (item for item in want if item not in have):
            ops.append({"op_type": op_type, "target_event_id": current.memory_id, "payload": dict(item)})
    return ops
