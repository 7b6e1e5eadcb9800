"""JSON read strictly, at the edges of what I-JSON takes; a number with a fraction makes the careful reader read all of it (FORMAT §1)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memory_git.domain.canonical import MAX_DEPTH, MAX_INTEGER, decode
from memory_git.domain.errors import Invalid

WAYS = {"quickly": "null", "carefully": "1.5"}
"""What stands beside the value: a fraction sends the text to the careful reader."""


def read(value: str, beside: str) -> Any:
    return decode(f'{{"value": {value}, "beside": {beside}}}')["value"]


def nested(depth: int, inmost: str) -> str:
    """Gives lists and objects in turn, so many, inside the object that `read` puts around them."""
    opened = ["[" if place % 2 else '{"a": ' for place in range(depth)]
    closed = ["]" if place % 2 else "}" for place in reversed(range(depth))]
    return "".join([*opened, inmost, *closed])


@pytest.mark.parametrize("beside", WAYS.values(), ids=WAYS.keys())
def test_integers_are_taken_up_to_the_last_exact_one_and_no_further(beside: str):
    for value in (MAX_INTEGER, -MAX_INTEGER, 0, -1):
        assert read(str(value), beside) == value
    for value in (MAX_INTEGER + 1, -MAX_INTEGER - 1, 10**17, -(10**18)):
        with pytest.raises(Invalid):
            read(str(value), beside)


@pytest.mark.parametrize("beside", WAYS.values(), ids=WAYS.keys())
def test_texts_of_every_script_are_taken_and_half_characters_are_not_wherever_they_stand(beside: str):
    for text in ("é", "東京", "\U0001f600", "a:b", '"', "\\"):
        for value in (text, [text], {"k": text}, {text: 1}):
            assert read(json.dumps(value), beside) == value
            assert read(json.dumps(value, ensure_ascii=False), beside) == value
    for value in (
        '"\\ud800"',
        '["\\ud800"]',
        '{"k": ["a", "\\udfff"]}',
        '{"\\ud800": 1}',
        '[[{"k": "\\ud800"}]]',
    ):
        with pytest.raises(Invalid):
            read(value, beside)


@pytest.mark.parametrize("beside", WAYS.values(), ids=WAYS.keys())
def test_nesting_is_taken_up_to_the_limit_and_no_further(beside: str):
    for inmost in ('"é"', "1", "{}"):
        last = inmost == "{}"
        assert read(nested(MAX_DEPTH - 1 - last, inmost), beside)
        with pytest.raises(Invalid):
            read(nested(MAX_DEPTH + 1, inmost), beside)


@pytest.mark.parametrize("beside", WAYS.values(), ids=WAYS.keys())
def test_a_key_twice_is_refused_at_any_depth_and_a_colon_in_a_text_is_none(beside: str):
    for value in ('{"a": 1, "a": 1}', '[{"a": {"b": 1, "b": 2}}]', '{"a": 1, "\\u0061": 2}'):
        with pytest.raises(Invalid):
            read(value, beside)
    assert read('{"a:": ":", "b": "\\":\\""}', beside) == {"a:": ":", "b": '":"'}
