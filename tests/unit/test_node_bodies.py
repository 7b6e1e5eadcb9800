"""Nodes that are kept as what differs from an older one."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from store_world import BRANCH, PROJECT, StoreWorld, add, correct

from memory_git.domain.errors import Corrupt
from memory_git.lethe.node_bodies import MOST_STEPS, packed, unpacked


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StoreWorld]:
    world = StoreWorld(tmp_path)
    yield world
    world.close()


def leaf(entries: int) -> bytes:
    pairs = secrets.token_bytes(64 * entries)
    beside = b"".join(struct.pack(">qqqI", 2**40 + at, 2**40, 2**40, 1) for at in range(entries))
    return bytes((0x11, entries)) + pairs + beside


def test_a_body_comes_back_from_its_base() -> None:
    base = leaf(32)
    body = base[:100] + secrets.token_bytes(32) + base[132:]
    made = packed(body, base)
    assert made is not None
    assert len(made) < len(body) // 10
    assert unpacked(made, base, 1) == body


def test_a_body_that_is_unlike_its_base_is_kept_whole() -> None:
    assert packed(leaf(32), leaf(32)) is None


@pytest.mark.parametrize("hostile", [b"", b"\x00", b"\xff" * 40, secrets.token_bytes(200)])
def test_bytes_that_nobody_packed_are_corrupt(hostile: bytes) -> None:
    with pytest.raises(Corrupt):
        unpacked(hostile, leaf(3), 7)


def test_a_packed_body_that_is_cut_or_swells_is_corrupt() -> None:
    base = leaf(32)
    made = packed(base[:-1] + b"x", base)
    assert made is not None
    with pytest.raises(Corrupt):
        unpacked(made[:-3], base, 7)
    swelling = packed(b"\0" * 100_000, base)
    assert swelling is not None
    with pytest.raises(Corrupt):
        unpacked(swelling, base, 7)


def test_no_more_than_so_many_nodes_are_read_below_one(world: StoreWorld) -> None:
    head = world.commit(BRANCH, world.root, *(add(f"m{number}", f"text {number}") for number in range(100)))
    for number in range(3 * MOST_STEPS):
        head = world.commit(BRANCH, head, correct("m1", f"text of version {number}"))
    world.restart()
    connection = apsw.Connection(str(world.path))
    steps = [int(found) for (found,) in connection.execute("SELECT steps FROM node ORDER BY id")]
    smaller = connection.execute(
        "SELECT count(*) FROM node JOIN node AS base ON base.id = node.base WHERE length(node.body) >= length(base.body)"
        " AND base.steps = 0"
    ).fetchone()
    connection.close()
    assert max(steps) == MOST_STEPS
    assert steps.count(0) >= 3
    assert smaller == (0,)
    shown = world.store.memory(PROJECT, head, "m1")
    assert shown["record"]["content"] == f"text of version {3 * MOST_STEPS - 1}"
    assert world.faults() == []


def test_what_a_kept_node_is_based_on_is_not_dropped(world: StoreWorld) -> None:
    head = world.commit(BRANCH, world.root, *(add(f"m{number}", f"text {number}") for number in range(100)))
    for number in range(5):
        head = world.commit(BRANCH, head, correct("m1", f"text of version {number}"))
    world.store.collect_nodes(PROJECT)
    world.restart()
    assert world.store.memory(PROJECT, head, "m1")["record"]["content"] == "text of version 4"
    assert world.faults() == []
