"""Tree nodes dropped and made anew: every answer stays what it was (2-architecture, the state tree; ADR 12)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from store_world import BRANCH, PROJECT, StoreWorld, add, correct, edge, retract

from memory_git.lethe import collecting
from memory_git.lethe.store import LetheStore

SIDE = "refs/agents/tester/main"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StoreWorld]:
    world = StoreWorld(tmp_path)
    yield world
    world.close()


def history(world: StoreWorld) -> list[str]:
    """Makes two branches that cross, conflict, relate, part and meet; gives all changesets."""
    names = [world.root]
    head = world.commit(BRANCH, world.root, *(add(f"m/{n}", f"Fact number {n}.") for n in range(60)))
    names.append(head)
    for n in range(30):
        head = world.commit(BRANCH, head, correct(f"m/{n}", f"Fact {n}, corrected."), edge(f"m/{n}", "m/59"))
        names.append(head)
    world.store.create_branch(PROJECT, SIDE, head, "tester")
    left = world.commit(
        BRANCH, head, correct("m/1", title="left"), edge("m/2", "m/59", op_type="remove_relationship")
    )
    right = world.commit(
        SIDE, head, correct("m/1", tags=["right"]), correct("m/3", "Right."), author="tester"
    )
    names += [left, right]
    one = world.commit(BRANCH, [left, right], retract("m/4"))
    two = world.commit(SIDE, [right, left], edge("m/4", "m/5"), author="tester")
    names += [one, two]
    one = world.commit(BRANCH, one, correct("m/6", "One."), edge("m/2", "m/59"))
    two = world.commit(SIDE, two, correct("m/6", "Two."), author="tester")
    names += [one, two]
    last = world.commit(BRANCH, [one, two], correct("m/6", "Both."))
    names += [
        last,
        world.commit(BRANCH, last, edge("m/4", "m/5", op_type="remove_relationship"), edge("m/4", "m/5")),
    ]
    return names


def told(world: StoreWorld, names: list[str]) -> list[Any]:
    """Gives all that is read of states: entries with their provenance, relationships, proofs, differences."""
    store = world.store
    found: list[Any] = []
    for name in names:
        found.append((world.entries(name), world.edges(name), store.diff(name)))
        if name != world.root:
            found.append((store.memory(PROJECT, name, "m/6"), store.diff(name, names[1])))
    return found


def collect(world: StoreWorld, far: int) -> dict[str, Any]:
    """Drops nodes with another distance than the built-in one."""
    return world.store._write(PROJECT, lambda tx: collecting.collect(tx, far)).to_json(PROJECT)


def count(world: StoreWorld, sql: str) -> int:
    connection = apsw.Connection(str(world.path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(connection.execute(sql).fetchone()[0])
    finally:
        connection.close()


@pytest.mark.parametrize("far", [20_000, 40, 5])
def test_every_state_reads_the_same_after_its_nodes_are_dropped(world: StoreWorld, far: int) -> None:
    names = history(world)
    before = told(world, names)
    dropped = collect(world, far)
    assert dropped["changesets"] and dropped["nodes"] and dropped["changesets_kept"] < len(names)
    assert told(world, names) == before
    assert world.faults() == []
    world.restart()
    assert told(world, names[::-1]) == told(world, names[::-1])
    assert told(world, names) == before
