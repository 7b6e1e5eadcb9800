"""Hash chains: what a link covers, and where a broken chain is found."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_git.domain.chain import ChainFault, Row, check, link, link_keyed

KEY = b"k" * 32


def chained(views: list[dict[str, object]], key: bytes | None = None) -> list[Row]:
    rows: list[Row] = []
    previous = None
    for view in views:
        here = link(previous, view) if key is None else link_keyed(key, previous, view)
        rows.append(Row(previous, view, here))
        previous = here
    return rows


ROWS = chained([{"n": n, "digest": f"{n:064x}"} for n in range(5)])


def test_a_link_is_the_digest_of_format_previous_and_view() -> None:
    expected = b'["memory_git/chain/v1",null,{"a":1,"b":"x"}]'
    assert link(None, {"b": "x", "a": 1}) == hashlib.sha256(expected).hexdigest()
    assert link_keyed(KEY, None, {"b": "x", "a": 1}) == hmac.new(KEY, expected, "sha256").hexdigest()


def test_a_whole_chain_has_no_fault() -> None:
    assert check(ROWS) is None
    assert check([]) is None


def test_a_chain_can_be_checked_from_a_known_link_on() -> None:
    assert check(ROWS[2:], after=ROWS[1].link) is None
    assert check(ROWS[2:]) == ChainFault(0, "previous_differs")


BREAKS: dict[str, tuple[Callable[[list[Row]], list[Row]], ChainFault]] = {
    "a row's view changed": (
        lambda rows: [*rows[:2], replace(rows[2], view={"n": 9}), *rows[3:]],
        ChainFault(2, "link_differs"),
    ),
    "a row's link changed": (
        lambda rows: [*rows[:2], replace(rows[2], link="0" * 64), *rows[3:]],
        ChainFault(2, "link_differs"),
    ),
    "a row taken out": (lambda rows: [*rows[:2], *rows[3:]], ChainFault(2, "previous_differs")),
    "two rows swapped": (
        lambda rows: [rows[0], rows[2], rows[1], *rows[3:]],
        ChainFault(1, "previous_differs"),
    ),
    "a row doubled": (lambda rows: [*rows[:3], rows[2], *rows[3:]], ChainFault(3, "previous_differs")),
    "the first row taken out": (lambda rows: rows[1:], ChainFault(0, "previous_differs")),
    "a link that is no text of ours": (
        lambda rows: [replace(rows[0], link="é\ud800")],
        ChainFault(0, "link_differs"),
    ),
}


@pytest.mark.parametrize(("spoil", "fault"), BREAKS.values(), ids=BREAKS.keys())
def test_a_broken_chain_is_found_at_its_first_fault(
    spoil: Callable[[list[Row]], list[Row]], fault: ChainFault
) -> None:
    assert check(spoil(ROWS)) == fault


def test_a_keyed_chain_can_not_be_recomputed_without_the_key() -> None:
    views: list[dict[str, object]] = [{"n": n} for n in range(3)]
    assert check(chained(views, KEY), key=KEY) is None
    assert check(chained(views, b"x" * 32), key=KEY) == ChainFault(0, "link_differs")
    assert check(chained(views), key=KEY) == ChainFault(0, "link_differs")


@given(
    st.lists(
        st.dictionaries(st.text(max_size=5), st.integers(-9, 9) | st.text(max_size=5)), min_size=2, max_size=6
    )
)
def test_a_chain_of_any_views_is_whole_and_any_row_missing_but_the_last_shows(
    views: list[dict[str, object]],
) -> None:
    rows = chained(views)
    assert check(rows) is None
    for gone in range(len(rows) - 1):
        assert check([*rows[:gone], *rows[gone + 1 :]]) is not None
