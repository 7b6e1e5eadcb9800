"""How an unsettled memory of a merge is answered by ops (4-history, three-way merge).

1. Each memory that both sides changed differently has conflicts with a recorded resolution. `keep_left` and `keep_right` say it
   all: whoever merges can't say otherwise. For `both` and `edited` they give the ops.
2. Given ops touch these memories and no other, and of them only what both sides changed: nobody has reviewed any more. They
   name who gave them, for the merge changeset is the gate's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_git.charon.authority import authority_faults, stamped
from memory_git.charon.house import Passage
from memory_git.domain.changeset import invalid_changeset
from memory_git.domain.errors import Clash, Fault
from memory_git.domain.ops import CLEARABLE_KEYS, RECORD_KEYS
from memory_git.lethe.protocol import Json

_SETTLING_OPS = frozenset({"correct_memory", "set_status", "supersede_memory", "mark_duplicate"})
_SIDES = {"keep_left": "left", "keep_right": "right"}


def settling_ops(
    passage: Passage, unsettled: Sequence[Json], conflicts: Sequence[Json], given: Sequence[Any] | None
) -> list[Json]:
    """Gives the ops that settle a merge: those given, and for the other memories those of the recorded outcomes."""
    chosen = _checked(passage, unsettled, conflicts, given or ())
    answered = {op["target_event_id"] for op in chosen}
    recorded = [
        op
        for item in unsettled
        if item["memory_id"] not in answered
        for op in _recorded(passage, item, conflicts)
    ]
    return chosen + stamped(recorded, passage.principal_id, passage.identity.principal.kind)


def _checked(
    passage: Passage, unsettled: Sequence[Json], conflicts: Sequence[Json], given: Sequence[Any]
) -> list[Json]:
    named = {item["memory_id"]: item for item in unsettled}
    kind = passage.identity.principal.kind
    faults = authority_faults(given, kind)
    for ordinal, op in enumerate(given):
        if not isinstance(op, dict) or not _settles(op.get("op_type")):
            faults.append(
                Fault(ordinal, "op_type", f"a resolution is one of {', '.join(sorted(_SETTLING_OPS))}")
            )
        elif not isinstance(name := op.get("target_event_id"), str) or name not in named:
            faults.append(
                Fault(ordinal, "target_event_id", "a resolution speaks of an unsettled memory only")
            )
        elif _recorded_ops(named[name], conflicts) is not None:
            faults.append(Fault(ordinal, "target_event_id", "the recorded outcome settles this memory"))
        else:
            faults += _beyond(ordinal, op, named[name])
    if faults:
        raise invalid_changeset(faults)
    signed = [{**op, "payload": {**op.get("payload", {}), "reviewer": passage.principal_id}} for op in given]
    return stamped(signed, passage.principal_id, kind)


def _beyond(ordinal: int, op: Mapping[str, Any], item: Json) -> list[Fault]:
    """Gives what an op would change besides that on which the sides differ (rule 2)."""
    payload = op.get("payload", {})
    if not isinstance(payload, dict):
        return [Fault(ordinal, "payload", "must be an object")]
    cleared = payload["clear"] if isinstance(payload.get("clear"), list) else []
    assigned = RECORD_KEYS & {*payload, *filter(lambda name: isinstance(name, str), cleared)}
    return [
        Fault(ordinal, f"payload.{name}", "the sides agree on it: propose a change of it apart")
        for name in sorted(assigned - {*item["fields"]})
    ]


def _settles(op_type: Any) -> bool:
    return isinstance(op_type, str) and op_type in _SETTLING_OPS


def _recorded(passage: Passage, item: Json, conflicts: Sequence[Json]) -> list[Json]:
    ops = _recorded_ops(item, conflicts)
    if ops is None:
        sides = [item[side] for side in ("base", "left", "right") if item[side] is not None]
        seen = all(passage.audience.admits(side["visibility"], side.get("owner_principal")) for side in sides)
        raise Clash(
            "resolutions_needed",
            "a memory was changed on both sides: give the ops that settle it as resolutions",
            unsettled=[item] if seen else [],
        )
    return ops


def _recorded_ops(item: Json, conflicts: Sequence[Json]) -> list[Json] | None:
    """Gives the ops that a recorded outcome stands for; None where it takes words of whoever merges."""
    outcomes = {
        conflict.get("outcome")
        for conflict in conflicts
        if conflict["conflict_type"] == "concurrent_change" and item["memory_id"] in conflict["memory_ids"]
    }
    side = _SIDES.get(str(next(iter(outcomes)))) if len(outcomes) == 1 else None
    return _ops_of_side(item, item[side]) if side else None


def _ops_of_side(item: Json, side: Mapping[str, Any]) -> list[Json] | None:
    """Gives ops that assign every open field as one side has it; None where no op can say it."""
    fields = [name for name in item["fields"] if name not in ("status", "status_reason")]
    if any(name not in CLEARABLE_KEYS and side.get(name) is None for name in fields):
        return None
    ops: list[Json] = []
    if "status" in item["fields"] or "status_reason" in item["fields"]:
        payload = {"status": side["status"]}
        if side["status"] != "active":
            payload["reason"] = side.get("status_reason") or "as recorded in the conflict's resolution"
        ops.append(_op("set_status", item["memory_id"], payload))
    payload = {name: side[name] for name in fields if side.get(name) is not None}
    cleared = [name for name in fields if side.get(name) is None]
    if payload or cleared:
        ops.append(
            _op("correct_memory", item["memory_id"], {**payload, **({"clear": cleared} if cleared else {})})
        )
    return ops


def _op(op_type: str, memory_id: str, payload: Mapping[str, Any]) -> Json:
    return {"op_type": op_type, "target_event_id": memory_id, "payload": dict(payload)}
