"""The log and one memory's history: cursors, both sides of a merge, originals of copies (4-history, ancestry; 5-lethe)."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from store_world import BRANCH, PROJECT, StoreWorld, add, correct, retract

from memory_git.domain.errors import Invalid, NotFound
from memory_git.domain.policy import Audience

Json = dict[str, Any]
SIDE = "refs/agents/tester/main"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StoreWorld]:
    """Gives a store, closed in the end."""
    made = StoreWorld(tmp_path)
    yield made
    made.close()


@pytest.fixture
def heads(world: StoreWorld) -> list[str]:
    """Gives a criss-cross of two lines over five rounds, in the order of arrival."""
    left = world.commit(BRANCH, world.root, add("a", "one"))
    right = world.commit(SIDE, world.root, add("b", "two"))
    made = [world.root, left, right]
    for n in range(5):
        left, right = (
            world.commit(BRANCH, [left, right], add(f"l{n}", "x")),
            world.commit(SIDE, [right, left], add(f"r{n}", "x")),
        )
        made += [left, right]
    return made


def walked(world: StoreWorld, limit: int, **asked: Any) -> list[str]:
    """Gives the ids that the pages of a log name, one after another."""
    found: list[str] = []
    before = None
    while True:
        page = world.store.log(PROJECT, BRANCH, limit=limit, before=before, **asked)
        found += [item["changeset_id"] for item in page["changesets"]]
        before = page.get("next")
        if before is None:
            return found


@pytest.mark.parametrize("limit", [1, 2, 3, 200])
@pytest.mark.parametrize("first_parent", [False, True])
def test_the_pages_of_a_log_are_the_whole_on_a_criss_cross(
    world: StoreWorld, heads: list[str], limit: int, first_parent: bool
) -> None:
    whole = walked(world, 200, first_parent=first_parent)
    assert walked(world, limit, first_parent=first_parent) == whole
    assert len(whole) == (7 if first_parent else len(heads) - 1)


def test_a_cursor_goes_on_in_another_process_and_when_the_ref_has_moved(
    world: StoreWorld, heads: list[str]
) -> None:
    whole = walked(world, 200)
    first = world.store.log(PROJECT, BRANCH, limit=4)
    world.restart()
    world.commit(BRANCH, heads[-2], add("late", "x"))
    rest = world.store.log(PROJECT, BRANCH, limit=200, before=first["next"])
    assert [item["changeset_id"] for item in (*first["changesets"], *rest["changesets"])] == whole


def test_a_log_may_begin_at_a_changeset_that_the_head_descends_from(
    world: StoreWorld, heads: list[str]
) -> None:
    page = world.store.log(PROJECT, BRANCH, before=heads[1])
    assert [item["changeset_id"] for item in page["changesets"]] == [heads[1], world.root]


def test_a_cursor_that_this_store_has_not_written_for_this_walk_is_refused(
    world: StoreWorld, heads: list[str]
) -> None:
    mine = world.store.log(PROJECT, BRANCH, limit=1)["next"]
    raw = bytearray(base64.urlsafe_b64decode(mine + "=" * (-len(mine) % 4)))
    raw[20] ^= 1
    forged = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    elsewhere = world.commit("refs/topics/other", world.root, add("secret", "x"))
    of_another = world.store.log(PROJECT, "refs/topics/other", limit=1)["next"]
    for cursor in (
        "?",
        "",
        " ",
        mine[:-3],
        forged,
        "A" * 100,
        elsewhere,
        "018f0000-0000-7000-8000-000000000000",
    ):
        if not cursor:
            continue
        with pytest.raises(Invalid) as refusal:
            world.store.log(PROJECT, BRANCH, before=cursor)
        assert refusal.value.code == "bad_cursor", cursor
    with pytest.raises(Invalid):
        world.store.log(PROJECT, BRANCH, before=of_another)
    with pytest.raises(Invalid):
        world.store.log(PROJECT, BRANCH, before=mine, first_parent=True)


def test_a_cursor_of_another_project_is_refused(world: StoreWorld, heads: list[str], tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = StoreWorld(tmp_path / "other")
    other.commit(BRANCH, other.root, add("a", "one"))
    with pytest.raises(Invalid):
        world.store.log(PROJECT, BRANCH, before=other.store.log(PROJECT, BRANCH, limit=1)["next"])
    other.close()


@pytest.mark.parametrize("limit", [0, 201, -1, True])
def test_a_limit_of_a_log_has_bounds(world: StoreWorld, limit: Any) -> None:
    with pytest.raises(Invalid) as refusal:
        world.store.log(PROJECT, "refs/shared/main", limit=limit)
    assert refusal.value.code == "bad_limit"


# one memory


def told(
    world: StoreWorld, head: str, memory_id: str, audience: Audience | None = None
) -> list[tuple[str, str]]:
    """Gives content and changeset of each version in a history."""
    found = world.store.memory_history(PROJECT, head, memory_id, audience)["versions"]
    return [(item["record"]["content"], item["changeset_id"]) for item in found]


def test_the_same_change_on_both_sides_of_a_merge_is_told_of_both(world: StoreWorld) -> None:
    base = world.commit(BRANCH, world.root, add("a", "one"))
    left = world.commit(BRANCH, base, correct("a", "same"), author="ann")
    right = world.commit(SIDE, base, correct("a", "same"), author="bob")
    merged = world.commit(BRANCH, [left, right])
    assert told(world, merged, "a") == [("same", right), ("same", left), ("one", base)]
    assert told(world, left, "a") == [("same", left), ("one", base)]
    later = world.commit(BRANCH, merged, correct("a", "two"))
    assert told(world, later, "a") == [("two", later), ("same", right), ("same", left), ("one", base)]


def test_what_a_head_does_not_reach_is_not_in_a_memorys_history(world: StoreWorld) -> None:
    base = world.commit(BRANCH, world.root, add("a", "one"))
    world.commit(SIDE, base, correct("a", "elsewhere"))
    own = world.commit(BRANCH, base, correct("a", "here"))
    assert told(world, own, "a") == [("here", own), ("one", base)]
    with pytest.raises(NotFound):
        world.store.memory_history(PROJECT, world.root, "a")


# originals


def copied(world: StoreWorld, plan: Json, ref: str, author: str = "charon") -> str:
    head = str(plan["parent_changeset_id"])
    for step in plan["steps"]:
        head = world.commit(ref, head, *step["ops"], author=author)
    return head


def test_a_rebased_change_names_who_wrote_it_first_over_any_number_of_copies(world: StoreWorld) -> None:
    base = world.commit(BRANCH, world.root, add("a", "one"))
    work = world.commit(SIDE, base, correct("a", "two"), add("b", "new"), author="tester")
    onto = world.commit(BRANCH, base, add("c", "three"))
    once = copied(world, world.store.plan_rebase(PROJECT, work, onto), "refs/topics/once")
    onto = world.commit(BRANCH, onto, add("d", "four"))
    twice = copied(world, world.store.plan_rebase(PROJECT, once, onto), "refs/topics/twice")
    newest = world.store.memory_history(PROJECT, twice, "a")["versions"][0]
    assert (newest["author_principal"], newest["changeset_id"]) == ("charon", twice)
    written = world.store.get_changeset(work)
    original = {"changeset_id": work, "author_principal": "tester", "created_at": written["created_at"]}
    assert newest["original"] == original
    assert world.store.get_changeset(twice)["originals"] == [original]
    assert world.store.log(PROJECT, "refs/topics/twice", limit=1)["changesets"][0]["originals"] == [original]
    assert "originals" not in written
    assert "original" not in world.store.memory_history(PROJECT, twice, "d")["versions"][0]


def test_a_cherry_pick_names_the_originals_of_its_ops(world: StoreWorld) -> None:
    base = world.commit(BRANCH, world.root, add("a", "one"))
    work = world.commit(SIDE, base, add("x", "x"), add("y", "y"), author="tester")
    plan = world.store.plan_cherry_pick(PROJECT, [{"changeset_id": work, "ordinal": 1}], base)
    picked = copied(world, plan, BRANCH)
    assert [item["author_principal"] for item in world.store.get_changeset(picked)["originals"]] == ["tester"]


def test_a_revert_is_nobodys_copy(world: StoreWorld) -> None:
    base = world.commit(BRANCH, world.root, add("a", "one"))
    wrong = world.commit(BRANCH, base, correct("a", "two"), author="tester")
    taken = copied(world, world.store.plan_revert(PROJECT, wrong, wrong), BRANCH, "ann")
    assert "originals" not in world.store.get_changeset(taken)
    assert "original" not in world.store.memory_history(PROJECT, taken, "a")["versions"][0]


def test_an_original_is_told_only_to_who_may_see_the_op(world: StoreWorld) -> None:
    base = world.commit(BRANCH, world.root, add("a", "one", visibility="private", owner_principal="builder"))
    work = world.commit(SIDE, base, correct("a", "two"), author="tester")
    onto = world.commit(BRANCH, base, add("c", "three"))
    head = copied(world, world.store.plan_rebase(PROJECT, work, onto), "refs/topics/once")
    reader = Audience("reader", frozenset({"internal", "shared", "public"}))
    assert "originals" not in world.store.get_changeset(head, reader)
    assert "originals" in world.store.get_changeset(head, Audience("builder", reader.visibilities))


def test_totals_by_kind_status_and_reader_are_brought_along_by_what_changes(world: StoreWorld) -> None:
    mine = {"visibility": "private", "owner_principal": "ann"}
    readers = [
        None,
        Audience("ann", frozenset({"internal"})),
        Audience("bob", frozenset({"shared", "public"})),
        Audience("cy", frozenset()),
    ]

    def listed(head: str, **filters: Any) -> list[str]:
        found: list[str] = []
        after = None
        while True:
            page = world.store.memories(PROJECT, head, limit=2, after=after, **filters)
            found += [item["memory_id"] for item in page["memories"]]
            after = page.get("next")
            if after is None:
                assert page["total"] == len(found) == len(set(found)), filters
                return found

    heads = [world.root]
    for ops in (
        [add("a", "one", kind="fact"), add("b", "two", **mine), add("c", "three", visibility="shared")],
        [add("d", "four", kind="fact", visibility="public"), correct("a", kind="task")],
        [retract("c"), correct("b", "two and more")],
        [correct("a", visibility="public"), retract("d")],
        [add("c", "three again", revive=True, visibility="shared")],
    ):
        heads.append(world.commit(BRANCH, heads[-1], *ops))
    for head in [*heads, *reversed(heads), heads[3], heads[1]]:
        for reader in readers:
            for kind in (None, "fact", "task"):
                for status in (None, "active", "retracted"):
                    listed(head, kind=kind, status=status, audience=reader)
    world.store.redact(PROJECT, "b", principal="officer", reason="asked for")
    assert listed(heads[-1], status="redacted") == ["b"]
    assert listed(heads[-1], status="redacted", audience=readers[1]) == []
