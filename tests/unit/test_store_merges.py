"""Two-parent merges in the store, row by row: each fault that was found here has a test that names it (4-history, three-way merge)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_world import BRANCH, PROJECT, StoreWorld, add, correct, edge, retract

from memory_git.domain.errors import Clash, Invalid

SIDE = "refs/agents/tester/main"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StoreWorld]:
    made = StoreWorld(tmp_path)
    yield made
    assert made.faults() == []
    made.close()


@pytest.fixture
def base(world: StoreWorld) -> str:
    return world.commit(BRANCH, world.root, add("a", "one"), add("b", "two"), edge("a", "b"))


def forked(world: StoreWorld, base: str, *left: object, right: object = ()) -> tuple[str, str]:
    """Gives two children of a changeset: ops on the first side, and on the second."""
    return (
        world.commit(BRANCH, base, *left),  # type: ignore[arg-type]
        world.commit(SIDE, base, *right),  # type: ignore[misc]
    )


def test_a_memory_merged_field_by_field_and_changed_by_an_op_has_one_version_that_follows_both_sides(
    world: StoreWorld, base: str
) -> None:
    left, right = forked(world, base, correct("a", title="t"), right=[correct("a", tags=["x"])])
    merged = world.commit(BRANCH, [left, right], correct("a", scope="net"))
    one = world.store.memory(PROJECT, merged, "a")
    assert (one["record"]["title"], one["record"]["tags"], one["record"]["scope"]) == ("t", ["x"], "net")
    assert (one["version"], one["changed_by"]) == (3, merged)
    versions = world.store.memory_history(PROJECT, merged, "a")["versions"]
    assert [item["changeset_id"] for item in versions] == [merged, right, left, base]


def test_a_memory_merged_field_by_field_alone_has_a_version_without_an_op(
    world: StoreWorld, base: str
) -> None:
    left, right = forked(world, base, correct("a", title="t"), right=[correct("a", tags=["x"])])
    merged = world.commit(BRANCH, [left, right])
    (item,) = [
        item for item in world.store.diff(merged, left)["corrections_proposed"] if item["memory_id"] == "a"
    ]
    assert (item["changeset_id"], item["op_type"]) == (merged, None)
    assert world.store.memory(PROJECT, merged, "a")["version"] == 3


def test_a_settled_conflict_follows_both_sides(world: StoreWorld, base: str) -> None:
    left, right = forked(world, base, correct("a", "left"), right=[correct("a", "right")])
    with pytest.raises(Clash) as clash:
        world.commit(BRANCH, [left, right])
    assert [(item["memory_id"], item["fields"]) for item in clash.value.facts["unsettled"]] == [
        ("a", ["content"])
    ]
    with pytest.raises(Clash):
        world.commit(BRANCH, [left, right], {
            "op_type": "attach_evidence", "target_event_id": "a", "payload": {"note": "n"},
        })  # fmt: skip
    merged = world.commit(BRANCH, [left, right], correct("a", "both"))
    versions = world.store.memory_history(PROJECT, merged, "a")["versions"]
    assert [item["record"]["content"] for item in versions] == ["both", "right", "left", "one"]


def test_the_same_change_on_both_sides_is_the_first_parents_with_the_greater_version(
    world: StoreWorld, base: str
) -> None:
    left = world.commit(BRANCH, base, correct("a", "same"))
    between = world.commit(SIDE, base, correct("a", "other"))
    right = world.commit(SIDE, between, correct("a", "same"))
    merged = world.commit(BRANCH, [left, right])
    one = world.store.memory(PROJECT, merged, "a")
    assert (one["changed_by"], one["version"]) == (left, 3)


def test_a_version_in_a_history_has_the_number_that_its_changesets_state_gives_it(
    world: StoreWorld, base: str
) -> None:
    left = world.commit(BRANCH, base, correct("a", "same"))
    right = world.commit(SIDE, world.commit(SIDE, base, correct("a", "other")), correct("a", "same"))
    merged = world.commit(BRANCH, [left, right])
    later = world.commit(BRANCH, world.commit(BRANCH, merged, correct("a", "five")), correct("a", "six"))
    versions = world.store.memory_history(PROJECT, later, "a")["versions"]
    assert [(item["record"]["content"], item["version"]) for item in versions] == [
        ("six", 5),
        ("five", 4),
        ("same", 3),
        ("other", 2),
        ("same", 2),
        ("one", 1),
    ]


def test_a_side_that_changed_and_changed_back_does_not_undo_the_other(world: StoreWorld, base: str) -> None:
    left = world.commit(BRANCH, world.commit(BRANCH, base, correct("a", "else")), correct("a", "one"))
    right = world.commit(SIDE, base, correct("a", "better"))
    for parents in ([left, right], [right, left]):
        merged = world.loose(parents)
        assert world.records(merged)["a"]["content"] == "better"


def test_a_relationship_taken_away_on_one_side_stays_away_though_the_other_took_it_away_and_made_it_again(
    world: StoreWorld, base: str
) -> None:
    gone = edge("a", "b", op_type="remove_relationship")
    left = world.commit(BRANCH, base, gone)
    right = world.commit(SIDE, world.commit(SIDE, base, gone), edge("a", "b"))
    for parents in ([left, right], [right, left]):
        assert world.edges(world.loose(parents)) == []
    assert world.store.plan_merge(PROJECT, right, left)["diff"]["relationships_removed"]


def test_a_relationship_made_on_both_sides_stands_once(world: StoreWorld, base: str) -> None:
    left, right = forked(world, base, edge("b", "a"), right=[edge("b", "a")])
    merged = world.commit(BRANCH, [left, right])
    assert world.edges(merged) == [("a", "about", "b"), ("b", "about", "a")]
    again = world.commit(BRANCH, merged, edge("b", "a", op_type="remove_relationship"))
    assert world.edges(again) == [("a", "about", "b")]


def crossed(world: StoreWorld, one: str, two: str) -> tuple[str, str]:
    """Gives two changesets that each merged the same two, each its own way: what merges them has two bases."""
    return world.commit(BRANCH, [one, two]), world.commit(SIDE, [two, one])


def test_a_criss_cross_whose_bases_disagree_leaves_the_key_to_the_sides(world: StoreWorld, base: str) -> None:
    one, two = forked(world, base, correct("a", "left"), right=[correct("a", "right")])
    left = world.commit(BRANCH, [one, two], correct("a", "L"))
    right = world.commit(SIDE, [two, one], correct("a", "R"))
    assert world.store.merge_base(PROJECT, left, right) == sorted([one, two])
    with pytest.raises(Clash, match="differently"):
        world.loose([left, right])
    assert world.records(world.loose([left, right], correct("a", "M")))["a"]["content"] == "M"
    same = world.commit(SIDE, right, correct("a", "L"))
    assert world.records(world.loose([left, same]))["a"]["content"] == "L"


def test_a_merge_that_comes_back_to_a_virtual_base_stores_no_scratch_node(
    world: StoreWorld, base: str
) -> None:
    """Found by the state machine: the tries' root was a node of the merged bases, which are not stored."""
    one, two = forked(world, base, edge("b", "a"), right=[edge("a", "b", "needs")])
    left, right = crossed(world, one, two)
    kinds = [("a", "needs", "b"), ("b", "about", "a")]
    left = world.commit(BRANCH, left, edge("a", "b", "more"))
    left = world.commit(BRANCH, left, edge("a", "b", "more", "remove_relationship"))
    right = world.commit(SIDE, right, edge("b", "a", "more"))
    right = world.commit(SIDE, right, edge("b", "a", "more", "remove_relationship"))
    merged = world.commit(BRANCH, [left, right])
    world.restart()
    assert world.edges(merged) == [("a", "about", "b"), *kinds]


