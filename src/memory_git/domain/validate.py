"""Whether the ops of a changeset are well formed, before any state is asked. Finds every fault, not the first.

For each op, in this order:
1. it is an object with known keys and a known `op_type`;
2. every payload key stands on the list of its type (closed), and every value meets its key's rule;
3. identity channels that name the same thing agree; their value moves into the op-level fields;
4. what the type requires is there.
What needs a state (does the target exist?) is `projector`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memory_git.domain import ops as rules
from memory_git.domain.canonical import canonical_bytes
from memory_git.domain.errors import Fault, Invalid
from memory_git.domain.ids import is_digest, is_memory_id
from memory_git.domain.ops import Op
from memory_git.domain.policy import VISIBILITIES
from memory_git.domain.times import format_time, parse_time

_OP_KEYS = frozenset({"ordinal", "op_type", "target_event_id", "resulting_event_id", "payload"})
_NEEDS_TARGET = frozenset(
    {"correct_memory", "supersede_memory", "mark_duplicate", "propose_deprecation", "set_status", "detach"}
)
Report = Callable[[str, str, str], None]
"""Takes a field, the rule that it breaks, and the size or kind of what was found."""


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
        found: list[Fault] = []

        def report(
            field: str, rule: str, what: str = "", at: int = ordinal, into: list[Fault] = found
        ) -> None:
            into.append(Fault(at, field, rule, what))

        op = _check_op(ordinal, item, fresh_ids, report)
        if found or op is None:
            faults.extend(found)
        else:
            checked.append(op)
    return checked, faults


def _check_op(ordinal: int, item: object, fresh_ids: Iterator[str], report: Report) -> Op | None:
    if not isinstance(item, dict):
        report("op", "must be an object", kind_of(item))
        return None
    for key in item.keys() - _OP_KEYS:
        report(show_key(key), "unknown key of an op", "")
    op_type = item.get("op_type")
    if not isinstance(op_type, str) or op_type not in rules.PAYLOAD_KEYS:
        report("op_type", f"must be one of {', '.join(rules.OP_TYPES)}", kind_of(op_type))
        return None
    payload = item.get("payload", {})
    if not isinstance(payload, dict):
        report("payload", "must be an object", kind_of(payload))
        return None
    payload = _check_payload(op_type, payload, report)
    target = _identity(item, payload, "target_event_id", _target_channels(op_type), report)
    result = _identity(item, payload, "resulting_event_id", rules.RESULT_CHANNELS.get(op_type, ()), report)
    _check_requirements(op_type, target, result, payload, report)
    if result is None and _makes_record(op_type, payload):
        result = next(fresh_ids)
    return Op(ordinal, op_type, target, result, payload)


def _makes_record(op_type: str, payload: Mapping[str, Any]) -> bool:
    return op_type == "add_memory" or (op_type == "supersede_memory" and "content" in payload)


def _target_channels(op_type: str) -> tuple[str, ...]:
    channel = rules.TARGET_CHANNELS.get(op_type)
    return (channel,) if channel else ()


def _identity(
    item: Mapping[str, Any], payload: Mapping[str, Any], field: str, channels: tuple[str, ...], report: Report
) -> str | None:
    """Gives the one identity that all channels name, the op-level field first; None when none does."""
    named: dict[str, Any] = {}
    if item.get(field) not in (None, ""):
        named[field] = item[field]
    named.update(
        {channel: payload[channel] for channel in channels if payload.get(channel) not in (None, "")}
    )
    for channel, value in named.items():
        if not is_memory_id(value):
            report(
                channel, "must be a memory id: 1 to 1,024 bytes without control characters", size_of(value)
            )
    values = list(named.values())
    if any(value != values[0] for value in values[1:]):
        report(field, f"the identity channels {', '.join(named)} disagree", "")
    return values[0] if values and is_memory_id(values[0]) else None


def _check_payload(op_type: str, payload: dict[str, Any], report: Report) -> dict[str, Any]:
    """Gives the payload with times in the wire form, sets sorted and nulls left out."""
    allowed = rules.PAYLOAD_KEYS[op_type]
    checked: dict[str, Any] = {}
    for key, value in payload.items():
        if key not in allowed:
            report(f"payload.{show_key(key)}", f"unknown key for {op_type}", "")
        elif value is not None:
            checked[key] = _check_value(op_type, key, value, report)
    try:
        payload_bytes = len(canonical_bytes(checked))
    except Invalid:
        report("payload", "must be I-JSON: no lone surrogates, no NaN, integers within 2^53-1", "")
        return checked
    if payload_bytes > rules.MAX_PAYLOAD_BYTES:
        report(
            "payload", f"at most {rules.MAX_PAYLOAD_BYTES} bytes of canonical JSON", f"{payload_bytes} bytes"
        )
    return checked


def _check_value(op_type: str, key: str, value: Any, report: Report) -> Any:
    field = f"payload.{key}"
    if key == "kind" and op_type in rules.ADDING_OPS:
        return _one_of(field, value, rules.KINDS, report)
    if key == "status" and op_type == "set_status":
        return _one_of(field, value, rules.ASSIGNABLE_STATUSES, report)
    rule = _VALUE_RULES.get(rules.KEY_RULES.get(key, "string"), _string)
    return rule(field, value, report)


def _string(field: str, value: Any, report: Report, most: int = rules.MAX_STRING_BYTES) -> Any:
    if not isinstance(value, str):
        report(field, "must be a string", kind_of(value))
    elif (size := byte_length(value)) > most:
        report(field, f"at most {most} bytes", f"{size} bytes")
    return value


def _note(field: str, value: Any, report: Report) -> Any:
    return _string(field, value, report, rules.MAX_NOTE_BYTES)


def _content(field: str, value: Any, report: Report) -> Any:
    if isinstance(value, str) and not value.strip():
        report(field, "must not be empty", "only white space")
    return _string(field, value, report, rules.MAX_CONTENT_BYTES)


def _one_of(field: str, value: Any, allowed: tuple[str, ...], report: Report) -> Any:
    if not isinstance(value, str) or value not in allowed:
        report(field, f"must be one of {', '.join(allowed)}", kind_of(value))
    return value


def _strings(field: str, value: Any, report: Report, most: int, most_bytes: int) -> Any:
    if not isinstance(value, list):
        report(field, "must be a list of strings", kind_of(value))
        return value
    if len(value) > most:
        report(field, f"at most {most} items", f"{len(value)} items")
    for item in value:
        if not isinstance(item, str) or not item.strip():
            report(field, "every item must be a non-empty string", kind_of(item))
            return value
        if (size := byte_length(item)) > most_bytes:
            report(field, f"an item has at most {most_bytes} bytes", f"{size} bytes")
    return sorted(set(value))


def _tags(field: str, value: Any, report: Report) -> Any:
    return _strings(field, value, report, rules.MAX_TAGS, rules.MAX_TAG_BYTES)


def _sources(field: str, value: Any, report: Report) -> Any:
    return _strings(field, value, report, rules.MAX_SOURCES, rules.MAX_STRING_BYTES)


def _clear(field: str, value: Any, report: Report) -> Any:
    value = _strings(field, value, report, len(rules.CLEARABLE_KEYS), rules.MAX_STRING_BYTES)
    if (
        isinstance(value, list)
        and not {item for item in value if isinstance(item, str)} <= rules.CLEARABLE_KEYS
    ):
        report(field, f"names only {', '.join(sorted(rules.CLEARABLE_KEYS))}", "")
    return value


def _extra(field: str, value: Any, report: Report) -> Any:
    if not isinstance(value, dict):
        report(field, "must be an object", kind_of(value))
        return value
    try:
        size = len(canonical_bytes(value))
    except Invalid:
        return value  # said once, of the whole payload
    if size > rules.MAX_EXTRA_BYTES:
        report(field, f"at most {rules.MAX_EXTRA_BYTES} bytes of canonical JSON", f"{size} bytes")
    return value


def _confidence(field: str, value: Any, report: Report) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        report(field, "must be a number", kind_of(value))
    elif not 0 <= value <= 1:
        report(field, "must be within 0 and 1", "a number outside")
    return value


def _time(field: str, value: Any, report: Report) -> Any:
    if value == "":
        return value
    moment = parse_time(value)
    if moment is None:
        report(field, "must be an RFC 3339 time, or empty for open", kind_of(value))
        return value
    return format_time(moment)


def _flag(field: str, value: Any, report: Report) -> Any:
    if not isinstance(value, bool):
        report(field, "must be true or false", kind_of(value))
    return value


def _memory_id(field: str, value: Any, report: Report) -> Any:
    if value != "" and not isinstance(value, str):
        report(field, "must be a string", kind_of(value))
    return value


def _digest(field: str, value: Any, report: Report) -> Any:
    if not is_digest(value):
        report(field, "must be 64 lower-case hex digits", size_of(value))
    return value


_VALUE_RULES: dict[str, Callable[[str, Any, Report], Any]] = {
    "string": _string,
    "note": _note,
    "content": _content,
    "tags": _tags,
    "sources": _sources,
    "extra": _extra,
    "clear": _clear,
    "confidence": _confidence,
    "time": _time,
    "flag": _flag,
    "memory_id": _memory_id,
    "digest": _digest,
    "visibility": lambda field, value, report: _one_of(field, value, VISIBILITIES, report),
    "approval": lambda field, value, report: _one_of(field, value, ("user_approved", ""), report),
    "trust": lambda field, value, report: _one_of(field, value, rules.TRUSTS, report),
}


def _check_requirements(
    op_type: str, target: str | None, result: str | None, payload: Mapping[str, Any], report: Report
) -> None:
    if op_type in _NEEDS_TARGET and target is None:
        report("target_event_id", f"{op_type} needs a target", "")
    if op_type == "add_memory":
        _require(payload, "content", op_type, report)
        if target is not None:
            report("target_event_id", "add_memory has no target", "")
    elif op_type == "correct_memory":
        if not (payload.keys() & rules.RECORD_KEYS or payload.get("clear")):
            report("payload", "needs at least one correction field", "")
    elif op_type == "mark_duplicate" or op_type in rules.RELATIONSHIP_OPS:
        _check_pair(op_type, target, result, payload, report)
    elif op_type in ("propose_deprecation", "detach"):
        _require(
            payload, "reason" if op_type == "propose_deprecation" else "attachment_digest", op_type, report
        )
    elif op_type == "set_status":
        _require(payload, "status", op_type, report)
        if payload.get("status") != "active":
            _require(payload, "reason", op_type, report)
    elif op_type in rules.ATTACH_OPS and target is None:
        _require(payload, "summary", op_type, report)
        if not payload.keys() & rules.PROVENANCE_KEYS:
            report(
                "payload", f"without a target it needs one of {', '.join(sorted(rules.PROVENANCE_KEYS))}", ""
            )
    if target is not None and target == result:
        report("resulting_event_id", "must differ from the target", "")
    both = payload.keys() & set(payload.get("clear", ()) if isinstance(payload.get("clear"), list) else ())
    for key in sorted(both):
        report(f"payload.{key}", "is assigned and cleared at once", "")


def _check_pair(
    op_type: str, target: str | None, result: str | None, payload: Mapping[str, Any], report: Report
) -> None:
    if target is None:
        report(rules.TARGET_CHANNELS[op_type], f"{op_type} needs it", "")
    if result is None:
        report(rules.RESULT_CHANNELS[op_type][0], f"{op_type} needs it", "")
    if op_type in rules.RELATIONSHIP_OPS:
        _require(payload, "kind", op_type, report)


def _require(payload: Mapping[str, Any], key: str, op_type: str, report: Report) -> None:
    value = payload.get(key)
    if value is None or (isinstance(value, str) and not value.strip()):
        report(f"payload.{key}", f"{op_type} needs a non-empty {key}", "")


def byte_length(text: str) -> int:
    """Gives the size in UTF-8 bytes; a lone surrogate counts as three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def kind_of(value: object) -> str:
    """Names the JSON kind of a value, for a fault that must not repeat the value."""
    if value is None:
        return "null"
    names = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), "an unknown kind")


def size_of(value: object) -> str:
    """Gives the size of a string, or the kind of anything else."""
    return f"{byte_length(value)} bytes" if isinstance(value, str) else kind_of(value)


def show_key(key: object) -> str:
    """Gives a key's name as far as it may be shown: 64 printable characters."""
    return "".join(character if character.isprintable() else "?" for character in str(key)[:64])
