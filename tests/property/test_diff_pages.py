"""The semantic diff of whatever ops make: its pages are the whole, its order is its own, and nothing that shows is left out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from op_lists import HISTORY, START, allowed, records

from memory_git.domain.change import Change, EdgeChange, OpRef
from memory_git.domain.claims import contradicts, related
from memory_git.domain.diff import SECTIONS, is_empty, semantic_diff
from memory_git.domain.record import Record
from memory_git.domain.state import MemoryState

BY = OpRef("changeset")
Diff = dict[str, Any]


def changes(before: MemoryState, after: MemoryState) -> list[Change]:
    names = sorted(before.records.keys() | after.records.keys())
    pairs = [(name, before.records.get(name), after.records.get(name)) for name in names]
    return [Change(name, one, other, BY) for name, one, other in pairs if one != other]  # type: ignore[arg-type]


def edges(before: MemoryState, after: MemoryState) -> list[EdgeChange]:
    return [EdgeChange(edge, edge in after.edges, BY) for edge in before.edges ^ after.edges]


def contradicted_in(state: MemoryState) -> Any:
    found: dict[str, list[Record]] = {}
    for one, other in combinations(records(state), 2):
        if contradicts(one, other) and not related(one, other, state.records.get):  # type: ignore[arg-type]
            found.setdefault(one.memory_id, []).append(other)
            found.setdefault(other.memory_id, []).append(one)
    return lambda record: found.get(record.memory_id, [])


def whole(before: MemoryState, after: MemoryState) -> Diff:
    return semantic_diff(changes(before, after), edges(before, after), contradicts=contradicted_in(after))


def pages(before: MemoryState, after: MemoryState, size: int) -> Iterator[Diff]:
    """Gives pages of so many changes, memories by id before relationships."""
    by_id = {change.memory_id: change for change in changes(before, after)}
    rest = sorted(edges(before, after), key=lambda item: item.edge)
    everything: list[Change | EdgeChange] = [*by_id.values(), *rest]
    for first in range(0, max(1, len(everything)), size):
        some = everything[first : first + size]
        yield semantic_diff(
            [item for item in some if isinstance(item, Change)],
            [item for item in some if isinstance(item, EdgeChange)],
            change_of=by_id.get,
            contradicts=contradicted_in(after),
        )


def two_states(first: list[Any], more: list[Any], other: list[Any]) -> tuple[MemoryState, MemoryState]:
    """Gives two states that a third led to, so that either may lack what the other has."""
    _, base = allowed(START, first)
    return allowed(base, more)[1], allowed(base, other)[1]


@pytest.mark.slow
@given(HISTORY, HISTORY, HISTORY, st.integers(1, 5))
@settings(max_examples=examples(200))
def test_the_pages_of_a_diff_one_after_another_are_the_whole(
    first: list[Any], more: list[Any], other: list[Any], size: int
) -> None:
    before, after = two_states(first, more, other)
    found = whole(before, after)
    joined = {name: [item for page in pages(before, after, size) for item in page[name]] for name in found}
    assert joined == found


@pytest.mark.slow
@given(HISTORY, HISTORY, HISTORY, st.randoms())
@settings(max_examples=examples(100))
def test_the_order_of_what_is_handed_in_makes_no_difference(
    first: list[Any], more: list[Any], other: list[Any], order: Any
) -> None:
    before, after = two_states(first, more, other)
    given_changes, given_edges = changes(before, after), edges(before, after)
    order.shuffle(given_changes)
    order.shuffle(given_edges)
    found = semantic_diff(given_changes, given_edges, contradicts=contradicted_in(after))
    assert repr(found) == repr(whole(before, after))


@pytest.mark.slow
@given(HISTORY, HISTORY, HISTORY)
@settings(max_examples=examples(100))
def test_everything_active_that_differs_shows_and_equal_states_show_nothing(
    first: list[Any], more: list[Any], other: list[Any]
) -> None:
    before, after = two_states(first, more, other)
    assert is_empty(whole(before, before))
    found = whole(before, after)
    shown = {item["memory_id"] for name in SECTIONS for item in found[name] if "memory_id" in item}
    with_heir = {
        item["before"]["memory_id"] for name in SECTIONS for item in found[name] if item.get("before")
    }
    for change in changes(before, after):
        sides = [side for side in (change.before, change.after) if side is not None]
        if len(sides) == 2 or any(side.is_active for side in sides):
            assert change.memory_id in shown | with_heir
        else:
            assert change.memory_id not in shown
