"""Whether the ops of a changeset are well formed, before any state is asked. Finds every fault, not the first.

For each op, in this order:
1. it is an object with known keys and a known `op_type`;
2. every payload key stands on the list of its type (closed), and every value meets its key's rule;
3. identity channels that name the same thing agree; their value, in NFC, stands in the op-level fields;
4. what the type requires is there, and nothing that would be lost.
What needs a state (does the target exist?) is `projector`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from memory_git.domain import ops as rules
from memory_git.domain.errors import Fault
from memory_git.domain.ids import is_memory_id
from memory_git.domain.ops import Op
from memory_git.domain.payload import Report, byte_length, check_payload, in_nfc, kind_of, show_key, size_of

__all__ = ["byte_length", "check_ops", "kind_of", "presumed_ids", "show_key", "size_of"]

_OP_KEYS = frozenset({"ordinal", "op_type", "target_event_id", "resulting_event_id", "payload"})
_NEEDS_TARGET = frozenset(
    {"correct_memory", "supersede_memory", "propose_deprecation", "set_status", "detach"}
)
_TAKES_NO_RESULT = frozenset({"set_status", "detach"})


def check_ops(raw: object, fresh_ids: Iterator[str]) -> tuple[list[Op], list[Fault]]:
    """Gives the well-formed ops, normalized, and the faults of all others.

    `fresh_ids` yields UUIDv7s for memories that name none. An op with a fault is left out of the list; its ordinal stays free.
    """
    if not isinstance(raw, list):
        return [], [Fault(None, "ops", "must be a list", kind_of(raw))]
    if len(raw) > rules.MAX_OPS:
        return [], [Fault(None, "ops", f"at most {rules.MAX_OPS} ops in a changeset", str(len(raw)))]
    checked: list[Op] = []
    faults: list[Fault] = []
    for ordinal, item in enumerate(raw):
        told: list[Fault] = []

        def report(
            field: str, rule: str, found: str = "", at: int = ordinal, into: list[Fault] = told
        ) -> None:
            into.append(Fault(at, field, rule, found))

        op = _check_op(ordinal, item, fresh_ids, report)
        if told or op is None:
            faults.extend(told)
        else:
            checked.append(op)
    return checked, faults


def presumed_ids(raw: object, faults: Iterable[Fault]) -> frozenset[str]:
    """Gives the memories that faulty ops would have made: later ops that need them are not at fault for it."""
    items = raw if isinstance(raw, list) else []
    found: set[str] = set()
    for ordinal in {fault.ordinal for fault in faults if fault.ordinal is not None}:
        item = items[ordinal]
        op_type = item.get("op_type") if isinstance(item, dict) else None
        if isinstance(op_type, str) and op_type in rules.ADDING_OPS:
            payload = item.get("payload")
            channels = payload if isinstance(payload, dict) else {}
            named = (item.get("resulting_event_id"), channels.get("memory_id"), channels.get("event_id"))
            found |= {in_nfc(name) for name in named if is_memory_id(name)}
    return frozenset(found)


def _check_op(ordinal: int, item: object, fresh_ids: Iterator[str], report: Report) -> Op | None:
    if not isinstance(item, dict):
        report("op", "must be an object", kind_of(item))
        return None
    if not item.keys() <= _OP_KEYS:
        for key in sorted(item.keys() - _OP_KEYS, key=str):
            report(show_key(key), "unknown key of an op")
    op_type = item.get("op_type")
    if not isinstance(op_type, str) or op_type not in rules.PAYLOAD_KEYS:
        report("op_type", f"must be one of {', '.join(rules.OP_TYPES)}", kind_of(op_type))
        return None
    payload = item.get("payload", {})
    if not isinstance(payload, dict):
        report("payload", "must be an object", kind_of(payload))
        return None
    payload, payload_bytes = check_payload(op_type, payload, report)
    target = _identity(item, payload, "target_event_id", _target_channels(op_type), report)
    result = _identity(item, payload, "resulting_event_id", rules.RESULT_CHANNELS.get(op_type, ()), report)
    op = Op(ordinal, op_type, target, result, payload, payload_bytes)
    _check_requirements(op, report)
    if result is None and _makes_record(op_type, payload):
        return replace(op, resulting_event_id=next(fresh_ids))
    return op


def _makes_record(op_type: str, payload: Mapping[str, Any]) -> bool:
    return op_type == "add_memory" or (op_type == "supersede_memory" and "content" in payload)


def _target_channels(op_type: str) -> tuple[str, ...]:
    channel = rules.TARGET_CHANNELS.get(op_type)
    return (channel,) if channel else ()


def _identity(
    item: Mapping[str, Any], payload: Mapping[str, Any], field: str, channels: tuple[str, ...], report: Report
) -> str | None:
    """Gives the one identity that all channels name, the op-level field first; None when none does. At fault, it is told and given."""
    values: dict[str, Any] = {}
    for channel, value in ((field, item.get(field)), *((name, payload.get(name)) for name in channels)):
        if value not in (None, ""):
            values[channel] = in_nfc(value)
    if not values:
        return None
    given = list(values.values())
    faulty = [channel for channel, value in values.items() if not is_memory_id(value)]
    for channel in faulty:
        shown = channel if channel == field else f"payload.{channel}"
        report(
            shown,
            "must be a memory id: 1 to 1,024 bytes without control characters",
            size_of(values[channel]),
        )
    if any(value != given[0] for value in given[1:]):
        named = ", ".join(channel if channel == field else f"payload.{channel}" for channel in values)
        report(field, f"the identity channels {named} disagree")
    return cast("str", given[0])


def _check_requirements(op: Op, report: Report) -> None:
    if op.op_type in _NEEDS_TARGET and op.target_event_id is None:
        report("target_event_id", f"{op.op_type} needs a target")
    if op.target_event_id is not None and op.target_event_id == op.resulting_event_id:
        report("resulting_event_id", "must differ from the target")
    if op.resulting_event_id is not None and op.op_type in _TAKES_NO_RESULT:
        report("resulting_event_id", f"{op.op_type} makes no memory")
    cleared = op.payload.get("clear")
    if isinstance(cleared, list):
        for key in sorted(op.payload.keys() & {item for item in cleared if isinstance(item, str)}):
            report(f"payload.{key}", "is assigned and cleared at once")
    _REQUIREMENTS[op.op_type](op, report)


def _require(op: Op, key: str, report: Report) -> None:
    value = op.payload.get(key)
    if value is None or (isinstance(value, str) and not value.strip()):
        report(f"payload.{key}", f"{op.op_type} needs a non-empty {key}")


def _require_addition(op: Op, report: Report) -> None:
    if "content" not in op.payload:
        report("payload.content", f"{op.op_type} needs a non-empty content")
    if op.target_event_id is not None:
        report("target_event_id", f"{op.op_type} has no target")


def _require_correction(op: Op, report: Report) -> None:
    if not (op.payload.keys() & rules.RECORD_KEYS or op.payload.get("clear")):
        report("payload", "needs at least one correction field")


def _require_succession(op: Op, report: Report) -> None:
    """Without content there is no new memory, so what would describe it would be lost."""
    if "content" not in op.payload:
        for key in sorted(op.payload.keys() & (rules.CONTENT_KEYS | {"clear"})):
            report(f"payload.{key}", f"{op.op_type} without content makes no memory that could have it")


def _require_pair(op: Op, report: Report) -> None:
    if op.target_event_id is None:
        report(f"payload.{rules.TARGET_CHANNELS[op.op_type]}", f"{op.op_type} needs it")
    if op.resulting_event_id is None:
        report(f"payload.{rules.RESULT_CHANNELS[op.op_type][0]}", f"{op.op_type} needs it")
    if op.op_type in rules.RELATIONSHIP_OPS:
        _require(op, "kind", report)


def _require_reason(op: Op, report: Report) -> None:
    _require(op, "reason", report)


def _require_status(op: Op, report: Report) -> None:
    _require(op, "status", report)
    if op.payload.get("status") != "active":
        _require(op, "reason", report)


def _require_attachment(op: Op, report: Report) -> None:
    if op.target_event_id is not None:
        _require_one_of(op, rules.ATTACHMENT_KEYS, report)
        return
    _require(op, "summary", report)
    _require_one_of(op, sorted(rules.PROVENANCE_KEYS), report)


def _require_one_of(op: Op, keys: Iterable[str], report: Report) -> None:
    if not any(op.payload.get(key) for key in keys):
        report("payload", f"{op.op_type} needs one of {', '.join(keys)}")


def _require_attachment_digest(op: Op, report: Report) -> None:
    _require(op, "attachment_digest", report)


_REQUIREMENTS: dict[str, Callable[[Op, Report], None]] = {
    "add_memory": _require_addition,
    "correct_memory": _require_correction,
    "supersede_memory": _require_succession,
    "mark_duplicate": _require_pair,
    "add_relationship": _require_pair,
    "remove_relationship": _require_pair,
    "propose_deprecation": _require_reason,
    "set_status": _require_status,
    "attach_evidence": _require_attachment,
    "attach_verification": _require_attachment,
    "detach": _require_attachment_digest,
}
