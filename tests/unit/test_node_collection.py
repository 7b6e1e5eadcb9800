"""Tree nodes dropped and made anew: every answer stays what it was (2-architecture, the state tree; ADR 12)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from store_world import BRANCH, PROJECT, StoreWorld, add, correct, edge, retract

from memory_git.domain.errors import Corrupt
from memory_git.lethe import collecting, redaction
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


@pytest.mark.parametrize("far", [20_000, 80, 12])
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


def test_what_can_go_is_told_before_it_goes_and_goes_once(world: StoreWorld) -> None:
    history(world)
    planned = world.store.plan_collection(PROJECT)
    assert planned["nodes"] and planned["node_bytes"]
    assert count(world, "SELECT count(*) FROM changeset WHERE memories_count AND NOT memories_row") == 0
    assert world.store.collect_nodes(PROJECT) == planned
    again = world.store.collect_nodes(PROJECT)
    assert (again["changesets"], again["nodes"], again["nodes_kept"]) == (0, 0, planned["nodes_kept"])


def test_heads_partings_and_open_conflicts_keep_their_nodes(world: StoreWorld) -> None:
    first = world.commit(BRANCH, world.root, add("a", "The port is 80."), add("b", "Tabs."))
    second = world.commit(BRANCH, first, add("c", "Spaces."))
    world.merge(second)
    parting = world.commit(BRANCH, second, correct("b", tags=["x"]))
    passed = world.commit(BRANCH, parting, correct("b", tags=["y"]))
    world.merge(passed)
    left, right = (world.loose(parting, correct("b", text)) for text in ("Two tabs.", "Three tabs."))
    found = world.store.plan_merge(PROJECT, left, right)["conflicts"]
    assert world.store.persist_conflicts(PROJECT, "018f0000-0000-7000-8000-0000000000bb", found)
    world.commit(SIDE, second, add("d", "Left here."), author="tester")
    world.commit(BRANCH, passed, add("e", "The end."))
    world.store.collect_nodes(PROJECT)
    with world.store._view(PROJECT) as view:
        assert collecting.dropped_changesets(view) == [first]
    assert world.faults() == []


def test_merges_of_histories_that_cross_keep_their_nodes(world: StoreWorld) -> None:
    """What a merged base made of an erased memory can't be told any more: their states could not be made anew."""
    names = history(world)
    crossing = names[-2]
    assert len(world.store.merge_base(PROJECT, *world.store.get_changeset(crossing)["parent_ids"])) == 2
    world.commit(BRANCH, names[-1], add("later", "Later."))
    world.store.redact(PROJECT, "m/6", principal="officer", reason="asked")
    collect(world, 20_000)
    with world.store._view(PROJECT) as view:
        dropped = collecting.dropped_changesets(view)
    assert crossing not in dropped
    assert names[-1] in dropped
    assert world.faults() == []


def test_nodes_that_no_state_reaches_go_and_a_row_is_never_named_twice(world: StoreWorld) -> None:
    names = history(world)
    collect(world, 12)
    with world.store._view(PROJECT) as view:
        assert world.store.rebuild_nodes(PROJECT, collecting.dropped_changesets(view)[3]) == 1
    greatest = count(world, "SELECT max(id) FROM node")
    nodes = count(world, "SELECT count(*) FROM node")
    collect(world, 12)
    assert count(world, "SELECT count(*) FROM node") < nodes
    assert count(world, "SELECT max(id) FROM node") == greatest
    assert world.faults() == []
    world.restart()
    world.commit(BRANCH, names[-1], add("new", "After it all."))
    assert count(world, "SELECT min(id) FROM node WHERE id > " + str(greatest)) == greatest + 1


def test_dropped_nodes_are_stored_again_under_rows_of_their_own(world: StoreWorld) -> None:
    names = history(world)
    before = told(world, names)
    dropped = collect(world, 20_000)["changesets"]
    greatest = count(world, "SELECT max(id) FROM node")
    calls: list[tuple[str, int, int]] = []
    assert world.store.rebuild_nodes(PROJECT, None, lambda *told: calls.append(told)) == dropped
    assert calls == [("changesets", 0, dropped)]
    assert count(world, "SELECT count(*) FROM changeset WHERE memories_count AND NOT memories_row") == 0
    assert count(world, "SELECT min(memories_row) FROM changeset WHERE memories_row > " + str(greatest))
    assert told(world, names) == before
    assert world.faults() == []
    assert world.store.rebuild_nodes(PROJECT) == world.store.rebuild_nodes(PROJECT, names[-1]) == 0


