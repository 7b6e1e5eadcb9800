"""Canonical JSON (RFC 8785) and the digests over it.

1. Only I-JSON is taken (RFC 7493): no lone surrogates, no NaN or infinity, no duplicate keys, integers within
   2^53-1. Noncharacters pass: they are somebody's text, and RFC 8785 writes them as they are.
2. What was hashed is stored and hashed again; nothing is serialised anew to be verified.
3. orjson writes the same bytes as RFC 8785 when keys are ASCII and no float is inside; else `rfc8785` writes.
   A property test holds the two against each other.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
from collections.abc import Iterable
from typing import Any

import orjson
import rfc8785

from memory_git.domain.errors import Invalid

MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 64
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER


def canonical_bytes(value: Any) -> bytes:
    """Gives the RFC 8785 bytes of a JSON value.

    >>> canonical_bytes({"b": 1.0, "a": "é"})
    b'{"a":"\\xc3\\xa9","b":1}'

    Raises Invalid `not_i_json` for what I-JSON excludes.
    """
    try:
        if _is_plain(value, MAX_DEPTH):
            return plain_bytes(value)
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise Invalid("not_i_json", "the value is outside I-JSON (RFC 7493)") from error


def plain_bytes(value: Any) -> bytes:
    """Gives the RFC 8785 bytes of a value whose keys are known to be ASCII, and which can hold no float; asks no further."""
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except orjson.JSONEncodeError as error:
        raise Invalid("not_i_json", "the value is outside I-JSON (RFC 7493)") from error


def digest(value: Any) -> str:
    """Gives SHA-256 of the canonical bytes, as 64 lower-case hex digits."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def plain_digest(value: Any) -> str:
    """Gives SHA-256 of `plain_bytes`, as 64 lower-case hex digits."""
    return hashlib.sha256(plain_bytes(value)).hexdigest()


def sha256_hex(content: bytes) -> str:
    """Gives SHA-256 of bytes, as 64 lower-case hex digits."""
    return hashlib.sha256(content).hexdigest()


def hmac_hex(key: bytes, content: bytes) -> str:
    """Gives HMAC-SHA256 of bytes (RFC 2104), as 64 lower-case hex digits."""
    return hmac.new(key, content, hashlib.sha256).hexdigest()


def decode(text: bytes | str) -> Any:
    """Gives the value of one JSON text, read strictly: UTF-8 and I-JSON.

    Raises Invalid `bad_json`, whose message names the rule but never the text.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return _decoded_quickly(text)
    except (UnicodeDecodeError, _Unclear):
        return _decoded(text)


class _Unclear(Exception):
    """The quick reader can't tell whether a text is I-JSON."""


def _decoded_quickly(text: str) -> Any:
    """Gives the value of a text that is I-JSON beyond doubt: orjson's, which takes the last of equal keys and rounds large integers.

    Outside strings a text has a colon for each member. Raises _Unclear for what `_decoded` must look at: also for every float.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise _Unclear from None
    if _members(value, MAX_DEPTH) != _STRING.sub("", text).count(":"):
        raise _Unclear
    return value


def _members(value: Any, depth: int) -> int:
    """Counts the members of all objects in a value; raises _Unclear for a number that may have been rounded, or too deep a value."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return 0
    if kind is int and -MAX_INTEGER <= value <= MAX_INTEGER:
        return 0
    if depth < 1 or kind is int or kind is float:
        raise _Unclear
    if kind is list:
        return sum([_members(item, depth - 1) for item in value])
    return len(value) + sum([_members(item, depth - 1) for item in value.values() if type(item) is not str])


def _decoded(text: bytes | str) -> Any:
    """Gives the value of a text, or says which rule it breaks."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_number,
        )
        _refuse_surrogates(value, MAX_DEPTH)
    except UnicodeDecodeError as error:
        raise Invalid("bad_json", "the text is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise Invalid("bad_json", f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError as error:
        raise Invalid("bad_json", f"nested deeper than {MAX_DEPTH}") from error
    return value


def _is_plain(value: Any, depth: int) -> bool:
    """Decides whether orjson writes this value as RFC 8785 does; refuses no JSON value, or a too deep one."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if depth < 0:
        raise Invalid("not_i_json", f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict):
        keys_are_plain = all(isinstance(key, str) and key.isascii() for key in value)
        return _are_plain(value.values(), depth - 1) and keys_are_plain
    if isinstance(value, list | tuple):
        return _are_plain(value, depth - 1)
    if isinstance(value, str | int | float):
        return not isinstance(value, float)
    raise Invalid("not_i_json", f"{kind.__name__} is not a JSON value")


def _are_plain(items: Iterable[Any], depth: int) -> bool:
    """Asks every item, also after the first that isn't plain: the depth of all is checked."""
    plain = True
    for item in items:
        plain = _is_plain(item, depth) and plain
    return plain


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Invalid("bad_json", "an object has the same key twice")
    return found


def _no_constant(name: str) -> Any:
    raise Invalid("bad_json", f"{name} is not JSON")


def _integer(text: str) -> int | float:
    if len(text) > 17 or abs(int(text)) > MAX_INTEGER:
        raise Invalid("bad_json", "an integer is beyond 2^53-1")
    return int(text)


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Invalid("bad_json", "a number is beyond the range of a double")
    return number


def _refuse_surrogates(value: Any, depth: int) -> None:
    if depth < 0:
        raise Invalid("bad_json", f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, str):
        if not value.isascii() and not _encodable(value):
            raise Invalid("bad_json", "a string holds a lone surrogate")
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_surrogates(key, depth)
            _refuse_surrogates(item, depth - 1)
    elif isinstance(value, list):
        for item in value:
            _refuse_surrogates(item, depth - 1)


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
