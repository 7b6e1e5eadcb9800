"""The ops that a changeset of the original gets here, asked of the very state that they apply to (3-model, operations; 4-history, state).

1. The original's ops stand first, in their order. One that the state forbids is mended where the original's meaning can be kept: a claim
   about trust is withdrawn, or stands on the operator's authority. Else it is left out, and told with the rule.
2. In a merge the import's own ops follow, until nothing is unsettled: the result that the original has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from memory_git.domain.changeset import CreateRequest
from memory_git.domain.errors import Fault, Invalid
from memory_git.domain.ops import Op
from memory_git.domain.projector import Applied
from memory_git.domain.record import Conflicted, Record
from memory_git.interchange.imported import Findings
from memory_git.interchange.original.attached import with_ops
from memory_git.interchange.original.projection import Lines, Outcome
from memory_git.interchange.original.settling import is_as_there, keep_one, set_apart, settle
from memory_git.lethe.adopting import Trial

_ATTEMPTS = 5
_MOST_STEPS = 256
Placed = list[tuple[str, Op]]
"""Ops, each with where it stands in the original."""


def planned(
    trial: Trial, request: CreateRequest, ops: Placed, lines: Lines, where: str, findings: Findings
) -> CreateRequest:
    """Gives the request with the ops that the state allows, and in a merge with those that carry the original's result."""
    kept = _allowed(trial, ops, findings)
    own: list[Op] = []
    if trial.is_merge:
        own = _resolved(trial, request, [op for _, op in ops], kept, lines, where, findings)
    return with_ops(request, [*(op for _, op in kept), *own], resolves=bool(own))


def _allowed(trial: Trial, ops: Placed, findings: Findings) -> Placed:
    kept: Placed = []
    for place, op in ops:
        if any(trial.is_erased(name) for name in op.memory_ids()):
            findings.skip("op", place, f"{op.op_type}: names a memory that is erased here")
        else:
            kept.append((place, op))
    while True:
        faults = _tried(trial, [op for _, op in kept]).faults
        if not faults:
            return kept
        by_place = {fault.ordinal: fault for fault in reversed(faults)}
        tried = [
            (place, _mended(op, by_place.get(number), place, findings))
            for number, (place, op) in enumerate(kept)
        ]
        kept = [(place, op) for place, op in tried if op is not None]


def _mended(op: Op, fault: Fault | None, place: str, findings: Findings) -> Op | None:
    """Gives an op that the state may allow, or None where it must be left out (rule 1)."""
    if fault is None:
        return op
    if fault.field == "payload.target_trust" and "target_trust" in op.payload:
        findings.warn(place, "target_trust", f"left out: {fault.rule}")
        return _without(op, "target_trust")
    if fault.field == "payload.source_trust" and op.payload.get("source_trust") != "human":
        findings.warn(place, "source_trust", f"is `human` here, on the operator's authority: {fault.rule}")
        return op.with_payload(source_trust="human")
    if op.op_type == "supersede_memory" and op.resulting_event_id and "content" not in op.payload:
        # There the memory that was named so had no part in it.
        return replace(_without(op, "memory_id", "event_id"), resulting_event_id=None)
    findings.skip("op", place, f"{op.op_type}: {fault.field} {fault.rule}")
    return None


def _without(op: Op, *keys: str) -> Op:
    payload = {name: value for name, value in op.payload.items() if name not in keys}
    return replace(op, payload=payload, known_bytes=None)


def _tried(trial: Trial, ops: Sequence[Op]) -> Applied:
    return trial.of([replace(op, ordinal=place) for place, op in enumerate(ops)])


def _resolved(
    trial: Trial,
    request: CreateRequest,
    original: Sequence[Op],
    kept: Placed,
    lines: Lines,
    where: str,
    findings: Findings,
) -> list[Op]:
    """Gives the import's own ops of a merge (rule 2)."""
    second = request.parent_ids[1]
    outcomes = lines.outcomes(second, trial.own_of_second(), original, trial.first)
    base = [op for _, op in kept]
    own: list[Op] = []
    for attempt in range(_ATTEMPTS):
        own, applied = _sound(trial, base, own)
        if not applied.unsettled:
            break
        for item in applied.unsettled:
            own += _answers(trial, applied, item, outcomes.get(item.memory_id), attempt, where, findings)
    else:
        names = ", ".join(item.memory_id for item in applied.unsettled[:5])
        raise Invalid(
            "import_unsettled",
            f"the merge {where} can't be brought to a result by our rules (of {names}); what was imported so far stays",
            changeset_id=where,
        )
    return _as_there(trial, base, own, applied, outcomes, where, findings)


def _as_there(
    trial: Trial,
    base: Sequence[Op],
    own: list[Op],
    applied: Applied,
    outcomes: Mapping[str, Outcome],
    where: str,
    findings: Findings,
) -> list[Op]:
    """Gives the import's own ops with those that set what merged otherwise than there, and tells what stays otherwise."""
    told = {item.field for item in findings.warnings if item.where == where}
    for name, outcome in sorted(outcomes.items()):
        record = applied.records.get(name) or trial.record(name)
        if not isinstance(record, Record) or is_as_there(record, outcome):
            continue
        more = [*own, *set_apart(name, record, outcome)]
        tried = _tried(trial, [*base, *more])
        if not tried.faults and not tried.unsettled:
            own, applied = more, tried
        record = applied.records.get(name) or trial.record(name)
        if name not in told and isinstance(record, Record) and not is_as_there(record, outcome):
            stands = "active" if outcome.is_active else outcome.status
            findings.warn(
                where, name, f"is {stands} there, with other values: our rules do not allow that here"
            )
    return own


def _answers(
    trial: Trial,
    applied: Applied,
    item: Conflicted,
    outcome: Outcome | None,
    attempt: int,
    where: str,
    findings: Findings,
) -> list[Op]:
    if item.fields == {"lineage"}:
        living = living_ends(item, lambda name: applied.records.get(name) or trial.record(name))
        return keep_one(item, living, outcome, where, findings) if living else settle(item, None, attempt)
    return settle(item, outcome, attempt)


def _sound(trial: Trial, base: Sequence[Op], own: Sequence[Op]) -> tuple[list[Op], Applied]:
    """Gives those of the import's own ops that the state allows, and what all ops make of it."""
    kept = list(own)
    while True:
        applied = _tried(trial, [*base, *kept])
        refused = {fault.ordinal for fault in applied.faults}
        if not refused:
            return kept, applied
        kept = [op for place, op in enumerate(kept, len(base)) if place not in refused]


def living_ends(item: Conflicted, read: Callable[[str], Record | Conflicted | None]) -> list[str]:
    """Gives the active memories in which a memory's value lives on, over any corrections and supersessions, sorted."""
    found: set[str] = set()
    for side in (item.left, item.right):
        for heir in side.lineage.heirs():
            name: str | None = heir
            for _ in range(_MOST_STEPS):
                record = read(name) if name is not None else None
                if not isinstance(record, Record):
                    break
                if record.is_active:
                    found.add(record.memory_id)
                    break
                name = next(iter(record.lineage.heirs()), None)
    return sorted(found)
