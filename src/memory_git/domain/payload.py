"""What the keys of a payload may hold: closed key sets, types and caps (3-model, operations).

1. A key stands on the list of its op type; an unknown one is refused by name. A null is as absent.
2. Every value meets the rule that `ops.KEY_RULES` names for its key; sizes are UTF-8 bytes.
3. The whole payload is I-JSON and within 64 KiB of canonical JSON.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any, Protocol

from memory_git.domain import ops as rules
from memory_git.domain.canonical import canonical_bytes, plain_bytes
from memory_git.domain.errors import Invalid
from memory_git.domain.ids import is_digest
from memory_git.domain.policy import VISIBILITIES
from memory_git.domain.times import format_time, parse_time


class Report(Protocol):
    """Takes a fault: a field, the rule that it breaks, and the size or kind of what was found, unless it is nothing."""

    def __call__(self, field: str, rule: str, found: str = "") -> None:
        """Notes the fault."""
        ...


Rule = Callable[[str, Any, Report], Any]
"""Gives a field's value as it is kept; reports what is wrong with it."""


def check_payload(
    op_type: str, payload: dict[str, Any], report: Report
) -> tuple[dict[str, Any], bytes | None]:
    """Gives the payload with times in the wire form, sets sorted and nulls left out, and its canonical bytes.

    Reports every value at fault; the bytes are None when the payload is not I-JSON.
    """
    value_rules = _RULES_OF[op_type]
    checked: dict[str, Any] = {}
    for key, value in payload.items():
        known = value_rules.get(key)
        if known is None:
            report(f"payload.{show_key(key)}", f"unknown key for {op_type}", "")
        elif value is not None:
            checked[key] = known[0](known[1], value, report)
    try:
        # Keys are known, so ASCII, and no other value may hold a number.
        is_plain = "confidence" not in checked and "extra" not in checked
        payload_bytes = plain_bytes(checked) if is_plain else canonical_bytes(checked)
    except Invalid:
        report("payload", "must be I-JSON: no lone surrogates, no NaN, integers within 2^53-1", "")
        return checked, None
    if len(payload_bytes) > rules.MAX_PAYLOAD_BYTES:
        size = f"{len(payload_bytes)} bytes"
        report("payload", f"at most {rules.MAX_PAYLOAD_BYTES} bytes of canonical JSON", size)
    return checked, payload_bytes


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


def _memory_id(_field: str, value: Any, _report: Report) -> Any:
    """Leaves faults to `_identity`, which sees all channels of an identity."""
    return in_nfc(value)


def _digest(field: str, value: Any, report: Report) -> Any:
    if not is_digest(value):
        report(field, "must be 64 lower-case hex digits", size_of(value))
    return value


_VALUE_RULES: dict[str, Rule] = {
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


def _kind(field: str, value: Any, report: Report) -> Any:
    return _one_of(field, value, rules.KINDS, report)


def _status(field: str, value: Any, report: Report) -> Any:
    return _one_of(field, value, rules.ASSIGNABLE_STATUSES, report)


def _rules_of(op_type: str) -> dict[str, tuple[Rule, str]]:
    """Gives the rule and the field's name of each key that an op type takes."""
    named = {
        key: _VALUE_RULES.get(rules.KEY_RULES.get(key, "string"), _string)
        for key in rules.PAYLOAD_KEYS[op_type]
    }
    if op_type in rules.ADDING_OPS:
        named["kind"] = _kind
    if op_type == "set_status":
        named["status"] = _status
    return {key: (rule, f"payload.{key}") for key, rule in named.items()}


_RULES_OF = {op_type: _rules_of(op_type) for op_type in rules.OP_TYPES}


def in_nfc(value: Any) -> Any:
    """Gives an id in NFC: the same name typed on two systems is one name. What is no string comes back as it is."""
    if not isinstance(value, str) or value.isascii():
        return value
    return unicodedata.normalize("NFC", value)


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
