"""Plans that end in ops: cherry-pick, rebase, revert (4-history, shapes). Pure: nothing is committed here.

1. Each gives ops in wire form for create requests; they are tried on the target state with the one projector, and what the state does
   not allow is refused by name, with the ops that it needs. A plan that holds refusals is not to be committed.
2. A copy replays what was written, it does not merge. Where the target has changed since, and replaying would give anything but the
   three-way merge, it is refused with the fields: newest never wins here either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memory_git.domain.change import Change, EdgeChange
from memory_git.domain.errors import Fault
from memory_git.domain.merge import changed_fields, merge_records
from memory_git.domain.ops import Op
from memory_git.domain.projector import Applied, apply
from memory_git.domain.record import Conflicted, Record
from memory_git.domain.revert import Reverted, take_back
from memory_git.domain.state import EventContent, Overlay, Salts, StateView
from memory_git.domain.validate import check_ops

_AUTHORITY = frozenset({"approval", "source_trust"})


@dataclass(frozen=True, slots=True)
class Source:
    """A changeset whose ops are copied, and the state it was made on (None: what was overwritten can't be told)."""

    changeset_id: str
    message: str
    ops: tuple[Op, ...]
    before: StateView | None = None


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


Place = tuple[str, Op]
"""An op, and the changeset that it stands in."""
MadeBefore = Callable[[str, str], Place | None]
"""Gives the op that made a memory which stood where a changeset was made, by the changeset and the memory; None for a baseline's."""


def cherry_pick(
    state: StateView,
    selected: Sequence[Place],
    available: Sequence[Place],
    *,
    salts: Salts,
    events: EventContent = lambda _: None,
    before: Mapping[str, StateView] | None = None,
    made_before: MadeBefore = lambda *_: None,
) -> Plan:
    """Plans one changeset of copies of the selected ops, each with `cherrypicked_from`.

    What a refused op needs is among `available`, all ops of the changesets that were picked from, or was made before them. `before`
    are the states that those changesets were made on.
    """
    copies = [
        replace(op.with_payload(cherrypicked_from=changeset_id), ordinal=ordinal)
        for ordinal, (changeset_id, op) in enumerate(selected)
    ]
    plan = Plan()
    for fault in apply(state, copies, salts=salts, events=events).faults:
        changeset_id, op = selected[fault.ordinal or 0]
        reason = f"{fault.field}: {fault.rule}"
        needs = _needs((changeset_id, op), state, available, made_before)
        plan.refused.append(_refusal(changeset_id, op.ordinal, reason, needs))
    current = Overlay(state)
    for changeset_id, ops in _by_changeset(selected).items():
        made_on = (before or {}).get(changeset_id)
        applied = apply(current, ops, salts=salts, events=events)
        plan.refused += _overwritten(Source(changeset_id, "", ops, made_on), current, applied, salts, events)
        _lay(current, applied)
    sources = sorted({changeset_id for changeset_id, _ in selected})
    message = f"Cherry-pick {len(copies)} op(s) from {', '.join(sources)}"
    plan.steps.append(Step(sources[0] if len(sources) == 1 else None, message, _wire(copies)))
    return plan


def _by_changeset(selected: Iterable[tuple[str, Op]]) -> dict[str, tuple[Op, ...]]:
    found: dict[str, tuple[Op, ...]] = {}
    for changeset_id, op in selected:
        found[changeset_id] = (*found.get(changeset_id, ()), op)
    return found


def _needs(
    place: Place, state: StateView, available: Sequence[Place], made_before: MadeBefore
) -> list[Mapping[str, Any]]:
    """Gives the ops that make what an op names and the state lacks, and what those need in turn."""
    makers = {
        other.resulting_event_id: (changeset_id, other)
        for changeset_id, other in available
        if other.resulting_event_id is not None and other.op_type not in NAMING_ONLY
    }
    found: dict[tuple[str, int], None] = {}
    waiting = [place]
    while waiting:
        changeset_id, op = waiting.pop()
        for name in op.memory_ids():
            if state.record(name) is not None:
                continue
            maker = makers.get(name) or made_before(changeset_id, name)
            if maker is None or maker[1] == op or (maker[0], maker[1].ordinal) in found:
                continue
            found[maker[0], maker[1].ordinal] = None
            waiting.append(maker)
    return [{"changeset_id": changeset_id, "ordinal": ordinal} for changeset_id, ordinal in reversed(found)]


NAMING_ONLY = frozenset({"mark_duplicate", "add_relationship", "remove_relationship"})
"""Ops whose resulting id names a memory that is there: they make none."""


def rebase(
    state: StateView, sources: Iterable[Source], *, salts: Salts, events: EventContent = lambda _: None
) -> Plan:
    """Plans replaying changesets, oldest first, on a new base; each copied op keeps its `source_changeset_id`."""
    plan = Plan()
    current = Overlay(state)
    for source in sources:
        if not source.ops:
            continue
        applied = apply(current, source.ops, salts=salts, events=events)
        plan.refused += [
            _refusal(source.changeset_id, fault.ordinal, f"{fault.field}: {fault.rule}", [])
            for fault in applied.faults
        ]
        plan.refused += _overwritten(source, current, applied, salts, events)
        _lay(current, applied)
        copies = (op.with_payload(source_changeset_id=source.changeset_id) for op in source.ops)
        plan.steps.append(Step(source.changeset_id, source.message, _wire(copies)))
    return plan


def _overwritten(
    source: Source, target: StateView, applied: Applied, salts: Salts, events: EventContent
) -> Iterator[Mapping[str, Any]]:
    """Gives a refusal for each memory where replaying on a changed target would lose what the target holds (rule 2)."""
    if source.before is None:
        return
    written = apply(source.before, source.ops, salts=salts, events=events).records
    for memory_id, replayed in applied.records.items():
        before, now = source.before.record(memory_id), target.record(memory_id)
        if before == now or not isinstance(now, Record) or memory_id not in written:
            continue
        base = before if isinstance(before, Record) else None
        merged = merge_records(base, now, written[memory_id])
        if isinstance(merged, Conflicted):
            lost = sorted(merged.fields)
        else:
            lost = sorted(set(changed_fields(merged, replayed)) - _AUTHORITY)
        if lost:
            ordinal = applied.touched_by.get(memory_id)
            reason = "the target changed it since: merge instead"
            refusal = _refusal(source.changeset_id, ordinal, reason, [])
            yield {**refusal, "memory_id": memory_id, "fields": lost}


def _lay(overlay: Overlay, applied: Applied) -> None:
    overlay.records.update(applied.records)
    overlay.edges.update(applied.edges)


def revert(
    state: StateView, what: Reverted, changes: Iterable[Change], edges: Iterable[EdgeChange], *, salts: Salts
) -> Plan:
    """Plans the ops that take a changeset or a range back on a state, all or nothing (`revert.take_back`)."""
    taken = take_back(state, changes, edges, what, salts)
    plan = Plan([Step(what.changeset_id, what.title, tuple(taken.ops))], list(taken.refused))
    tried, faults = check_ops([dict(op) for op in taken.ops], iter(()))
    faults = faults or apply(state, tried, salts=salts).faults
    plan.refused += [_untaken(what, taken.ops, fault) for fault in faults]
    return plan


def _untaken(what: Reverted, ops: Sequence[Mapping[str, Any]], fault: Fault) -> Mapping[str, Any]:
    """Gives the refusal of an op that the state does not allow, or of all where they are too many."""
    reason = f"{fault.field}: {fault.rule}"
    if fault.ordinal is None:
        return {**_refusal(what.changeset_id, None, reason, []), "memory_id": None, "fields": []}
    op = ops[fault.ordinal]
    refusal = _refusal(op["payload"]["source_changeset_id"], None, f"{op['op_type']}: {reason}", [])
    return {**refusal, "memory_id": op["target_event_id"], "fields": []}


def _refusal(
    changeset_id: str, ordinal: int | None, reason: str, needs: list[Mapping[str, Any]]
) -> dict[str, Any]:
    return {"source_changeset_id": changeset_id, "ordinal": ordinal, "reason": reason, "needs": needs}


def _wire(ops: Iterable[Op]) -> tuple[Mapping[str, Any], ...]:
    return tuple({name: value for name, value in op.to_json().items() if value is not None} for op in ops)
