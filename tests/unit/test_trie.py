"""The state tree on small cases: shape, sharing, refusals (2-architecture, the state tree)."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import pytest

from memory_git.domain.errors import Corrupt
from memory_git.domain.trie import (
    EMPTY,
    Entry,
    Inner,
    Leaf,
    MemoryNodes,
    Root,
    ScratchNodes,
    decode,
    diff,
    get,
    merge,
    node_digest,
    put_many,
    verified,
    walk,
)


def key(number: int) -> bytes:
    return sha256(b"key %d" % number).digest()


def entry(number: int, text: str = "first", *, row: int = 1, changed: int = 1) -> Entry:
    return Entry(key(number), sha256(text.encode()).digest(), row, 1, changed, 1)


def entries(*numbers: int, text: str = "first", row: int = 1) -> Mapping[bytes, Entry]:
    return {key(number): entry(number, text, row=row) for number in numbers}


def never(key: bytes, base: Entry | None, left: Entry | None, right: Entry | None) -> Entry | None:
    raise AssertionError("nothing was changed on both sides")


def test_an_empty_tree_has_no_entries_and_is_never_stored():
    nodes = MemoryNodes()
    assert put_many(nodes, EMPTY, {key(1): None}) is EMPTY
    assert list(walk(nodes, EMPTY)) == []
    assert get(nodes, EMPTY, key(1)) is None
    assert put_many(nodes, put_many(nodes, EMPTY, entries(1)), {key(1): None}) == EMPTY
    assert len(nodes.bodies) == 1


def test_thirty_two_entries_are_one_leaf_and_thirty_three_are_not():
    nodes = MemoryNodes()
    full = put_many(nodes, EMPTY, entries(*range(32)))
    over = put_many(nodes, full, entries(32))
    assert isinstance(decode(nodes.get(full.row, full.digest)), Leaf)
    assert isinstance(decode(nodes.get(over.row, over.digest)), Inner)
    assert (full.count, over.count) == (32, 33)


def test_removal_collapses_to_the_same_root_as_if_the_entry_had_never_been():
    nodes = MemoryNodes()
    full = put_many(nodes, EMPTY, entries(*range(32)))
    back = put_many(nodes, put_many(nodes, full, entries(32)), {key(32): None})
    assert back.digest == full.digest
    assert isinstance(decode(nodes.get(back.row, back.digest)), Leaf)


def test_putting_what_is_there_gives_the_same_object_and_writes_nothing():
    nodes = MemoryNodes()
    root = put_many(nodes, EMPTY, entries(*range(100)))
    before = len(nodes.bodies)
    assert put_many(nodes, root, entries(3, 50, 99)) is root
    assert put_many(nodes, root, {key(100): None}) is root
    assert put_many(nodes, root, {}) is root
    assert len(nodes.bodies) == before


def test_one_put_of_many_writes_each_new_node_once():
    nodes = MemoryNodes()
    root = put_many(nodes, EMPTY, entries(*range(1000)))
    assert len(set(nodes.bodies.values())) == len(nodes.bodies)
    before = len(nodes.bodies)
    put_many(nodes, root, entries(*range(1000), text="second"))
    assert len(nodes.bodies) == 2 * before


def test_rows_and_provenance_do_not_enter_the_digest_but_are_kept():
    nodes = MemoryNodes()
    one = put_many(nodes, EMPTY, entries(*range(40), row=1))
    other = put_many(nodes, one, {key(7): Entry(key(7), entry(7).digest, 99, 5, 6, 7)})
    assert other.digest == one.digest
    assert other.row != one.row
    assert get(nodes, other, key(7)) == Entry(key(7), entry(7).digest, 99, 5, 6, 7)
    assert list(diff(nodes, one, other)) == []
    assert list(diff(nodes, one, other, by="row")) == [(entry(7), get(nodes, other, key(7)))]


def test_keys_that_share_a_long_prefix_are_told_apart():
    nodes = MemoryNodes()
    keys = [bytes(31) + bytes([last]) for last in range(40)]
    root = put_many(nodes, EMPTY, {k: Entry(k, bytes(32), 1, 1, 1, 1) for k in keys})
    assert [found.key for found in walk(nodes, root)] == keys
    assert put_many(nodes, root, dict.fromkeys(keys[1:])).count == 1


def test_a_key_that_stands_inside_a_record_digest_is_not_found():
    nodes = MemoryNodes()
    root = put_many(nodes, EMPTY, {key(1): Entry(key(1), key(2), 1, 1, 1, 1)})
    assert get(nodes, root, key(2)) is None


@pytest.mark.parametrize("size", [20, 200, 5000], ids=lambda size: f"{size} entries")
def test_a_walk_resumes_after_any_key(size):
    nodes = MemoryNodes()
    root = put_many(nodes, EMPTY, entries(*range(size)))
    keys = sorted(key(number) for number in range(size))
    last_seen = keys[size // 3]
    assert [found.key for found in walk(nodes, root, after=last_seen)] == keys[size // 3 + 1 :]
    between = last_seen[:-1] + bytes([last_seen[-1] ^ 1])
    assert [found.key for found in walk(nodes, root, after=between)] == [k for k in keys if k > between]
    assert list(walk(nodes, root, after=b"\xff" * 32)) == []


def test_a_subtree_that_one_side_changed_is_merged_unread():
    nodes = MemoryNodes()
    base = put_many(nodes, EMPTY, entries(*range(2000)))
    left = put_many(nodes, base, entries(1, text="left", row=2))
    right = put_many(
        nodes, base, entries(*(n for n in range(2000) if key(n)[0] >> 4 != key(1)[0] >> 4), text="right")
    )
    reads: list[int] = []

    class Counted(ScratchNodes):
        def get(self, row: int, expected_digest: bytes) -> bytes:
            reads.append(row)
            return super().get(row, expected_digest)

    merged = merge(Counted(nodes), base, left, right, never)
    assert merged.count == 2000
    assert set(reads) == {base.row, left.row, right.row}


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param({1: "l"}, {2: "r"}, {0: "b", 1: "l", 2: "r"}, id="each side changed one"),
        pytest.param({1: "l"}, {}, {0: "b", 1: "l", 2: "b"}, id="only the left changed"),
        pytest.param({1: None}, {2: None}, {0: "b"}, id="each side removed one"),
        pytest.param({1: None}, {1: None}, {0: "b", 2: "b"}, id="both removed the same"),
        pytest.param({3: "n"}, {3: "n"}, {0: "b", 1: "b", 2: "b", 3: "n"}, id="both added the same entry"),
    ],
)
def test_a_merge_without_overlap_asks_nothing(left, right, expected):
    nodes = MemoryNodes()
    base = put_many(nodes, EMPTY, entries(0, 1, 2, text="b"))
    sides = [
        put_many(nodes, base, {key(n): text and entry(n, text) for n, text in side.items()})
        for side in (left, right)
    ]
    merged = merge(nodes, base, *sides, never)
    assert merged.digest == put_many(nodes, EMPTY, {key(n): entry(n, t) for n, t in expected.items()}).digest


def test_a_key_that_both_sides_changed_is_resolved_also_when_the_digests_are_equal():
    nodes = MemoryNodes()
    base = put_many(nodes, EMPTY, entries(*range(50)))
    left = put_many(nodes, base, {key(5): entry(5, "same", row=2, changed=2)})
    right = put_many(nodes, base, {key(5): entry(5, "same", row=3, changed=3)})
    asked = []

    def first_parent(key, base, left, right):
        asked.append((key, base, left, right))
        return left

    merged = merge(nodes, base, left, right, first_parent)
    assert asked == [(key(5), entry(5), get(nodes, left, key(5)), get(nodes, right, key(5)))]
    assert merged == left


def test_a_resolution_may_remove_the_key():
    nodes = MemoryNodes()
    base = put_many(nodes, EMPTY, entries(*range(33)))
    left, right = (put_many(nodes, base, {key(5): entry(5, text)}) for text in "lr")
    merged = merge(nodes, base, left, right, lambda *_: None)
    assert merged.digest == put_many(nodes, EMPTY, entries(*(n for n in range(33) if n != 5))).digest


def test_a_merge_can_be_planned_above_a_store_that_stays_as_it_is():
    nodes = MemoryNodes()
    base = put_many(nodes, EMPTY, entries(*range(300)))
    left, right = (put_many(nodes, base, entries(n, text="new")) for n in (1, 2))
    before = dict(nodes.bodies)
    scratch = ScratchNodes(nodes)
    planned = merge(scratch, base, left, right, never)
    assert planned.row < 0
    assert len(list(walk(scratch, planned))) == 300
    assert nodes.bodies == before
    assert planned.digest == merge(nodes, base, left, right, never).digest


def test_a_body_with_any_byte_flipped_before_the_bar_is_corrupt():
    nodes = MemoryNodes()
    for size in (3, 40):
        root = put_many(nodes, EMPTY, entries(*range(size)))
        body = nodes.bodies[root.row]
        for place in range(0, size, 2):
            flipped = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
            with pytest.raises(Corrupt):
                verified(flipped, root.digest, root.row)


@pytest.mark.parametrize("size", [3, 40], ids=["leaf", "inner node"])
@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b[:1], lambda b: b""])
def test_a_body_of_the_wrong_length_is_corrupt(size, damage):
    nodes = MemoryNodes()
    root = put_many(nodes, EMPTY, entries(*range(size)))
    with pytest.raises(Corrupt):
        verified(damage(nodes.bodies[root.row]), root.digest, root.row)


def test_a_child_count_that_does_not_add_up_is_corrupt():
    nodes = MemoryNodes()
    root = put_many(nodes, EMPTY, entries(*range(40)))
    body = nodes.bodies[root.row]
    nodes.bodies[root.row] = body[:-1] + bytes([body[-1] ^ 1])
    with pytest.raises(Corrupt, match="pointers"):
        get(nodes, root, key(1))


def test_a_pointer_to_another_node_is_corrupt():
    nodes = MemoryNodes()
    root = put_many(nodes, EMPTY, entries(*range(40)))
    other = put_many(nodes, EMPTY, entries(50))
    with pytest.raises(Corrupt):
        get(nodes, root._replace(row=other.row), key(1))
    with pytest.raises(Corrupt, match="absent"):
        get(nodes, root._replace(row=10_000), key(1))


def test_a_root_with_the_wrong_count_is_corrupt():
    nodes = MemoryNodes()
    root = put_many(nodes, EMPTY, entries(*range(40)))
    for wrong in (0, 39):
        with pytest.raises(Corrupt, match="expected"):
            list(walk(nodes, root._replace(count=wrong)))


def test_a_root_that_only_looks_empty_is_corrupt():
    with pytest.raises(Corrupt):
        list(walk(MemoryNodes(), Root(0, bytes(32), 0)))


def test_a_node_digest_covers_the_digested_part_alone():
    nodes = MemoryNodes()
    one, other = (put_many(nodes, EMPTY, entries(1, row=row)) for row in (1, 2))
    assert nodes.bodies[one.row] != nodes.bodies[other.row]
    assert node_digest(nodes.bodies[one.row]) == node_digest(nodes.bodies[other.row])


def test_a_key_of_the_wrong_size_or_under_another_entry_is_refused():
    nodes = MemoryNodes()
    with pytest.raises(ValueError, match="32 bytes"):
        put_many(nodes, EMPTY, {b"short": None})
    with pytest.raises(ValueError, match="its own"):
        put_many(nodes, EMPTY, {key(1): entry(2)})
    assert nodes.bodies == {}