def test_a_ladder_of_crossing_merges_is_merged_however_long_it_is(world: StoreWorld, base: str) -> None:
    """The bases of the bases were merged by recursion: a thousand steps ended in a stack overflow."""
    left, right = forked(world, base, correct("a", title="t"), right=[correct("b", title="t")])
    for _ in range(60):
        left, right = world.loose([left, right]), world.loose([right, left])
    left = world.loose(left, correct("a", scope="x"))
    right = world.loose(right, correct("b", scope="y"))
    merged = world.loose([left, right])
    found = world.records(merged)
    assert (found["a"]["scope"], found["b"]["scope"], found["a"]["title"]) == ("x", "y", "t")


def test_a_merge_of_merges_keeps_what_each_brought(world: StoreWorld, base: str) -> None:
    heads = [world.commit(f"refs/topics/t{n}", base, add(f"m{n}", f"text {n}")) for n in range(4)]
    first, second = world.loose(heads[:2]), world.loose(heads[2:])
    whole = world.loose([first, second])
    assert sorted(world.records(whole)) == ["a", "b", "m0", "m1", "m2", "m3"]
    assert sorted(item["memory_id"] for item in world.store.diff(whole, base)["memories_added"]) == [
        f"m{n}" for n in range(4)
    ]


def test_a_deletion_on_a_branch_is_applied_though_the_base_was_changed_and_changed_back(
    world: StoreWorld, base: str
) -> None:
    """12-lessons: a merge answered success while the deletion was not applied."""
    said = {"source_trust": "human"}
    start = world.commit(BRANCH, base, add("c", "one", **said))
    gone = world.commit(SIDE, start, {**retract("c"), "payload": {**retract("c")["payload"], **said}})
    main = world.commit(BRANCH, start, correct("c", "else", **said))
    main = world.commit(BRANCH, main, correct("c", "one", **said))
    merged = world.commit(BRANCH, [main, gone])
    assert world.records(merged)["c"]["status"] == "retracted"
    assert not any(value for value in world.store.diff(merged, gone).values() if isinstance(value, list))


