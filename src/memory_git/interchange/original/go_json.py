"""JSON as the original's encoder writes it: what its digests were taken over.

1. Object keys are sorted by code point; nothing stands between tokens; `<`, `>`, `&`, U+2028 and U+2029 are escaped.
2. A number is a double, in the shortest digits; exponents below -6 or from 21 on.
3. Backspace and form feed have an escape of their own since 2024, and none before: both ways are tried.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_NEW_SHORT = {"\b": "\\b", "\f": "\\f"}
_ESCAPED = re.compile('["\\\\\x00-\x1f<>&\u2028\u2029]')
_LONE = re.compile("[\ud800-\udfff]")
MAX_DEPTH = 200


class Unread(ValueError):
    """A text that the original itself would not have read."""


def read(text: str) -> Any:
    """Gives the value of a JSON text as the original reads it: numbers are doubles, of equal keys the last counts."""
    try:
        return _sane(json.loads(text, parse_int=float, parse_constant=_refuse), MAX_DEPTH)
    except (ValueError, RecursionError, OverflowError) as error:
        raise Unread(str(error)[:100]) from error


def write(value: Any, *, short_escapes: bool = True) -> bytes:
    """Gives the bytes of a value.

    >>> write({"b": 1.0, "a": "<x>", "c": 1e21})
    b'{"a":"\\\\u003cx\\\\u003e","b":1,"c":1e+21}'
    """
    return _text(value, short_escapes).encode()


def _text(value: Any, short: bool) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _string(value, short)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Ordered):
        return (
            "{" + ",".join(f"{_string(key, short)}:{_text(item, short)}" for key, item in value.items) + "}"
        )
    if isinstance(value, Mapping):
        items = sorted(value.items())
        return "{" + ",".join(f"{_string(key, short)}:{_text(item, short)}" for key, item in items) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(_text(item, short) for item in value) + "]"
    raise TypeError(f"{type(value).__name__} is no JSON value")


class Ordered:
    """An object whose fields stand in a fixed order, as those of a struct do."""

    def __init__(self, *items: tuple[str, Any]) -> None:
        self.items = items


def _string(text: str, short: bool) -> str:
    known = {**_SHORT, **_NEW_SHORT} if short else _SHORT
    return '"' + _ESCAPED.sub(lambda found: known.get(found[0]) or f"\\u{ord(found[0]):04x}", text) + '"'


def _number(value: float) -> str:
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    if 1e-6 <= abs(value) < 1e21:
        plain = format(Decimal(repr(value)), "f")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    mantissa, _, exponent = repr(value).partition("e")
    mantissa = mantissa.removesuffix(".0")
    sign, digits = exponent[0], exponent[1:].lstrip("0")
    return f"{mantissa}e{sign}{digits if sign == '-' else digits.zfill(2)}"


def _sane(value: Any, depth: int) -> Any:
    """Gives the value with each lone surrogate as U+FFFD, which is how the original reads one."""
    if depth < 0:
        raise Unread("nested too deep")
    if isinstance(value, str):
        return value if value.isascii() else _LONE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_sane(item, depth - 1) for item in value]
    if isinstance(value, dict):
        return {_sane(key, depth): _sane(item, depth - 1) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise Unread("a number beyond the range of a double")
    return value


def _refuse(name: str) -> Any:
    raise Unread(f"{name} is no JSON")
