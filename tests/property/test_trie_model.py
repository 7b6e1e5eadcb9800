"""The state tree against dictionaries (2-architecture: a root depends on the records alone)."""

from __future__ import annotations

from hashlib import sha256

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_git.domain.trie import EMPTY, Entry, MemoryNodes, ScratchNodes, diff, get, merge, put_many, walk

State = dict[bytes, Entry]


def key(number: int) -> bytes:
    """Gives a key; a third of them share a prefix of 30 bytes, so that the tree is deep."""
    if number % 3 == 0:
        return bytes(30) + number.to_bytes(2)
    return sha256(number.to_bytes(2)).digest()


numbers = st.integers(0, 160)
changes = st.dictionaries(numbers, st.none() | st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=80)


def to_entries(change: dict[int, tuple[int, int] | None]) -> dict[bytes, Entry | None]:
    return {
        key(n): None if value is None else Entry(key(n), bytes([value[0]] * 32), value[1], 1, value[1], 1)
        for n, value in change.items()
    }


def applied(state: State, change: dict[bytes, Entry | None]) -> State:
    merged = {**state, **change}
    return {k: merged[k] for k in sorted(merged) if merged[k] is not None}


def differing(left: State, right: State, same) -> list[tuple[Entry | None, Entry | None]]:
    keys = sorted(left.keys() | right.keys())
    pairs = [(left.get(k), right.get(k)) for k in keys]
    return [(one, other) for one, other in pairs if one is None or other is None or not same(one, other)]


def later(key: bytes, base: Entry | None, left: Entry | None, right: Entry | None) -> Entry | None:
    return max((left, right), key=lambda entry: (entry is not None, entry))


@settings(max_examples=examples(60))
@given(st.lists(changes, max_size=8))
def test_a_history_with_removals_agrees_with_a_dictionary(history):
    nodes, root, state = MemoryNodes(), EMPTY, {}
    for change in map(to_entries, history):
        root, state = put_many(nodes, root, change), applied(state, change)
        assert {entry.key: entry for entry in walk(nodes, root)} == state
        assert [entry.key for entry in walk(nodes, root)] == list(state)
        assert root.count == len(state)
        assert all(get(nodes, root, key(n)) == state.get(key(n)) for n in range(0, 161, 7))
    assert root.digest == put_many(nodes, EMPTY, state).digest


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(st.dictionaries(numbers, st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=120), st.randoms())
def test_a_root_does_not_depend_on_the_order_of_history(content, random):
    wanted = to_entries(content)
    nodes = MemoryNodes()
    whole = put_many(nodes, EMPTY, wanted)
    detours = to_entries({n: (9, 9) for n in range(160) if random.random() < 0.3})
    root = put_many(nodes, EMPTY, detours)
    steps = [*wanted.items(), *((k, None) for k in detours if k not in wanted)]
    random.shuffle(steps)
    for k, entry in steps:
        root = put_many(nodes, root, {k: entry})
    assert (root.digest, root.count) == (whole.digest, whole.count)


@settings(max_examples=examples(60))
@given(changes, changes, changes)
def test_a_diff_agrees_with_dictionaries_and_leads_from_one_state_to_the_other(base, left, right):
    nodes = MemoryNodes()
    common = put_many(nodes, EMPTY, to_entries(base))
    one, other = (put_many(nodes, common, to_entries(side)) for side in (left, right))
    ones, others = ({e.key: e for e in walk(nodes, root)} for root in (one, other))
    assert list(diff(nodes, one, other)) == differing(ones, others, lambda a, b: a.digest == b.digest)
    by_row = list(diff(nodes, one, other, by="row"))
    assert by_row == differing(ones, others, lambda a, b: a == b)
    assert list(diff(nodes, other, one, by="row")) == [(b, a) for a, b in by_row]
    step = {(a or b).key: b for a, b in by_row}
    assert put_many(nodes, one, step).digest == other.digest


@settings(max_examples=examples(100))
@given(changes, changes, changes)
def test_a_merge_agrees_with_dictionaries_and_keeps_the_canonical_shape(base, left, right):
    nodes = MemoryNodes()
    common = put_many(nodes, EMPTY, to_entries(base))
    one, other = (put_many(nodes, common, to_entries(side)) for side in (left, right))
    commons, ones, others = ({e.key: e for e in walk(nodes, root)} for root in (common, one, other))
    asked = []

    def noting(key, base, left, right):
        asked.append(key)
        return later(key, base, left, right)

    expected, disputed = {}, []
    for k in sorted(commons.keys() | ones.keys() | others.keys()):
        was, here, there = commons.get(k), ones.get(k), others.get(k)
        if here not in (was, there) and there != was:
            disputed.append(k)
            expected[k] = later(k, was, here, there)
        else:
            expected[k] = there if here == was else here
    scratch = ScratchNodes(nodes)
    merged = merge(scratch, common, one, other, noting)
    assert asked == disputed
    assert list(walk(scratch, merged)) == [entry for entry in expected.values() if entry is not None]
    assert merged.digest == put_many(nodes, EMPTY, expected).digest


@settings(max_examples=examples(60))
@given(changes, changes, changes)
def test_a_merge_is_symmetric_and_idempotent_and_takes_a_lone_side_whole(base, left, right):
    nodes = MemoryNodes()
    common = put_many(nodes, EMPTY, to_entries(base))
    one, other = (put_many(nodes, common, to_entries(side)) for side in (left, right))
    merged = merge(nodes, common, one, other, later)
    assert merge(nodes, common, other, one, later).digest == merged.digest
    assert merge(nodes, common, one, one, later) == one
    assert merge(nodes, common, common, one, later) == one
    assert merge(nodes, common, merged, other, later).digest == merged.digest
