"""Every shape of tree against every other: a leaf beside an inner node, a long path beside a short one (2-architecture, the state tree).

Random trees seldom have a leaf where the other has an inner node; here each pair of shapes meets, as it came from nothing and as one
came from the other.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import product

import pytest

from memory_git.domain.trie import (
    EMPTY,
    Entry,
    MemoryNodes,
    Root,
    ScratchNodes,
    diff,
    get,
    merge,
    put_many,
    walk,
)

State = dict[bytes, Entry]
Pair = tuple[Entry | None, Entry | None]


def near(number: int) -> bytes:
    """Gives one of many keys that differ in their last byte alone, so that a path leads through 62 nodes."""
    return b"\xab" * 31 + bytes([number])


def apart(number: int) -> bytes:
    return sha256(b"%d" % number).digest()


def entry(key: bytes, value: int = 0, row: int = 1) -> Entry:
    return Entry(key, bytes([value]) * 32, row, 1, row, 1)


def of(*keys: bytes, value: int = 0, row: int = 1) -> State:
    return {key: entry(key, value, row) for key in sorted(keys)}


MANY = [apart(number) for number in range(300)]
NEAR = [near(number) for number in range(80)]
SHAPES: dict[str, State] = {
    "nothing": {},
    "one entry": of(MANY[0]),
    "one entry of another value": of(MANY[0], value=1),
    "one entry under another row": of(MANY[0], row=2),
    "a full leaf": of(*MANY[:32]),
    "a full leaf, a value and a row changed in it": of(*MANY[:32])
    | of(MANY[0], value=1)
    | of(MANY[1], row=2),
    "a leaf too full by one": of(*MANY[:33]),
    "a leaf deep down": of(*NEAR[:32]),
    "an inner node deep down": of(*NEAR[:33]),
    "long paths beside short ones": of(*MANY[:120], *NEAR[:40]),
    "half of them, some changed": of(*MANY[:60], *NEAR[20:60]) | of(*MANY[5:9], *NEAR[30:33], value=1),
    "some changed in their rows alone": of(*MANY[:120], *NEAR[:40]) | of(*MANY[10:14], *NEAR[5:8], row=2),
    "a whole branch gone": of(*[key for key in MANY if key[0] >> 4 != 7]),
    "a branch gone, rows changed beside it": of(*[key for key in MANY[:120] if key[0] >> 4 != 7], *NEAR[:40])
    | of(*[key for key in MANY[:40] if key[0] >> 4 == 3], row=2),
}
NAMES = list(SHAPES)


def made(nodes: MemoryNodes, state: State, start: Root = EMPTY, gone: State | None = None) -> Root:
    changes: dict[bytes, Entry | None] = dict.fromkeys(gone or {})
    return put_many(nodes, start, {**changes, **state})


def both_ways(left: State, right: State) -> list[tuple[MemoryNodes, Root, Root]]:
    """Gives two trees that share nothing, and two of which one came from the other."""
    found = []
    for is_heir in (False, True):
        nodes = MemoryNodes()
        one = made(nodes, left)
        found.append((nodes, one, made(nodes, right, one, left) if is_heir else made(nodes, right)))
    return found


def differing(left: State, right: State, *, in_anything: bool) -> list[Pair]:
    pairs = [(left.get(key), right.get(key)) for key in sorted(left.keys() | right.keys())]
    return [
        (one, two)
        for one, two in pairs
        if one is None or two is None or one.digest != two.digest or (in_anything and one != two)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_shape_is_walked_and_read_whatever_it_came_from(name: str) -> None:
    state = SHAPES[name]
    alone = MemoryNodes()
    root = made(alone, state)
    for other in NAMES:
        for nodes, _, tree in both_ways(SHAPES[other], state):
            assert (tree.digest, tree.count) == (root.digest, len(state))
            assert list(walk(nodes, tree)) == list(state.values())
            assert [get(nodes, tree, key) for key in (*MANY, *NEAR)] == [
                state.get(key) for key in (*MANY, *NEAR)
            ]
    for after in (MANY[3], NEAR[7], bytes(32), b"\xff" * 32):
        assert list(walk(alone, root, after)) == [item for key, item in state.items() if key > after]


@pytest.mark.parametrize("name", NAMES)
def test_a_diff_of_any_two_shapes_is_that_of_dictionaries(name: str) -> None:
    left = SHAPES[name]
    for right in SHAPES.values():
        for nodes, one, two in both_ways(left, right):
            assert list(diff(nodes, one, two)) == differing(left, right, in_anything=False)
            assert list(diff(nodes, one, two, "digest")) == differing(left, right, in_anything=False)
            assert list(diff(nodes, one, two, "row")) == differing(left, right, in_anything=True)
            assert list(diff(nodes, two, one, "row")) == differing(right, left, in_anything=True)


def merged_by_hand(base: State, left: State, right: State) -> tuple[State, list[bytes]]:
    merged, asked = {}, []
    for key in sorted(base.keys() | left.keys() | right.keys()):
        was, one, two = base.get(key), left.get(key), right.get(key)
        if two in (one, was):
            taken = one
        elif one == was:
            taken = two
        else:
            asked.append(key)
            taken = one or two
        if taken is not None:
            merged[key] = taken
    return merged, asked


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_merge_of_any_three_shapes_is_that_of_dictionaries(name: str) -> None:
    base = SHAPES[name]
    for left, right in product(SHAPES.values(), repeat=2):
        nodes = MemoryNodes()
        start = made(nodes, base)
        sides = [made(nodes, side, start, base) for side in (left, right)]
        expected, keys = merged_by_hand(base, left, right)
        asked: list[bytes] = []

        def resolve(
            key: bytes, was: Entry | None, one: Entry | None, two: Entry | None, asked: list[bytes] = asked
        ) -> Entry | None:
            asked.append(key)
            return one or two

        scratch = ScratchNodes(nodes)
        found = merge(scratch, start, *sides, resolve)
        assert list(walk(scratch, found)) == list(expected.values())
        assert found.digest == made(MemoryNodes(), expected).digest
        assert asked == keys


@pytest.mark.parametrize("name", NAMES)
def test_entries_put_or_taken_one_by_one_give_the_same_tree_in_any_order(name: str) -> None:
    state = SHAPES[name]
    whole = made(MemoryNodes(), state)
    for order in (list(state), list(state)[::-1], sorted(state, key=lambda key: sha256(key).digest())):
        nodes, tree = MemoryNodes(), EMPTY
        for key in order:
            tree = put_many(nodes, tree, {key: state[key]})
        assert (tree.digest, tree.count) == (whole.digest, whole.count)
        assert list(walk(nodes, tree)) == list(state.values())
        for key in order:
            tree = put_many(nodes, tree, {key: None})
            assert get(nodes, tree, key) is None
        assert tree == EMPTY


def test_a_merge_that_ends_at_a_side_is_that_side_unwritten() -> None:
    for base, side in product(SHAPES.values(), repeat=2):
        nodes = MemoryNodes()
        start = made(nodes, base)
        changed = made(nodes, side, start, base)
        scratch = ScratchNodes(nodes)
        for one, two in ((start, changed), (changed, start), (changed, changed)):
            assert merge(scratch, start, one, two, lambda *_: None) == changed
        assert scratch.bodies == {}


def test_an_entry_put_as_it_stands_writes_nothing() -> None:
    for state in SHAPES.values():
        nodes = MemoryNodes()
        root = made(nodes, state)
        count = len(nodes.bodies)
        assert put_many(nodes, root, dict(state)) == root
        for key, item in list(state.items())[:40]:
            assert put_many(nodes, root, {key: item}) == root
        assert put_many(nodes, root, {near(200): None, b"\x01" * 32: None}) == root
        assert len(nodes.bodies) == count