def test_a_plan_for_what_is_there_already_would_change_nothing(world: StoreWorld, base: str) -> None:
    """The plan of an ancestor told the difference backwards."""
    head = world.commit(BRANCH, base, add("c", "three"))
    plan = world.store.plan_merge(PROJECT, head, base)
    assert plan["strategy"] == "up_to_date"
    assert not any(value for value in plan["diff"].values() if isinstance(value, list))


def test_a_rebase_over_a_later_change_is_refused_with_the_fields(world: StoreWorld, base: str) -> None:
    """A replay put the older value over what the target had changed since."""
    left, right = forked(world, base, correct("a", "left"), right=[correct("a", "right")])
    plan = world.store.plan_rebase(PROJECT, right, left)
    assert [(item["memory_id"], item["fields"]) for item in plan["refused"]] == [("a", ["content"])]
    picked = world.store.plan_cherry_pick(PROJECT, [{"changeset_id": right, "ordinal": 0}], left)
    assert [(item["memory_id"], item["fields"]) for item in picked["refused"]] == [("a", ["content"])]


def test_a_changeset_with_one_parent_has_no_second_to_keep(world: StoreWorld, base: str) -> None:
    with pytest.raises(Invalid) as invalid:
        world.store.plan_revert(PROJECT, base, base, 2)
    assert invalid.value.code == "not_a_merge"
    assert world.store.plan_revert(PROJECT, base, base, 1)["steps"]


def test_three_bases_that_disagree_leave_the_key_to_the_sides(world: StoreWorld, base: str) -> None:
    """The third base met a merge of the first two that lacked the key, which counted as corruption."""
    heads = [world.loose(base, correct("a", f"text {n}"), author=f"p{n}") for n in range(3)]
    sides = []
    for order in ([0, 1, 2], [2, 0, 1]):
        met = world.loose([heads[order[0]], heads[order[1]]], correct("a", "text"))
        sides.append(world.loose([met, heads[order[2]]], correct("a", "text of all", title=str(order[0]))))
    assert world.store.merge_base(PROJECT, *sides) == sorted(heads)
    with pytest.raises(Clash) as clash:
        world.loose(sides)
    assert [item["fields"] for item in clash.value.facts["unsettled"]] == [["title"]]
    [conflict] = clash.value.facts["conflicts"]
    assert (conflict["conflict_type"], conflict["detail"]["fields"]) == ("concurrent_change", ["title"])
    assert world.records(world.loose(sides, correct("a", title="x")))["a"]["title"] == "x"


def test_a_memory_that_both_sides_changed_can_be_erased_after_the_merge_and_not_before(
    tmp_path: Path,
) -> None:
    """`verify` merged it again, without its text, and called every changeset after it corrupt."""
    world = StoreWorld(tmp_path)
    start = world.commit(BRANCH, world.root, add("a", "one"), add("b", "two"))
    left, right = forked(world, start, correct("a", title="t"), right=[correct("a", tags=["x"])])
    merged = world.commit(BRANCH, [left, right], correct("b", "three"))
    other = world.loose(right, correct("a", tags=["y"]))
    world.store.redact(PROJECT, "a", principal="officer", reason="asked for")
    assert world.faults() == []
    world.commit(BRANCH, merged, correct("b", "four"))
    with pytest.raises(Clash) as clash:
        world.commit(BRANCH, [world.head(BRANCH), other])
    assert clash.value.code == "source_redacted"
    assert world.faults() == []
    world.close()


