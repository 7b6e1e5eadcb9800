"""The ops by which an imported merge carries the original's result (4-history, state).

1. A memory that both sides changed differently is given the values that the original has, or retired as it has it.
2. What merged without a conflict is set to what the original has all the same: it reads the second side's ops on top of the first.
3. A memory that both sides gave a successor keeps the original's last one; the other one leaves active memory, and that is told.
4. What no such op settles is retired: both sides' values stay in history, and that is told too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_git.domain.ops import RECORD_KEYS, Op
from memory_git.domain.record import Conflicted, Record
from memory_git.interchange.imported import Findings
from memory_git.interchange.original.projection import Outcome

_TRUST = "human"
_REPLACED = "both sides replaced it, each by another memory"
_NOT_ASSIGNED = frozenset({"approval"})
_NEVER_EMPTY = frozenset({"content", "kind", "visibility"})
_EMPTIED = frozenset(
    {
        "event_type",
        "scope",
        "subject",
        "fact_key",
        "tags",
        "confidence",
        "valid_from",
        "valid_to",
        "protected",
        "summary",
    }
)
"""What a memory has here only if the original's ops say it."""
_DEFAULTS = {"kind": "observation"}


def settle(item: Conflicted, outcome: Outcome | None, attempt: int) -> list[Op]:
    """Gives ops that answer a conflict as the original has it (rule 1), or where that is refused, more and more surely (rule 4)."""
    if attempt > 1:
        return [_op("set_status", item.memory_id, None, {"status": "retracted", "reason": _REPLACED})]
    if attempt == 1 or outcome is None:
        heirs = {name for side in (item.left, item.right) for name in side.lineage.heirs()}
        only = heirs.pop() if len(heirs) == 1 else None
        return [_op("supersede_memory", item.memory_id, only, {"source_trust": _TRUST})]
    if not outcome.is_active:
        return [_retiring(item.memory_id, outcome)]
    return _assigning(item, outcome)


def _assigning(item: Conflicted, outcome: Outcome) -> list[Op]:
    """Gives the correction that answers every open field with the original's value, and sets what merged otherwise."""
    changes, emptied = _differences(item.merged, outcome, item.fields & RECORD_KEYS)
    payload: dict[str, Any] = {"content": item.merged.content, **changes}
    payload["source_trust"] = item.merged.source_trust or _TRUST
    if emptied:
        payload["clear"] = emptied
    if item.fields - RECORD_KEYS:
        payload["revive"] = True
    ops = [_op("correct_memory", item.memory_id, None, payload)]
    if outcome.status == "deprecation_proposed":
        ops.append(_op("propose_deprecation", item.memory_id, None, {"reason": outcome.reason}))
    return ops


def _differences(
    record: Record, outcome: Outcome, open_fields: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], list[str]]:
    """Gives the values to set so that a record is as the original has it, and the fields to empty; open ones are always answered."""
    wanted = {**_DEFAULTS, **outcome.fields}
    changes = {
        name: value
        for name, value in wanted.items()
        if name in open_fields
        or (name not in _NOT_ASSIGNED and _plain(getattr(record, name)) != _as_kept(value))
    }
    emptied = {name for name in _EMPTIED - wanted.keys() if getattr(record, name)}
    return changes, sorted(emptied | (open_fields - wanted.keys() - _NEVER_EMPTY))


def set_apart(memory_id: str, record: Record, outcome: Outcome) -> list[Op]:
    """Gives the op that makes what merged without a conflict as the original has it (rule 2), if anything."""
    if record.is_active != outcome.is_active:
        if record.is_active:
            return [_retiring(memory_id, outcome)]
        changes, _ = _differences(record, outcome)
        payload = {"content": record.content, **changes, "revive": True, "source_trust": _TRUST}
        return [_op("correct_memory", memory_id, None, payload)]
    changes, emptied = _differences(record, outcome) if record.is_active else ({}, [])
    if not changes and not emptied:
        return []
    payload = {"content": record.content, **changes, "source_trust": record.source_trust or _TRUST}
    return [_op("correct_memory", memory_id, None, {**payload, "clear": emptied} if emptied else payload)]


def is_as_there(record: Record, outcome: Outcome) -> bool:
    """Decides whether a memory is as the original has it: active or not, and if it is, in every field."""
    if record.is_active != outcome.is_active:
        return False
    changes, emptied = _differences(record, outcome) if record.is_active else ({}, [])
    return not changes and not emptied


def keep_one(
    item: Conflicted, living: list[str], outcome: Outcome | None, where: str, findings: Findings
) -> list[Op]:
    """Gives ops that leave one successor of a memory in active memory (rule 3)."""
    kept = outcome.successor if outcome is not None and outcome.successor in living else living[-1]
    ops = []
    for name in living:
        if name != kept:
            findings.warn(
                where,
                name,
                f"both sides gave {item.memory_id} a successor: {kept} stays active, this one is in history",
            )
            ops.append(_op("supersede_memory", name, None, {"source_trust": _TRUST}))
    return ops


def _retiring(memory_id: str, outcome: Outcome) -> Op:
    if outcome.status == "duplicate" and outcome.successor:
        return _op("mark_duplicate", memory_id, outcome.successor, {})
    return _op("supersede_memory", memory_id, outcome.successor, {"source_trust": _TRUST})


def _op(op_type: str, target: str, result: str | None, payload: Mapping[str, Any]) -> Op:
    """Gives an op of the import's own; its ordinal is given when it has its place."""
    return Op(0, op_type, target, result, {**payload, "op_note": "import: the result that the original has"})


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, tuple) else value


def _as_kept(value: Any) -> Any:
    """Gives a payload's value as a record keeps it."""
    if isinstance(value, list):
        return sorted(set(value))
    return None if value in ("", {}) else value