def test_work_goes_on_from_a_changeset_whose_nodes_are_dropped(world: StoreWorld) -> None:
    names = history(world)
    collect(world, 20_000)
    with world.store._view(PROJECT) as view:
        old, older = collecting.dropped_changesets(view)[12], collecting.dropped_changesets(view)[4]
    grown = world.commit("refs/topics/old", old, correct("m/50", "From the past."), add("z", "New."))
    fork = world.commit("refs/topics/older", older, correct("m/51", "From further back."))
    merged = world.commit("refs/topics/old", [grown, fork])
    late = world.commit(BRANCH, [names[-1], merged])
    records = world.records(late)
    assert records["m/50"]["content"] == "From the past."
    assert records["m/51"]["content"] == "From further back."
    assert records["m/29"] == world.records(names[-1])["m/29"]
    assert world.store.plan_revert(PROJECT, old, late)["refused"] == []
    assert world.store.plan_rebase(PROJECT, grown, names[-1])["steps"]
    assert world.faults() == []
    world.store.rebuild_nodes(PROJECT)
    assert world.faults() == []


def test_an_erased_memory_does_not_hinder_its_states_from_being_made_anew(world: StoreWorld) -> None:
    names = history(world)
    world.store.redact(PROJECT, "m/6", principal="officer", reason="asked")
    before = [(world.entries(name), world.edges(name)) for name in names]
    collect(world, 10)
    assert [(world.entries(name), world.edges(name)) for name in names] == before
    assert world.faults() == []
    world.store.redact(PROJECT, "m/1", principal="officer", reason="asked")
    assert world.faults() == []
    world.store.rebuild_nodes(PROJECT)
    assert world.faults() == []


def test_another_process_that_has_the_store_open_reads_on(world: StoreWorld) -> None:
    names = history(world)
    other = LetheStore.open(world.path, merge_keys=None)
    try:
        request = {"ref_name": BRANCH, "head_changeset_id": names[9], "limit": 100}
        manifest = other.context(PROJECT, {**request, "create_manifest": True})["manifest_id"]
        pinned = other.reproduce(manifest)
        collect(world, 20_000)
        assert other.reproduce(manifest) == pinned
        assert other.context(PROJECT, {"ref_name": BRANCH, "limit": 100})["total_active"] == 59
        assert other.context(PROJECT, request)["total_active"] == 60
    finally:
        other.close()
    recovering = LetheStore.open(world.path, merge_keys=None, recovery_readonly=True)
    try:
        assert recovering.reproduce(manifest) == pinned
    finally:
        recovering.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE version SET record_digest = zeroblob(32) WHERE id = (SELECT max(id) - 5 FROM version)",
        "DELETE FROM edge WHERE id = (SELECT min(id) + 7 FROM edge)",
        "UPDATE changeset SET memories_digest = zeroblob(32) WHERE NOT memories_row AND memories_count",
    ],
    ids=["another digest of a version", "a relationship that is gone", "another root"],
)
def test_a_state_that_comes_out_another_is_never_served(world: StoreWorld, damage: str) -> None:
    names = history(world)
    collect(world, 20_000)
    connection = apsw.Connection(str(world.path))
    connection.execute(damage)
    connection.close()
    world.restart()
    assert world.faults()
    with pytest.raises(Corrupt):
        told(world, names)
    with pytest.raises(Corrupt):
        world.store.rebuild_nodes(PROJECT)


def test_a_file_becomes_smaller_when_it_is_compacted(world: StoreWorld) -> None:
    names = history(world)
    world.restart()
    before = world.path.stat().st_size
    found = world.store.collect_nodes(PROJECT, compact=True)
    assert before - world.path.stat().st_size > found["node_bytes"] / 2
    assert world.entries(names[7])


def test_a_state_made_anew_is_made_again_when_the_stored_one_below_it_is_dropped_too(
    world: StoreWorld,
) -> None:
    head = world.commit(BRANCH, world.root, *(add(f"m{n}", f"Fact {n}.") for n in range(300)))
    heads = [head := world.commit(BRANCH, head, correct(f"m{n}", f"New {n}.")) for n in range(14)]
    world.store.create_branch(PROJECT, SIDE, heads[10], "tester")
    world.store.collect_nodes(PROJECT)
    for n in range(10):
        head = world.commit(BRANCH, head, *(correct(f"m{m}", f"Newer {n}, {m}.") for m in range(300)))
    before = world.entries(heads[12])
    world.store.advance_ref(PROJECT, SIDE, heads[10], head, "tester")
    world.store.collect_nodes(PROJECT)
    world.store._caches.nodes.clear()
    assert world.entries(heads[12]) == before


def test_a_reader_of_before_keeps_no_claim_of_a_memory_that_was_erased_meanwhile(world: StoreWorld) -> None:
    head = world.commit(BRANCH, world.root, add("m1", "The service listens on port 8080."))
    world.restart()
    with world.store._view(PROJECT) as old:
        entry = old.state(head).entry("m1")
        assert entry is not None
        world.store._write(PROJECT, lambda tx: redaction.redact(tx, "m1", "officer", "asked"))
        with world.store._view(PROJECT):
            assert old.claims(entry)
    with world.store._view(PROJECT) as new:
        assert new.claims(entry) == frozenset()