def test_what_an_op_joins_is_erased_together_though_the_record_does_not_say_so_any_more(
    tmp_path: Path,
) -> None:
    """A corrected id that is added again in the same changeset forgets its successor, which holds the same text."""
    world = StoreWorld(tmp_path)
    start = world.commit(BRANCH, world.root, add("a", "the text"))
    again = {**correct("a", "the text, corrected"), "resulting_event_id": "c"}
    world.commit(BRANCH, start, again, add("a", "a new beginning"))
    erased = world.store.redact(PROJECT, "a", principal="officer", reason="asked for")["memory_ids"]
    assert erased == ["a", "c"]
    assert world.faults() == []
    world.close()


def test_what_was_a_duplicate_of_a_retracted_memory_verifies_when_that_one_is_erased(tmp_path: Path) -> None:
    """What stood for the erased memory was not retracted, so a second canonical memory was refused in the replay."""
    world = StoreWorld(tmp_path)
    duplicate = {"op_type": "mark_duplicate", "payload": {"duplicate_id": "x", "duplicate_of": "a"}}
    head = world.commit(BRANCH, world.root, add("a", "one"), add("b", "two"), add("x", "three"), duplicate)
    other = {"op_type": "mark_duplicate", "payload": {"duplicate_id": "x", "duplicate_of": "b"}}
    back = {
        "op_type": "mark_duplicate",
        "payload": {"duplicate_id": "a", "duplicate_of": "b", "op_note": "n"},
    }
    head = world.commit(BRANCH, head, retract("a"), other)
    world.commit(BRANCH, head, {
        "op_type": "set_status", "target_event_id": "a", "payload": {"status": "active", "revive": True},
    }, back)  # fmt: skip
    world.store.redact(PROJECT, "a", principal="officer", reason="asked for")
    assert world.faults() == []
    world.close()


def test_an_erased_memory_does_not_come_back_by_its_id_on_a_branch_that_never_held_it(tmp_path: Path) -> None:
    """It did, and `verify` called the store corrupt from then on: an erased memory's version had a body."""
    world = StoreWorld(tmp_path)
    world.commit(BRANCH, world.root, add("a", "Secret."), add("b", "Plain."))
    world.store.redact(PROJECT, "a", principal="officer", reason="asked for")
    elsewhere = "refs/topics/elsewhere"
    by_result = {"op_type": "add_memory", "resulting_event_id": "a", "payload": {"content": "Secret."}}
    for op in (add("a", "Secret."), by_result):
        with pytest.raises(Clash) as clash:
            world.commit(elsewhere, world.root, op)
        assert clash.value.code == "source_redacted"
    world.commit(elsewhere, world.root, add("b", "Of another's own."))
    assert world.faults() == []
    world.close()


def test_a_duplicate_of_what_was_erased_can_have_another_successor(tmp_path: Path) -> None:
    """It never could again: no op may name an erased memory, so nobody can retract the one it had."""
    world = StoreWorld(tmp_path)
    first, second = (
        {"op_type": "mark_duplicate", "target_event_id": "a", "resulting_event_id": name, "payload": {}}
        for name in ("b", "c")
    )
    head = world.commit(BRANCH, world.root, add("a", "One."), add("b", "One, erased."), add("c", "Three."))
    head = world.commit(BRANCH, head, first)
    with pytest.raises(Invalid):
        world.loose(head, second)
    world.store.redact(PROJECT, "b", principal="officer", reason="asked for")
    left, right = forked(world, head, second, right=[correct("c", "Four.")])
    merged = world.commit(BRANCH, [left, right])
    assert world.records(merged)["a"]["lineage"] == {"duplicate_of": "c"}
    assert world.faults() == []
    world.close()


def test_a_revert_that_would_touch_an_erased_memory_is_refused_by_name(world: StoreWorld) -> None:
    made = world.commit(BRANCH, world.root, add("x", "one"), add("y", "two"))
    joined = world.commit(BRANCH, made, edge("x", "y"))
    world.store.redact(PROJECT, "x", principal="officer", reason="asked for")
    plan = world.store.plan_revert(PROJECT, joined, joined)
    assert [(item["ordinal"], item["reason"]) for item in plan["refused"]] == [
        (0, "remove_relationship names a memory that is erased")
    ]
