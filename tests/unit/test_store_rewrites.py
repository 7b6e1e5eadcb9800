"""Revert, cherry-pick and rebase of stored history: what is taken back or copied, and what is refused by name (4-history, shapes)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from store_world import BRANCH, PROJECT, StoreWorld, add, correct, edge, retract

from memory_git.domain.errors import Invalid, NotFound

Json = dict[str, Any]
SIDE = "refs/agents/tester/main"
ABSENT = "018f0000-0000-7000-8000-000000000000"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StoreWorld]:
    """Gives a store whose history verifies in the end."""
    made = StoreWorld(tmp_path)
    yield made
    assert made.faults() == []
    made.close()


def commit_plan(world: StoreWorld, plan: Json, ref: str = BRANCH) -> str:
    """Commits every step of a plan that refuses nothing, and gives the last changeset."""
    assert plan["refused"] == []
    head = str(plan["parent_changeset_id"])
    for step in plan["steps"]:
        head = world.commit(ref, head, *step["ops"], message=step["message"], create_ref_if_missing=True)
    return head


def texts(world: StoreWorld, head: str) -> dict[str, str]:
    """Gives the content of what is active at a head."""
    return {name: item["content"] for name, item in world.records(head).items() if item["status"] == "active"}


@pytest.fixture
def mainline(world: StoreWorld) -> list[str]:
    """Gives five heads of a mainline; the fourth is a merge of a side branch that forked at the first."""
    one = world.commit(BRANCH, world.root, add("a", "a1"), add("b", "b1"))
    side = world.commit(SIDE, one, add("s", "s1"), correct("b", "b of the side"))
    two = world.commit(BRANCH, one, correct("a", "a2"), add("c", "c1"))
    three = world.commit(BRANCH, two, correct("a", "a3"), edge("a", "c"))
    four = world.commit(BRANCH, [three, side])
    five = world.commit(BRANCH, four, add("d", "d1"))
    return [one, two, three, four, five]


# a range


def test_a_range_takes_back_all_that_the_mainline_gained_merges_included(
    world: StoreWorld, mainline: list[str]
) -> None:
    one, _, _, four, five = mainline
    plan = world.store.plan_revert(PROJECT, four, five, from_changeset_id=one)
    assert len(plan["steps"]) == 1
    head = commit_plan(world, plan)
    assert texts(world, head) == {"a": "a1", "b": "b1", "d": "d1"}
    assert world.edges(head) == []
    assert world.store.is_ancestor(PROJECT, four, head)
    shown = world.store.get_changeset(head)
    assert shown["message"] == f"Revert of {one}..{four}"


def test_each_op_of_a_range_names_the_changeset_that_it_takes_back(
    world: StoreWorld, mainline: list[str]
) -> None:
    one, two, three, four, five = mainline
    (step,) = world.store.plan_revert(PROJECT, four, five, from_changeset_id=one)["steps"]
    named = {op["target_event_id"]: op["payload"]["source_changeset_id"] for op in step["ops"][:-1]}
    side = world.store.get_changeset(four)["parent_ids"][1]
    assert named == {"a": three, "b": side, "c": two, "s": side}
    assert step["ops"][-1]["payload"]["source_changeset_id"] == three


def test_a_relationship_that_a_range_took_away_comes_back_and_names_where_it_went(world: StoreWorld) -> None:
    one = world.commit(BRANCH, world.root, add("a", "a1"), add("b", "b1"), edge("a", "b"))
    two = world.commit(BRANCH, one, edge("a", "b", op_type="remove_relationship"))
    three = world.commit(BRANCH, two, correct("a", "a2"))
    plan = world.store.plan_revert(PROJECT, three, three, from_changeset_id=one)
    assert plan["steps"][0]["ops"][-1]["payload"] == {"kind": "about", "source_changeset_id": two}
    assert world.edges(commit_plan(world, plan)) == [("a", "about", "b")]


def test_a_range_is_all_or_nothing_and_names_what_was_changed_since(
    world: StoreWorld, mainline: list[str]
) -> None:
    one, two, three, _, five = mainline
    plan = world.store.plan_revert(PROJECT, two, five, from_changeset_id=one)
    (refusal,) = plan["refused"]
    assert (refusal["memory_id"], refusal["fields"]) == ("a", ["content"])
    assert refusal["reason"] == "it was changed again since"
    assert refusal["source_changeset_id"] == two
    assert world.store.plan_revert(PROJECT, three, five, from_changeset_id=two)["refused"] == []


def test_a_range_of_one_changeset_takes_back_what_that_changeset_does(
    world: StoreWorld, mainline: list[str]
) -> None:
    _, two, three, _, five = mainline
    one_of = world.store.plan_revert(PROJECT, three, five)["steps"][0]["ops"]
    assert world.store.plan_revert(PROJECT, three, five, from_changeset_id=two)["steps"][0]["ops"] == one_of


def test_a_range_begins_on_the_line_of_first_parents_before_its_end(
    world: StoreWorld, mainline: list[str]
) -> None:
    one, two, _, four, five = mainline
    side = world.store.get_changeset(four)["parent_ids"][1]
    for start, end in ((two, one), (two, two), (side, five)):
        with pytest.raises(Invalid) as refusal:
            world.store.plan_revert(PROJECT, end, five, from_changeset_id=start)
        assert refusal.value.code == "bad_range"
    with pytest.raises(Invalid) as refusal:
        world.store.plan_revert(PROJECT, four, five, 1, from_changeset_id=one)
    assert refusal.value.code == "bad_range"
    with pytest.raises(NotFound):
        world.store.plan_revert(PROJECT, four, five, from_changeset_id=ABSENT)


def test_a_reverted_range_comes_back_by_a_revert_of_the_revert(
    world: StoreWorld, mainline: list[str]
) -> None:
    one, _, _, four, five = mainline
    before = texts(world, five)
    head = commit_plan(world, world.store.plan_revert(PROJECT, four, five, from_changeset_id=one))
    again = commit_plan(world, world.store.plan_revert(PROJECT, head, head))
    assert texts(world, again) == before
    assert world.edges(again) == [("a", "about", "c")]


# a merge


def test_a_merge_is_taken_back_against_the_chosen_parent(world: StoreWorld, mainline: list[str]) -> None:
    _, _, three, four, five = mainline
    head = commit_plan(world, world.store.plan_revert(PROJECT, four, five, 1))
    assert texts(world, head) == {**texts(world, three), "d": "d1"}
    other = world.store.plan_revert(PROJECT, four, five, 2)
    assert texts(world, commit_plan(world, other, "refs/topics/other")) == {
        "a": "a1",
        "b": "b of the side",
        "s": "s1",
        "d": "d1",
    }


def test_a_correction_into_another_memory_comes_back_as_one(world: StoreWorld) -> None:
    one = world.commit(BRANCH, world.root, add("a", "a1"))
    two = world.commit(BRANCH, one, {**correct("a", "n1"), "resulting_event_id": "n"})
    taken = commit_plan(world, world.store.plan_revert(PROJECT, two, two))
    assert texts(world, taken) == {"a": "a1"}
    again = world.records(commit_plan(world, world.store.plan_revert(PROJECT, taken, taken)))
    assert (again["a"]["status"], again["a"]["lineage"]) == ("corrected", {"corrected_by": "n"})
    assert (again["n"]["status"], again["n"]["lineage"]) == ("active", {"corrected_from": ["a"]})


# cherry-pick


def test_ops_of_several_changesets_are_picked_in_the_order_of_history(world: StoreWorld) -> None:
    base = world.commit(BRANCH, world.root, add("a", "a1"))
    one = world.commit(SIDE, base, add("x", "x1"), add("y", "y1"))
    two = world.commit(SIDE, one, correct("x", "x2"), add("z", "z1"))
    selected = [{"changeset_id": two, "ordinal": 0}, {"changeset_id": one, "ordinal": 0}]
    plan = world.store.plan_cherry_pick(PROJECT, selected, base)
    (step,) = plan["steps"]
    assert [op["payload"]["cherrypicked_from"] for op in step["ops"]] == [one, two]
    assert texts(world, commit_plan(world, plan)) == {"a": "a1", "x": "x2"}


def test_a_pick_whose_needs_are_absent_is_refused_with_them_and_passes_once_they_are_selected(
    world: StoreWorld,
) -> None:
    base = world.commit(BRANCH, world.root, add("a", "a1"))
    one = world.commit(SIDE, base, add("x", "x1"), edge("x", "a"), retract("x"))
    selected = [{"changeset_id": one, "ordinal": 1}]
    (refusal,) = world.store.plan_cherry_pick(PROJECT, selected, base)["refused"]
    assert (refusal["source_changeset_id"], refusal["ordinal"]) == (one, 1)
    assert refusal["needs"] == [{"changeset_id": one, "ordinal": 0}]
    assert "names no memory at this state" in refusal["reason"]
    both = world.store.plan_cherry_pick(PROJECT, [*selected, *refusal["needs"]], base)
    assert world.edges(commit_plan(world, both)) == [("x", "about", "a")]


def test_the_needs_of_a_pick_lie_as_far_back_as_the_branch_goes(world: StoreWorld) -> None:
    base = world.commit(BRANCH, world.root, add("a", "a1"))
    one = world.commit(SIDE, base, add("u", "unrelated"), add("x", "x1"))
    two = world.commit(SIDE, one, {**correct("x", "y1"), "resulting_event_id": "y"})
    three = world.commit(SIDE, two, add("v", "unrelated"))
    four = world.commit(SIDE, three, edge("y", "a"))
    (refusal,) = world.store.plan_cherry_pick(PROJECT, [{"changeset_id": four, "ordinal": 0}], base)[
        "refused"
    ]
    assert refusal["needs"] == [{"changeset_id": one, "ordinal": 1}, {"changeset_id": two, "ordinal": 0}]
    selected = [{"changeset_id": four, "ordinal": 0}, *refusal["needs"]]
    head = commit_plan(world, world.store.plan_cherry_pick(PROJECT, selected, base))
    assert texts(world, head) == {"a": "a1", "y": "y1"}
    assert world.edges(head) == [("y", "about", "a")]


@pytest.mark.parametrize(
    ("selected", "code"),
    [
        ([], "nothing_selected"),
        ([{"changeset_id": "?", "ordinal": "0"}], "bad_selection"),
        ([{"changeset_id": ABSENT, "ordinal": 0}], "changeset_not_found"),
    ],
)
def test_a_selection_is_of_ops_that_are_there(world: StoreWorld, selected: list[Json], code: str) -> None:
    with pytest.raises((Invalid, NotFound)) as refusal:
        world.store.plan_cherry_pick(PROJECT, selected, world.root)
    assert refusal.value.code == code


def test_an_op_beyond_its_changeset_is_not_found(world: StoreWorld) -> None:
    one = world.commit(BRANCH, world.root, add("a", "a1"))
    with pytest.raises(NotFound) as refusal:
        world.store.plan_cherry_pick(PROJECT, [{"changeset_id": one, "ordinal": 1}], one)
    assert refusal.value.code == "op_not_found"


# rebase


def test_a_rebase_replays_what_the_branch_has_beyond_its_new_base_and_names_the_originals(
    world: StoreWorld,
) -> None:
    base = world.commit(BRANCH, world.root, add("a", "a1"))
    one = world.commit(SIDE, base, add("x", "x1"))
    two = world.commit(SIDE, one, correct("x", "x2"), author="tester")
    onto = world.commit(BRANCH, base, correct("a", "a2"))
    plan = world.store.plan_rebase(PROJECT, two, onto)
    assert [step["source_changeset_id"] for step in plan["steps"]] == [one, two]
    head = commit_plan(world, plan, "refs/agents/tester/main-rebased")
    assert texts(world, head) == {"a": "a2", "x": "x2"}
    assert world.store.authors(PROJECT, head, onto) == ["builder", "tester"]
    assert world.store.plan_rebase(PROJECT, head, onto)["steps"] != []
    assert world.store.plan_rebase(PROJECT, onto, head)["steps"] == []


def test_a_rebase_of_a_branch_that_merged_brings_the_ops_of_both_lines(world: StoreWorld) -> None:
    base = world.commit(BRANCH, world.root, add("a", "a1"), add("b", "b1"))
    one = world.commit(SIDE, base, correct("a", title="t"))
    two = world.commit("refs/topics/two", base, correct("a", scope="s"))
    merged = world.commit(SIDE, [one, two], correct("b", "b2"))
    onto = world.commit(BRANCH, base, add("c", "c1"))
    head = commit_plan(world, world.store.plan_rebase(PROJECT, merged, onto), "refs/topics/rebased")
    record = world.records(head)["a"]
    assert (record["title"], record["scope"]) == ("t", "s")
    assert texts(world, head) == {"a": "a1", "b": "b2", "c": "c1"}


def test_a_rebase_knows_on_which_merge_an_op_was_made(world: StoreWorld) -> None:
    base = world.commit(BRANCH, world.root, add("a", "a1"), add("b", "b1"))
    one = world.commit(SIDE, base, correct("a", "a2"))
    two = world.commit("refs/topics/two", base, correct("b", "b2"))
    merged = world.commit(SIDE, [one, two], correct("b", "b3"))
    onto = world.commit(BRANCH, base, add("c", "c1"))
    head = commit_plan(world, world.store.plan_rebase(PROJECT, merged, onto), "refs/topics/rebased")
    assert texts(world, head) == {"a": "a2", "b": "b3", "c": "c1"}
    changed = world.commit(BRANCH, onto, correct("b", "accepted"))
    refused = world.store.plan_rebase(PROJECT, merged, changed)["refused"]
    assert {(item["memory_id"], item["source_changeset_id"]) for item in refused} == {("b", two)}


def test_a_pick_out_of_a_merge_is_judged_on_what_it_was_made_on(world: StoreWorld) -> None:
    base = world.commit(BRANCH, world.root, add("a", "a1"), add("b", "b1"))
    one = world.commit(SIDE, base, correct("a", "a2"))
    two = world.commit("refs/topics/two", base, correct("b", "b2"))
    merged = world.commit(SIDE, [one, two], correct("b", "b3"))
    onto = world.commit(BRANCH, base, correct("b", "b2"))
    plan = world.store.plan_cherry_pick(PROJECT, [{"changeset_id": merged, "ordinal": 0}], onto)
    assert texts(world, commit_plan(world, plan)) == {"a": "a1", "b": "b3"}
    other = world.store.plan_cherry_pick(PROJECT, [{"changeset_id": merged, "ordinal": 0}], base)
    assert [item["fields"] for item in other["refused"]] == [["content"]]
