"""Commits to a real store: idempotency, heads, faults, parents, refs, the log (3-model, changeset; 5-lethe, writing)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from store_world import BRANCH, PROJECT, Json, StoreWorld, add, correct, edge

from memory_git.domain.changeset import read_request
from memory_git.domain.errors import Clash, Invalid, NotAllowed, NotFound, Refused
from memory_git.domain.ids import SHARED_MAIN
from memory_git.lethe.commits import create_changeset
from memory_git.lethe.store import LetheStore
from memory_git.lethe.transaction import Transaction

SIDE = "refs/agents/tester/main"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StoreWorld]:
    made = StoreWorld(tmp_path)
    yield made
    assert made.faults() == []
    made.close()


def refused(call: Any, *arguments: Any, **named: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        call(*arguments, **named)
    return caught.value


# idempotency


def test_the_same_request_again_is_the_same_changeset_also_when_the_ref_has_moved_on(
    world: StoreWorld,
) -> None:
    request = world.request(BRANCH, [world.root], add("a", "one"))
    made, replayed = world.store.create_changeset(request)
    world.commit(BRANCH, made["changeset_id"], add("b", "two"))
    assert not replayed
    assert world.store.create_changeset(request) == (made, True)
    world.restart()
    assert world.store.create_changeset(request) == (made, True)


CHANGES: dict[str, Json] = {
    "content": {"ops": [add("a", "two")]},
    "message": {"message": "other work"},
    "ref": {"ref_name": SIDE},
    "an optional name": {"topic_id": "t"},
    "evidence": {"evidence": [{"kind": "log"}]},
    "advance_ref": {"advance_ref": False},
    "create_ref_if_missing": {"create_ref_if_missing": False},
    "expected_head": {"expected_head": None},
    "protected": {"protected": True},
    "parents": {"parent_ids": ["018f0000-0000-7000-8000-00000000000f"]},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_key_used_for_another_request_is_a_mismatch_control_fields_included(
    world: StoreWorld, change: str
) -> None:
    request = world.request(BRANCH, [world.root], add("a", "one"))
    made, _ = world.store.create_changeset(request)
    refusal = refused(world.store.create_changeset, {**request, **CHANGES[change]})
    assert (type(refusal), refusal.code) == (Clash, "idempotency_mismatch")
    assert refusal.facts["changeset_id"] == made["changeset_id"]


def test_a_key_is_one_authors_and_one_projects_own(world: StoreWorld) -> None:
    request = world.request(BRANCH, [world.root], add("a", "one"))
    world.store.create_changeset(request)
    _, replayed = world.store.create_changeset({**request, "ref_name": SIDE, "author_principal": "tester"})
    assert not replayed
    other = world.store.init_project("other")["changeset"]["changeset_id"]
    _, replayed = world.store.create_changeset(
        {**request, "project_id": "other", "parent_ids": [other], "expected_head": other}
    )
    assert not replayed


def test_a_refused_request_leaves_its_key_unused(world: StoreWorld) -> None:
    request = world.request(BRANCH, [world.root], correct("absent", "x"))
    assert isinstance(refused(world.store.create_changeset, request), Invalid)
    _, replayed = world.store.create_changeset({**request, "ops": [add("a", "one")]})
    assert not replayed


# heads and refs


def test_a_stale_head_is_refused_with_the_current_one_and_nothing_is_written(world: StoreWorld) -> None:
    head = world.commit(BRANCH, world.root, add("a", "one"))
    refusal = refused(world.commit, BRANCH, world.root, add("b", "two"))
    assert (type(refusal), refusal.code, refusal.facts["current_head"]) == (Clash, "ref_moved", head)
    assert world.head(BRANCH) == head
    assert len(world.store.log(PROJECT, BRANCH)["changesets"]) == 2


def test_a_missing_ref_is_made_only_when_asked_for(world: StoreWorld) -> None:
    refusal = refused(world.commit, BRANCH, world.root, add("a", "one"), create_ref_if_missing=False)
    assert (type(refusal), refusal.code) == (NotFound, "ref_not_found")
    head = world.commit(BRANCH, world.root, add("a", "one"))
    assert [(move["from_head"], move["to_head"]) for move in world.store.ref_log(PROJECT, BRANCH)] == [
        (None, head)
    ]


@pytest.mark.parametrize("ref", [SHARED_MAIN, "refs/shared/other"])
def test_no_commit_moves_or_makes_a_protected_ref(world: StoreWorld, ref: str) -> None:
    refusal = refused(world.commit, ref, world.root, add("a", "one"))
    assert (type(refusal), refusal.code) == (NotAllowed, "protected_ref")


def test_a_commit_that_moves_no_ref_is_reachable_from_none(world: StoreWorld) -> None:
    made = world.loose(world.root, add("a", "one"))
    assert world.records(made)["a"]["content"] == "one"
    assert [row["ref_name"] for row in world.store.list_refs(PROJECT)] == [SHARED_MAIN]


def test_the_expected_head_must_be_a_parent(world: StoreWorld) -> None:
    head = world.commit(BRANCH, world.root, add("a", "one"))
    refusal = refused(world.commit, BRANCH, world.root, add("b", "two"), expected_head=head)
    assert refusal.code == "not_a_child"


def test_a_move_says_who_when_and_from_where_and_a_ref_is_read_at_a_time_and_at_a_changeset(
    world: StoreWorld,
) -> None:
    heads = []
    for number in range(3):
        heads.append(world.commit(BRANCH, heads[-1] if heads else world.root, add(f"m{number}", "x")))
        world.later(hours=1)
    moves = world.store.ref_log(PROJECT, BRANCH)
    assert [move["to_head"] for move in moves] == heads
    for place, move in enumerate(moves):
        assert world.store.resolve_ref(PROJECT, BRANCH, move["at"])["head_changeset_id"] == heads[place]
        assert world.store.resolve_ref(PROJECT, BRANCH, heads[place])["version"] == place + 1
    local = moves[0]["at"].replace("Z", "+00:00")
    assert world.store.resolve_ref(PROJECT, BRANCH, local)["head_changeset_id"] == heads[0]
    assert isinstance(refused(world.store.resolve_ref, PROJECT, BRANCH, "2001-01-01T00:00:00Z"), NotFound)
    assert isinstance(refused(world.store.resolve_ref, PROJECT, BRANCH, world.root), NotFound)


def test_the_times_of_a_log_never_go_back_though_the_clock_does(world: StoreWorld) -> None:
    first = world.commit(BRANCH, world.root, add("a", "one"))
    world.later(hours=-1)
    world.commit(BRANCH, first, add("b", "two"))
    before, after = world.store.ref_log(PROJECT, BRANCH)
    assert after["at"] >= before["at"]


# faults


def test_all_faults_come_in_one_answer_those_of_form_and_those_of_state(world: StoreWorld) -> None:
    ops = [
        {"op_type": "no_such_op", "payload": {}},
        add("a", " "),
        add("b", "fine", colour="red"),
        correct("absent", "x"),
        edge("absent", "b"),
        add("c", "fine"),
        correct("c", "fine too"),
    ]
    refusal = refused(world.commit, BRANCH, world.root, *ops)
    assert isinstance(refusal, Invalid)
    assert sorted({fault.ordinal for fault in refusal.faults}) == [0, 1, 2, 3, 4]


def test_a_memory_whose_own_op_is_at_fault_is_not_told_again_by_the_ops_that_need_it(
    world: StoreWorld,
) -> None:
    ops = [add("a", "fine", colour="red"), correct("a", "better"), edge("a", "a2")]
    refusal = refused(world.commit, BRANCH, world.root, *ops)
    assert isinstance(refusal, Invalid)
    assert [fault.ordinal for fault in refusal.faults] == [0]


def test_no_fault_repeats_a_value(world: StoreWorld) -> None:
    refusal = refused(world.commit, BRANCH, world.root, add("a", "s3cret" * 4096, colour="s3cret"))
    assert "s3cret" not in str(refusal) + str(refusal.facts)


# parents


def test_one_or_two_parents_of_this_project_are_taken(world: StoreWorld) -> None:
    left = world.commit(BRANCH, world.root, add("a", "one"))
    right = world.commit(SIDE, world.root, add("b", "two"))
    third = world.commit("refs/topics/t", world.root, add("c", "three"))
    assert refused(world.commit, BRANCH, [left, right, third]).code == "too_many_parents"
    assert isinstance(refused(world.commit, BRANCH, [left, left]), Invalid)
    absent = "018f0000-0000-7000-8000-000000000000"
    assert isinstance(refused(world.commit, BRANCH, [left, absent]), NotFound)
    elsewhere = world.store.init_project("other")["changeset"]["changeset_id"]
    assert isinstance(refused(world.commit, BRANCH, [left, elsewhere]), NotFound)
    merged = world.commit(BRANCH, [left, right])
    assert sorted(world.records(merged)) == ["a", "b"]
    assert world.store.get_changeset(merged)["parent_ids"] == [left, right]


def test_a_changeset_needs_an_op_unless_it_is_a_merge(world: StoreWorld) -> None:
    assert isinstance(refused(world.commit, BRANCH, world.root), Invalid)


def test_a_parent_may_descend_from_the_other(world: StoreWorld) -> None:
    left = world.commit(BRANCH, world.root, add("a", "one"))
    right = world.commit(BRANCH, left, correct("a", "two"))
    merged = world.commit("refs/topics/t", [left, right])
    assert world.records(merged) == world.records(right)
    assert world.store.merge_base(PROJECT, merged, left) == [left]


def test_what_nobody_has_stored_is_not_found_and_the_answer_does_not_repeat_it(world: StoreWorld) -> None:
    said = "not a changeset" * 100
    for verb in (world.store.is_ancestor, world.store.merge_base, world.store.authors):
        for pair in ((said, world.root), (world.root, said)):
            refusal = refused(verb, PROJECT, *pair)
            assert (type(refusal), refusal.code) == (NotFound, "changeset_not_found")
            assert said not in str(refusal) + str(refusal.facts)


# the log


@pytest.fixture
def tangle(world: StoreWorld) -> list[str]:
    """Gives the changesets of a history with merges both ways, in the order of arrival."""
    made = [world.root]
    left = right = world.root
    for turn in range(6):
        left = world.commit(BRANCH, left, add(f"l{turn}", "x"))
        right = world.commit(SIDE, right, add(f"r{turn}", "x"))
        made += [left, right]
        if turn % 2:
            left, right = world.commit(BRANCH, [left, right]), world.commit(SIDE, [right, left])
            made += [left, right]
    return made


@pytest.mark.parametrize("limit", [1, 2, 5, 200])
def test_pages_of_a_log_hold_every_ancestor_once_children_first(
    world: StoreWorld, tangle: list[str], limit: int
) -> None:
    found: list[str] = []
    before = None
    while True:
        page = world.store.log(PROJECT, BRANCH, limit=limit, before=before)
        found += [item["changeset_id"] for item in page["changesets"]]
        assert len(page["changesets"]) <= limit
        before = page.get("next")
        if before is None:
            break
    ancestors = [name for name in tangle if world.store.is_ancestor(PROJECT, name, world.head(BRANCH))]
    assert sorted(found) == sorted(ancestors)
    place = {name: at for at, name in enumerate(found)}
    for name in found:
        for parent in world.store.get_changeset(name)["parent_ids"]:
            assert place[parent] > place[name]


def test_the_mainline_of_a_log_is_its_first_parents(world: StoreWorld, tangle: list[str]) -> None:
    expected, name = [], world.head(BRANCH)
    while name:
        expected.append(name)
        name = (world.store.get_changeset(name)["parent_ids"] or [""])[0]
    page = world.store.log(PROJECT, BRANCH, limit=200, first_parent=True)
    assert [item["changeset_id"] for item in page["changesets"]] == expected


# filters


@pytest.mark.parametrize("filters", [{"kind": "thing"}, {"status": "gone"}])
def test_an_unknown_kind_or_status_is_refused_not_answered_with_nothing(
    world: StoreWorld, filters: Json
) -> None:
    assert refused(world.store.memories, PROJECT, world.root, **filters).code == "bad_filter"


# two processes


def test_a_write_that_was_rolled_back_hides_no_changeset_of_another_process(world: StoreWorld) -> None:
    """The commit graph noted the rows of a write that failed, and never looked at those that took their place."""

    def fail(transaction: Transaction) -> None:
        request = world.request(BRANCH, [world.root], add("a", "one"))
        create_changeset(transaction, world.store.feed, read_request(request, iter(())))
        assert len(transaction.graph()) == 2
        raise Clash("lost", "given up")

    with pytest.raises(Clash, match="given up"):
        world.store._write(PROJECT, fail)
    other = LetheStore.open(world.path, merge_keys=None)
    made, _ = other.create_changeset(world.request(SIDE, [world.root], add("b", "two")))
    other.close()
    assert world.store.is_ancestor(PROJECT, world.root, made["changeset_id"])
    child = world.commit(SIDE, made["changeset_id"], add("c", "three"))
    assert world.store.merge_base(PROJECT, child, world.root) == [world.root]


def test_a_write_that_was_rolled_back_leaves_nothing_in_the_caches(world: StoreWorld) -> None:
    kept: list[int] = []

    def fail(transaction: Transaction) -> None:
        request = world.request(BRANCH, [world.root], add("a", "one"))
        row = create_changeset(transaction, world.store.feed, read_request(request, iter(()))).row
        assert transaction.state(row.changeset_id).plain_record("a") is not None
        kept.append(row.memories_row)
        raise Clash("lost", "given up")

    with pytest.raises(Clash, match="given up"):
        world.store._write(PROJECT, fail)
    assert world.store._caches.nodes.get(kept[0]) is None
