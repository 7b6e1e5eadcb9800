"""Stored conflicts: persisted once, resolved by a stranger, carried over, let go (4-history, conflicts; 7-context)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from store_world import BRANCH, PROJECT, PROPOSAL, Json, StoreWorld, add, correct

from memory_git.domain.errors import Clash, Invalid, NotAllowed
from memory_git.domain.policy import Audience

SIDE = "refs/agents/tester/main"
OTHER_PROPOSAL = "018f0000-0000-7000-8000-0000000000bb"
READER = Audience("reader", frozenset({"internal", "shared", "public"}))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StoreWorld]:
    made = StoreWorld(tmp_path)
    yield made
    assert made.faults() == []
    made.close()


@pytest.fixture
def sides(world: StoreWorld) -> tuple[str, str]:
    """Gives two heads that changed one memory differently."""
    base = world.commit(BRANCH, world.root, add("a", "old"), author="founder")
    return (
        world.commit(BRANCH, base, correct("a", "left"), author="builder"),
        world.commit(SIDE, base, correct("a", "right"), author="tester"),
    )


def found(world: StoreWorld, left: str, right: str) -> Json:
    """Gives the one blocking conflict between two heads."""
    (conflict,) = [
        item
        for item in world.store.plan_merge(PROJECT, left, right)["conflicts"]
        if item["severity"] == "blocking"
    ]
    return dict(conflict)


def persist(world: StoreWorld, *conflicts: Json, proposal: str = PROPOSAL) -> None:
    world.store.persist_conflicts(PROJECT, proposal, conflicts)


def resolve(world: StoreWorld, conflict: Json, principal: str = "judge", **said: Any) -> Json:
    how = {"outcome": "edited", "resolution_note": "both are half right", **said}
    return dict(world.store.resolve_conflict(PROJECT, conflict["conflict_id"], principal=principal, **how))


def stored(world: StoreWorld, conflict: Json) -> Json:
    (row,) = [
        item for item in world.store.list_conflicts(PROJECT) if item["conflict_id"] == conflict["conflict_id"]
    ]
    return dict(row)


def test_detection_writes_nothing_and_is_the_same_twice_and_with_the_sides_swapped(
    world: StoreWorld, sides: tuple[str, str]
) -> None:
    base = world.store.merge_base(PROJECT, *sides)[0]
    one = world.store.detect_conflicts(PROJECT, base, *sides)
    assert world.store.detect_conflicts(PROJECT, base, *sides) == one
    swapped = world.store.detect_conflicts(PROJECT, base, sides[1], sides[0])
    assert [item["conflict_id"] for item in swapped] == [item["conflict_id"] for item in one]
    assert world.store.list_conflicts(PROJECT) == []


def test_a_conflict_is_stored_once_and_told_by_every_proposal_that_meets_it(
    world: StoreWorld, sides: tuple[str, str]
) -> None:
    conflict = found(world, *sides)
    persist(world, conflict)
    persist(world, conflict)
    persist(world, conflict, proposal=OTHER_PROPOSAL)
    assert stored(world, conflict)["proposal_ids"] == [PROPOSAL, OTHER_PROPOSAL]
    for proposal in (PROPOSAL, OTHER_PROPOSAL):
        assert len(world.store.list_conflicts(PROJECT, proposal_id=proposal)) == 1


@pytest.mark.parametrize("author", ["builder", "tester"])
def test_who_wrote_a_side_does_not_settle_it(world: StoreWorld, sides: tuple[str, str], author: str) -> None:
    persist(world, found(world, *sides))
    with pytest.raises(NotAllowed):
        resolve(world, found(world, *sides), author)


def test_who_wrote_a_side_does_not_settle_it_though_another_touched_it_after_them(
    world: StoreWorld, sides: tuple[str, str]
) -> None:
    """Only the last to touch the record was asked for: a tag from somebody else freed its author."""
    left = world.commit(BRANCH, sides[0], correct("a", tags=["x"]), author="somebody")
    conflict = found(world, left, sides[1])
    persist(world, conflict)
    for author in ("builder", "somebody"):
        with pytest.raises(NotAllowed):
            resolve(world, conflict, author)
    assert resolve(world, conflict, "founder")["resolved_by"] == "founder"


def test_who_wrote_what_was_copied_into_a_side_does_not_settle_it(
    world: StoreWorld, sides: tuple[str, str]
) -> None:
    base = world.store.merge_base(PROJECT, *sides)[0]
    plan = world.store.plan_rebase(PROJECT, sides[1], base)
    copy = world.loose(base, *plan["steps"][0]["ops"], author="charon")
    conflict = found(world, sides[0], copy)
    persist(world, conflict)
    with pytest.raises(NotAllowed):
        resolve(world, conflict, "tester")


@pytest.mark.parametrize("said", [{"outcome": "newest"}, {"resolution_note": " "}])
def test_a_resolution_needs_an_outcome_and_a_reason(
    world: StoreWorld, sides: tuple[str, str], said: Json
) -> None:
    persist(world, found(world, *sides))
    with pytest.raises(Invalid):
        resolve(world, found(world, *sides), **said)


def test_a_settled_conflict_stays_settled_for_every_proposal_and_is_settled_once(
    world: StoreWorld, sides: tuple[str, str]
) -> None:
    conflict = found(world, *sides)
    persist(world, conflict)
    resolve(world, conflict)
    persist(world, conflict, proposal=OTHER_PROPOSAL)
    world.restart()
    row = stored(world, conflict)
    assert (row["status"], row["outcome"], row["resolved_by"]) == ("resolved", "edited", "judge")
    with pytest.raises(Clash):
        resolve(world, conflict)


def test_a_resolution_carries_over_when_the_heads_have_moved_and_not_when_the_records_have(
    world: StoreWorld, sides: tuple[str, str]
) -> None:
    persist(world, found(world, *sides))
    resolve(world, found(world, *sides))
    left = world.commit(BRANCH, sides[0], add("b", "unrelated"))
    same = found(world, left, sides[1])
    persist(world, same)
    row = stored(world, same)
    assert (row["status"], row["outcome"], row["resolution_note"]) == (
        "resolved",
        "edited",
        "both are half right",
    )
    right = world.commit(SIDE, sides[1], correct("a", "more right"), author="tester")
    changed = found(world, left, right)
    persist(world, changed)
    assert stored(world, changed)["status"] == "open"


def test_a_resolution_settles_every_open_row_of_the_same_identity(
    world: StoreWorld, sides: tuple[str, str]
) -> None:
    first = found(world, *sides)
    second = found(world, world.commit(BRANCH, sides[0], add("b", "unrelated")), sides[1])
    assert first["conflict_id"] != second["conflict_id"]
    persist(world, first)
    persist(world, second, proposal=OTHER_PROPOSAL)
    resolve(world, first)
    assert stored(world, second)["status"] == "resolved"


def test_a_proposal_that_closes_lets_go_of_what_it_alone_met(
    world: StoreWorld, sides: tuple[str, str]
) -> None:
    conflict = found(world, *sides)
    persist(world, conflict)
    persist(world, conflict, proposal=OTHER_PROPOSAL)
    world.store.retire_conflicts(PROJECT, PROPOSAL, "canceled")
    assert stored(world, conflict)["status"] == "open"
    world.store.retire_conflicts(PROJECT, OTHER_PROPOSAL, "rejected")
    assert stored(world, conflict)["status"] == "rejected"
    persist(world, conflict)
    assert stored(world, conflict)["status"] == "open"


def test_a_conflict_met_again_after_its_equal_was_settled_says_how(
    world: StoreWorld, sides: tuple[str, str]
) -> None:
    """A canceled row came back as resolved, with no outcome, reason or judge."""
    first = found(world, *sides)
    persist(world, first)
    world.store.retire_conflicts(PROJECT, PROPOSAL, "canceled")
    second = found(world, world.commit(BRANCH, sides[0], add("b", "unrelated")), sides[1])
    persist(world, second, proposal=OTHER_PROPOSAL)
    resolve(world, second)
    persist(world, first)
    row = stored(world, first)
    assert (row["status"], row["outcome"], row["resolved_by"]) == ("resolved", "edited", "judge")


def test_a_conflict_about_a_memory_that_is_hidden_from_a_reader_is_hidden_and_does_not_eat_the_limit(
    world: StoreWorld, sides: tuple[str, str]
) -> None:
    secret = {"visibility": "private", "owner_principal": "founder"}
    base = world.commit(BRANCH, sides[0], add("s", "mine", **secret), author="founder")
    left = world.commit(BRANCH, base, correct("s", "mine, left"), author="founder")
    right = world.loose(base, correct("s", "mine, right"), author="founder")
    hidden = found(world, left, right)
    persist(world, hidden, found(world, *sides))
    shown = world.store.list_conflicts(PROJECT, limit=1, audience=READER)
    assert [item["memory_ids"] for item in shown] == [["a"]]
    assert len(world.store.list_conflicts(PROJECT, audience=Audience("founder", READER.visibilities))) == 2
    assert "mine" not in str(world.store.plan_merge(PROJECT, left, right, READER))
    told = world.store.detect_conflicts(PROJECT, base, left, right, READER)
    assert [item["conflict_type"] for item in told] == ["stale_base"]


def test_a_stored_conflict_holds_no_text_and_goes_with_an_erased_memory(tmp_path: Path) -> None:
    world = StoreWorld(tmp_path)
    said = {"kind": "fact", "scope": "net", "fact_key": "zanzibar/port"}
    left = world.commit(BRANCH, world.root, add("a", "The zebra is 1.", **said))
    right = world.commit(SIDE, world.root, add("b", "The zebra is 2.", **said), author="tester")
    persist(world, found(world, left, right))
    connection = sqlite3.connect(f"file:{world.path}?mode=ro", uri=True)
    (body,) = connection.execute("SELECT body FROM conflict").fetchone()
    connection.close()
    assert b"zebra" not in body
    world.store.redact(PROJECT, "a", principal="officer", reason="asked for")
    world.store.redact(PROJECT, "b", principal="officer", reason="asked for")
    assert world.store.list_conflicts(PROJECT) == []
    assert world.faults() == []
    world.close()
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"zanzibar" not in raw
    assert b"zebra" not in raw


# what an open conflict withholds


def decision(memory_id: str, content: str) -> Json:
    return add(memory_id, content, kind="decision", scope="ops", subject="deploying")


@pytest.fixture
def contradiction(world: StoreWorld) -> tuple[str, str]:
    left = world.commit(BRANCH, world.root, decision("hand", "We deploy by hand."), add("c", "Calm seas."))
    right = world.commit(SIDE, world.root, decision("robot", "Robots deploy."), author="tester")
    persist(world, found(world, left, right))
    return left, right


def shown(world: StoreWorld, audience: Audience | None = None) -> set[str]:
    context = world.store.context(PROJECT, {"ref_name": BRANCH}, audience)
    return {item["memory_id"] for item in context["memories"]}


def test_a_proposal_that_is_not_merged_withholds_nothing(
    world: StoreWorld, contradiction: tuple[str, str]
) -> None:
    assert shown(world) == {"hand", "c"}
    context = world.store.context(PROJECT, {"ref_name": BRANCH})
    assert context["unresolved_conflicts"] == []


def test_an_open_conflict_withholds_both_memories_once_both_sides_are_in_the_head_on_every_path(
    world: StoreWorld, contradiction: tuple[str, str]
) -> None:
    merged = world.commit(BRANCH, list(contradiction))
    context = world.store.context(PROJECT, {"ref_name": BRANCH})
    assert shown(world) == {"c"}
    (conflict,) = context["unresolved_conflicts"]
    assert set(context["exclusion_reasons"]) == {"hand", "robot"}
    assert conflict["conflict_id"] in context["exclusion_reasons"]["hand"]
    assert context["total_active"] == 3
    assert world.store.search(PROJECT, merged, "deploy robots") == {"hits": [], "total": 0}
    resolve(world, found(world, *contradiction), outcome="both")
    assert shown(world) == {"c", "hand", "robot"}
    assert world.store.search(PROJECT, merged, "robots")["total"] == 1


def test_the_head_before_the_merge_still_shows_them(
    world: StoreWorld, contradiction: tuple[str, str]
) -> None:
    world.commit(BRANCH, list(contradiction))
    context = world.store.context(PROJECT, {"ref_name": BRANCH, "head_changeset_id": contradiction[0]})
    assert {item["memory_id"] for item in context["memories"]} == {"hand", "c"}


def test_a_reader_who_may_not_see_one_side_is_told_of_no_conflict(world: StoreWorld) -> None:
    secret = {"visibility": "private", "owner_principal": "tester"}
    left = world.commit(BRANCH, world.root, decision("hand", "We deploy by hand."))
    own = decision("robot", "Robots deploy.")
    own["payload"] |= secret
    right = world.commit(SIDE, world.root, own, author="tester")
    persist(world, found(world, left, right))
    world.commit(BRANCH, [left, right])
    assert shown(world, READER) == {"hand"}
    assert shown(world, Audience("tester", READER.visibilities)) == set()
    context = world.store.context(PROJECT, {"ref_name": BRANCH}, READER)
    assert (context["unresolved_conflicts"], context["total_active"]) == ([], 1)


@pytest.mark.parametrize("moved", [False, True], ids=["a fast-forward", "a merge"])
def test_two_contradicting_facts_of_one_side_stand_as_a_note_in_the_plan_and_in_the_diff(
    world: StoreWorld, moved: bool
) -> None:
    base = world.commit(BRANCH, world.root, add("other", "The wiki is called Atlas."))
    pair = [
        add("a", "The port is 8080.", kind="fact", fact_key="Port "),
        add("b", "The port is 8443.", kind="fact", fact_key="port"),
    ]
    side = world.commit("refs/agents/tester/main", base, *pair)
    target = world.commit(BRANCH, base, add("more", "The mail relay is Hermes.")) if moved else base
    plan = world.store.plan_merge(PROJECT, target, side)
    assert [item for item in plan["conflicts"] if item["severity"] == "blocking"] == []
    for diff in (plan["diff"], world.store.diff(side, base)):
        (note,) = [item for item in diff["kind_notes"] if item["note"] == "direct_contradiction"]
        assert sorted(note["memory_ids"]) == ["a", "b"]


def test_a_base_that_a_head_does_not_descend_from_is_refused_and_finds_no_corruption(
    world: StoreWorld,
) -> None:
    base = world.commit(BRANCH, world.root, add("b", "one"))
    left = world.commit(BRANCH, base, add("l", "two"))
    right = world.loose(base, add("r", "three"))
    for wrong in ((left, base, right), (base, world.root, right), (right, left, left)):
        with pytest.raises(Invalid) as refused:
            world.store.detect_conflicts(PROJECT, *wrong)
        assert refused.value.code == "not_a_base"
    found = world.store.detect_conflicts(PROJECT, base, left, right)
    assert {item["severity"] for item in found} <= {"warning"}
