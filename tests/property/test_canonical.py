"""Canonical bytes: the quick path against `rfc8785`, and what is refused."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from memory_git.domain import canonical
from memory_git.domain.canonical import MAX_DEPTH, MAX_INTEGER, canonical_bytes, decode
from memory_git.domain.errors import Invalid

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALAR = st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | TEXT
NUMBER = st.floats(allow_nan=False, allow_infinity=False)


def trees(leaf: st.SearchStrategy[Any], keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(leaf, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=30)


@given(trees(SCALAR, st.text(st.characters(max_codepoint=127))))
def test_the_quick_path_writes_what_rfc8785_writes(value: Any) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


@given(trees(SCALAR | NUMBER, TEXT))
def test_any_value_is_written_as_rfc8785_writes_it_and_read_back_to_the_same_bytes(value: Any) -> None:
    written = canonical_bytes(value)
    assert written == rfc8785.dumps(value)
    try:
        again = decode(written)
    except Invalid:
        return  # an integral double beyond 2^53 is written as digits, which decode refuses
    assert canonical_bytes(again) == written


@given(st.text() | st.binary())
def test_reading_gives_a_value_or_a_refusal_and_nothing_else(text: str | bytes) -> None:
    try:
        value = decode(text)
    except Invalid as refused:
        assert refused.code == "bad_json"
    else:
        assert canonical_bytes(value)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


REFUSED: dict[str, Any] = {
    "NaN": float("nan"),
    "infinity": float("-inf"),
    "NaN beside a plain value": {"a": 1, "b": [float("nan")]},
    "an integer of 2^53": MAX_INTEGER + 1,
    "an integer of -2^53": -MAX_INTEGER - 1,
    "an integer of 2^53 beside a float": [0.5, MAX_INTEGER + 1],
    "a lone surrogate": "\ud800",
    "a lone surrogate in a key": {"\udfff": 1},
    "a lone surrogate beside a float": [0.5, "\udc00"],
    "bytes": b"x",
    "a set": {1},
    "a datetime": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    "a uuid": uuid.UUID(int=7),
    "a number as key": {1: "x"},
    "null as key": {None: "x"},
    "too deep": nested(MAX_DEPTH + 1),
    "too deep behind a float": {"a": 0.5, "b": nested(5000)},
}


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_outside_i_json_is_refused(value: Any) -> None:
    with pytest.raises(Invalid) as caught:
        canonical_bytes(value)
    assert caught.value.code == "not_i_json"


REFUSED_TEXTS: dict[str, str | bytes] = {
    "the same key twice": '{"a":1,"a":2}',
    "the same key written in two ways": '{"a":1,"\\u0061":2}',
    "NaN": "[NaN]",
    "minus infinity": "-Infinity",
    "a number beyond a double": "1e400",
    "an integer of 2^53": "9007199254740992",
    "an integer of many digits": "1" * 5000,
    "a lone surrogate": '"\\ud800"',
    "a lone surrogate in a key": '{"\\udead":1}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '"x"'.encode("utf-16"),
    "an overlong byte": b'"\xc0\xaf"',
    "deep nesting": "[" * 100_000,
    "closed deep nesting": "[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2),
    "deep objects": '{"a":' * 3000 + "1" + "}" * 3000,
}


@pytest.mark.parametrize("text", REFUSED_TEXTS.values(), ids=REFUSED_TEXTS.keys())
def test_a_text_outside_i_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(Invalid) as caught:
        decode(text)
    assert caught.value.code == "bad_json"


PIECES = st.sampled_from(
    [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"a"',
        '"\\u0061"',
        '"b:\\":"',
        '"\\ud800"',
        '"é"',
        "0",
        "-0",
        "1.0",
        "1e3",
        "-1",
        "9007199254740991",
        "9007199254740992",
        "18446744073709551616",
        "true",
        "null",
        "NaN",
        " ",
        '"',
        "\\",
        "\x01",
    ]
)
TREES = st.recursive(
    st.sampled_from(['"a"', '"b:\\":"', "1", "1.5", "9007199254740993", "null", '"\\ud800"']),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(st.sampled_from(['"a"', '"b"', '"\\u0061"', '":"']), inner), max_size=4).map(
            lambda members: "{" + ",".join(f"{key} :{item}" for key, item in members) + "}"
        )
    ),
    max_leaves=12,
)
NESTED = st.tuples(st.integers(60, 68), st.sampled_from(["[", '{"a":'])).map(
    lambda many: many[1] * many[0] + "1" + ("]" if many[1] == "[" else "}") * many[0]
)


def read_by(reader: Callable[[str], Any], text: str) -> Any:
    try:
        value = reader(text)
    except Invalid as error:
        return error.code, error.message
    return repr(value)


@given(st.lists(PIECES, max_size=12).map("".join) | TREES | NESTED)
def test_the_quick_reader_reads_as_the_strict_one_or_leaves_it_to_it(text: str) -> None:
    assert read_by(decode, text) == read_by(canonical._decoded, text)
