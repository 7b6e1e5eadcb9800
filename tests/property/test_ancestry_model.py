"""The commit graph against brute force on random histories (4-history, ancestry)."""

from __future__ import annotations

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_git.domain.ancestry import CommitGraph

History = list[tuple[int, ...]]


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Gives the parents of each changeset; near ones are likely, so that merges criss-cross."""
    history: History = [()]
    for number in range(1, draw(st.integers(2, 40))):
        near = st.integers(max(0, number - draw(st.sampled_from([2, 4, 40]))), number - 1)
        history.append(tuple(draw(st.lists(near, max_size=2, unique=True))))
    return history


def ancestors(history: History, start: int) -> set[int]:
    """Gives a changeset and all that it descends from."""
    found = {start}
    for position in range(start, -1, -1):
        if position in found:
            found.update(history[position])
    return found


def name(position: int) -> str:
    return f"c{position:03}"


def built(history: History) -> CommitGraph:
    graph = CommitGraph(max_history=len(history))
    for position, parents in enumerate(history):
        graph.append(name(position), [name(parent) for parent in parents])
    return graph


def criss_crossed(rounds: int) -> History:
    """Gives a history in which both lines merge each other at each round."""
    history: History = [(), (0,), (0,)]
    for _ in range(rounds):
        left, right = len(history) - 2, len(history) - 1
        history += [(left, right), (right, left)]
    return history


def check_bases(history: History, a: int, b: int) -> None:
    common = ancestors(history, a) & ancestors(history, b)
    best = {c for c in common if not any(c != other and c in ancestors(history, other) for other in common)}
    assert built(history).best_common_ancestors(name(a), name(b)) == tuple(sorted(map(name, best)))


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(histories(), st.data())
def test_the_bases_are_those_that_brute_force_finds(history, data):
    numbers = st.integers(0, len(history) - 1)
    check_bases(history, data.draw(numbers), data.draw(numbers))


@given(st.integers(1, 12), st.data())
def test_the_bases_of_criss_cross_histories_are_exact(rounds, data):
    history = criss_crossed(rounds)
    numbers = st.integers(0, len(history) - 1)
    check_bases(history, data.draw(numbers), data.draw(numbers))


@given(histories())
def test_ancestors_are_those_that_brute_force_finds(history):
    graph = built(history)
    for of in range(0, len(history), 3):
        known = ancestors(history, of)
        assert {a for a in range(len(history)) if graph.is_ancestor(name(a), name(of))} == known
        assert graph.reached(name(of), [name(a) for a in range(0, len(history), 2)]) == {
            name(a) for a in known if a % 2 == 0
        }
        mainline, position = {of}, of
        while history[position]:
            position = history[position][0]
            mainline.add(position)
        assert {a for a in range(len(history)) if graph.is_on_mainline(name(a), name(of))} == mainline


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(histories(), st.data())
def test_what_is_reachable_and_not_excluded_is_complete_and_parents_come_first(history, data):
    numbers = st.integers(0, len(history) - 1)
    head, excluded = data.draw(numbers), data.draw(st.lists(numbers, max_size=3))
    expected = ancestors(history, head).difference(*(ancestors(history, each) for each in excluded))
    found = built(history).reachable_not_from(name(head), [name(each) for each in excluded])
    assert found == sorted(map(name, expected))


@given(histories(), st.lists(st.integers(0, 39), min_size=1, max_size=3), st.integers(1, 7))
def test_the_pages_of_a_log_hold_every_ancestor_once_descendants_first(history, starts, limit):
    heads = [start % len(history) for start in starts]
    graph = built(history)
    ids, frontier = [], None
    while frontier is None or frontier:
        page = graph.log(map(name, heads), limit, frontier)
        assert len(page.ids) == limit or not page.frontier
        ids += page.ids
        frontier = page.frontier
    assert sorted(ids) == sorted(map(name, set().union(*(ancestors(history, head) for head in heads))))
    assert all(
        ids.index(name(p)) > place for place, one in enumerate(ids) for p in history[int(one[1:])] if p
    )


@given(histories(), st.integers(1, 7), st.data())
def test_a_log_goes_on_in_another_process_that_saw_another_order_of_arrival(history, limit, data):
    head = name(len(history) - 1)
    other = CommitGraph()
    waiting = {name(position): [name(p) for p in parents] for position, parents in enumerate(history)}
    while waiting:
        ready = sorted(one for one, parents in waiting.items() if all(p in other for p in parents))
        chosen = data.draw(st.sampled_from(ready))
        other.append(chosen, waiting.pop(chosen))
    first = built(history).log([head], limit)
    rest = other.log([head], 1000, first.frontier)
    expected = set(map(name, ancestors(history, len(history) - 1)))
    assert sorted([*first.ids, *rest.ids]) == sorted(expected)
