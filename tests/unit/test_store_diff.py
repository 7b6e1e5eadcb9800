"""The semantic diff of stored states: pages, open conflicts, contradictions, verified ops, the same bytes in any process (4-history)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import apsw
import pytest
from store_world import BRANCH, PROJECT, StoreWorld, add, correct, edge, retract

from memory_git.domain.errors import Corrupt, Invalid, NotFound, TooLarge
from memory_git.domain.policy import Audience
from memory_git.lethe import comparing
from memory_git.lethe.diff_cursor import read_cursor, write_cursor
from memory_git.lethe.store import LetheStore

Json = dict[str, Any]
READER = Audience("reader", frozenset({"internal", "shared", "public"}))
PLACE = {"base_changeset_id", "target_changeset_id", "base_state_root", "target_state_root", "project_id"}
READ_IN_ANOTHER_PROCESS = """
import json, sys
from pathlib import Path
from memory_git.lethe.store import LetheStore
store = LetheStore.open(Path(sys.argv[1]), merge_keys=None)
whole = store.diff(sys.argv[3], sys.argv[2])
page = store.diff(sys.argv[3], sys.argv[2], limit=3)
sys.stdout.write(json.dumps([whole, page]))
store.close()
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StoreWorld]:
    """Gives a store, closed in the end."""
    made = StoreWorld(tmp_path)
    yield made
    made.close()


def supersede(memory_id: str, by: str, content: str) -> Json:
    payload = {"content": content, "memory_id": by}
    return {"op_type": "supersede_memory", "target_event_id": memory_id, "payload": payload}


def replace(memory_id: str, by: str, content: str) -> Json:
    return {**correct(memory_id, content), "resulting_event_id": by}


def attach(memory_id: str, note: str) -> Json:
    payload = {"note": note, "source": "log"}
    return {"op_type": "attach_evidence", "target_event_id": memory_id, "payload": payload}


@pytest.fixture
def two_heads(world: StoreWorld) -> tuple[str, str]:
    """Gives two heads between which everything happens that a diff can tell of."""
    before = world.commit(
        BRANCH,
        world.root,
        *(add(f"m{n}", f"text {n}", kind="decision" if n % 3 else "task") for n in range(8)),
        add("secret", "mine", visibility="private", owner_principal="builder"),
        edge("m0", "m1"),
        edge("m0", "secret", "hides"),
    )
    after = world.commit(
        BRANCH,
        before,
        correct("m0", "another text"),
        replace("m1", "m1b", "in its place"),
        replace("m1b", "a1c", "in the place of that"),
        supersede("m2", "z2", "newer"),
        retract("m3"),
        attach("m4", "seen"),
        correct("m5", visibility="public"),
        add("gone", "not for long"),
        retract("gone"),
        correct("secret", "still mine"),
        add("port/1", "The port is 80.", kind="fact", fact_key="port"),
        add("port/2", "The port is 443.", kind="fact", fact_key="port"),
        edge("m0", "m1", op_type="remove_relationship"),
        edge("m6", "m7", "needs"),
        edge("m0", "secret", "hides", "remove_relationship"),
        edge("m6", "m0", "needs"),
    )
    return before, after


def pages(
    world: StoreWorld, base: str, target: str, limit: int, audience: Audience | None = None
) -> list[Json]:
    found: list[Json] = []
    after = None
    while not found or after is not None:
        page = world.store.diff(target, base, audience, limit=limit, after=after)
        found.append(page)
        after = page["page"].get("next")
    return found


def joined(found: list[Json]) -> Json:
    """Gives what the pages say, one after another."""
    names = [name for name in found[0] if name not in PLACE | {"page"}]
    return {name: [item for page in found for item in page[name]] for name in names}


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("audience", [None, READER, Audience("builder", READER.visibilities)])
def test_the_pages_of_a_diff_one_after_another_are_the_whole(
    world: StoreWorld, two_heads: tuple[str, str], limit: int, audience: Audience | None
):
    for base, target in (two_heads, two_heads[::-1], (world.root, two_heads[1])):
        whole = world.store.diff(target, base, audience)
        found = pages(world, base, target, limit, audience)
        assert joined(found) == {name: items for name, items in whole.items() if name not in PLACE}
        assert all(
            {name: page[name] for name in PLACE} == {name: whole[name] for name in PLACE} for page in found
        )
        assert all(page["page"]["limit"] == limit for page in found)
    assert "page" not in whole


def test_a_page_holds_no_more_than_asked_and_says_whether_there_is_more(
    world: StoreWorld, two_heads: tuple[str, str]
):
    found = pages(world, *two_heads, 2)
    for page in found:
        memories = {
            item["memory_id"]
            for items in page.values()
            if isinstance(items, list)
            for item in items
            if "memory_id" in item
        }
        relationships = [*page["relationships_added"], *page["relationships_removed"]]
        assert len(memories) + len(relationships) <= 2
    assert ["next" in page["page"] for page in found] == [True] * (len(found) - 1) + [False]


def test_pages_tell_nothing_of_what_the_reader_may_not_see(world: StoreWorld, two_heads: tuple[str, str]):
    for limit in (1, 2, 100):
        assert "secret" not in json.dumps(pages(world, *two_heads, limit, READER))
    assert "still mine" in json.dumps(pages(world, *two_heads, 1, Audience("builder", READER.visibilities)))


def test_equal_states_are_one_empty_page(world: StoreWorld, two_heads: tuple[str, str]):
    (page,) = pages(world, two_heads[0], two_heads[0], 5)
    assert page["page"] == {"limit": 5}
    assert not any(joined([page]).values())


def test_what_is_no_cursor_of_this_diff_is_refused(world: StoreWorld, two_heads: tuple[str, str]):
    before, after = two_heads
    first = world.store.diff(after, before, limit=1)["page"]["next"]
    wrong = ["?", "x" * 9000, first[:-4], first + "A", "e30", write_cursor(("q", ("m0",)), before, after)]
    for cursor in wrong:
        with pytest.raises(Invalid) as refusal:
            world.store.diff(after, before, limit=1, after=cursor)
        assert refusal.value.code == "bad_cursor"
    with pytest.raises(Invalid, match="another diff"):
        world.store.diff(before, after, limit=1, after=first)
    assert read_cursor(first, before, after) == ("m", ("a1c",))
    assert world.store.diff(after, before, after=first)["page"]["limit"] == comparing.DEFAULT_PAGE


@pytest.mark.parametrize("limit", [0, -1, 1001, True, "5"])
def test_a_limit_has_bounds(world: StoreWorld, two_heads: tuple[str, str], limit: Any):
    with pytest.raises(Invalid) as refusal:
        world.store.diff(two_heads[1], two_heads[0], limit=limit)
    assert refusal.value.code == "bad_limit"


def test_a_diff_too_large_for_one_answer_is_refused_and_read_by_pages(
    world: StoreWorld, two_heads: tuple[str, str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(comparing, "MAX_WHOLE", 3)
    with pytest.raises(TooLarge) as refusal:
        world.store.diff(two_heads[1], two_heads[0])
    assert (refusal.value.code, refusal.value.facts) == ("diff_too_large", {"most": 3})
    assert len(pages(world, *two_heads, 3)) > 3


def test_a_page_costs_what_it_holds(world: StoreWorld):
    head = world.commit(BRANCH, world.root, *(add(f"m{n:05}", f"text {n}") for n in range(3000)))
    world.restart()
    world.store.diff(head, world.root, limit=10)
    began = process_time()
    page = world.store.diff(
        head, world.root, limit=10, after=world.store.diff(head, world.root, limit=10)["page"]["next"]
    )
    two_pages = process_time() - began
    began = process_time()
    world.store.diff(head, world.root)
    assert two_pages * 10 < process_time() - began
    assert [item["memory_id"] for item in page["memories_added"]] == [f"m{n:05}" for n in range(10, 20)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_another_process_under_any_hash_seed_writes_the_same_bytes(
    world: StoreWorld, two_heads: tuple[str, str], seed: str
):
    before, after = two_heads
    here = json.dumps([world.store.diff(after, before), world.store.diff(after, before, limit=3)])
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    there = subprocess.run(
        [sys.executable, "-c", READ_IN_ANOTHER_PROCESS, str(world.path), before, after],
        capture_output=True,
        check=True,
        env=environment,
    )
    assert there.stdout.decode() == here


def test_a_removed_relationship_is_told_with_the_op_that_took_it_away(
    world: StoreWorld, two_heads: tuple[str, str]
):
    before, after = two_heads
    (removed,) = world.store.diff(after, before, READER)["relationships_removed"]
    assert (removed["op_type"], removed["changeset_id"]) == ("remove_relationship", after)
    (never_there,) = world.store.diff(before, after, READER)["relationships_added"]
    assert (never_there["op_type"], never_there["changeset_id"]) == ("add_relationship", before)
    elsewhere = world.commit("refs/topics/t", before, add("q", "x"))
    plan = world.store.plan_merge(PROJECT, elsewhere, after)["diff"]["relationships_removed"]
    assert {item["op_type"] for item in plan} == {"remove_relationship"}


# what is noted


def test_a_contradiction_is_noted_between_what_is_new_and_what_stood_there(world: StoreWorld):
    before = world.commit(BRANCH, world.root, add("a", "The port is 80.", kind="fact", fact_key="port"))
    after = world.commit(BRANCH, before, add("b", "The port is 443.", kind="fact", fact_key="port"))
    note = [{"note": "direct_contradiction", "memory_ids": ["a", "b"]}]
    assert world.store.diff(after, before)["kind_notes"] == note
    assert world.store.diff(after, world.root)["kind_notes"] == note
    settled = world.commit(BRANCH, after, supersede("a", "c", "The port was 80."), retract("c"))
    assert "direct_contradiction" not in json.dumps(world.store.diff(settled, before))


def test_a_merge_plan_notes_what_would_contradict_after_it_and_not_what_it_settles(world: StoreWorld):
    base = world.commit(BRANCH, world.root, add("a", "The port is 80.", kind="fact", fact_key="port"))
    left = world.commit("refs/topics/left", base, add("x", "Something else."))
    right = world.commit(
        "refs/topics/right",
        base,
        add("b", "The port is 443.", kind="fact", fact_key="port"),
        add("k1", "The host is one.", kind="fact", fact_key="host"),
        add("k2", "The host is two.", kind="fact", fact_key="host"),
        retract("a"),
    )
    notes = world.store.plan_merge(PROJECT, left, right)["diff"]["kind_notes"]
    assert notes == [{"note": "direct_contradiction", "memory_ids": ["k1", "k2"]}]


# conflicts


def disagreement(world: StoreWorld) -> tuple[str, str, str]:
    """Gives base, left and right, with their conflict stored."""
    base = world.commit(BRANCH, world.root, add("a", "one"), add("b", "two"))
    left = world.commit("refs/topics/left", base, correct("a", "left"))
    right = world.commit("refs/topics/right", base, correct("a", "right"), correct("b", "three"))
    found = world.store.detect_conflicts(PROJECT, base, left, right)
    world.store.persist_conflicts(PROJECT, "018f0000-0000-7000-8000-0000000000aa", found)
    return base, left, right


def told(diff: Json) -> list[str]:
    return [item["conflict_type"] for item in diff["unresolved_conflicts"]]


def test_an_open_conflict_of_a_record_that_differs_is_unresolved_and_a_resolved_one_is_not(world: StoreWorld):
    base, left, right = disagreement(world)
    for target, since in ((left, base), (right, base), (right, left), (base, right)):
        assert told(world.store.diff(target, since)) == ["concurrent_change"]
    assert told(world.store.diff(base, world.root)) == []
    assert told(world.store.diff(left, left)) == []
    later = world.commit("refs/topics/right", right, correct("b", "four"))
    assert told(world.store.diff(later, right)) == []
    world.settle(left, right)
    assert told(world.store.diff(right, base)) == []


def test_a_conflict_is_told_to_who_may_see_both_sides_alone(world: StoreWorld):
    base = world.commit(BRANCH, world.root, add("a", "one"))
    left = world.commit("refs/topics/left", base, correct("a", "left"))
    hidden = correct("a", "right", visibility="private")
    right = world.commit("refs/topics/right", base, hidden)
    found = world.store.detect_conflicts(PROJECT, base, left, right)
    world.store.persist_conflicts(PROJECT, "018f0000-0000-7000-8000-0000000000aa", found)
    assert "concurrent_change" in told(world.store.diff(left, base))
    assert told(world.store.diff(left, base, READER)) == []


def test_a_merge_plan_has_the_conflicts_that_nobody_has_resolved(world: StoreWorld):
    _, left, right = disagreement(world)
    plan = world.store.plan_merge(PROJECT, left, right)
    assert plan["diff"]["unresolved_conflicts"] == plan["conflicts"] != []
    world.settle(left, right)
    assert told(world.store.plan_merge(PROJECT, left, right)["diff"]) == ["stale_base"]


# what does not verify is never shown


def flip(world: StoreWorld, sql: str) -> None:
    driver = apsw.Connection(str(world.path))
    driver.execute(sql)
    driver.close()
    world.restart()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE op SET payload = CAST(replace(CAST(payload AS TEXT), 'another', 'athoner') AS BLOB) WHERE ordinal = 0",
        "UPDATE op SET op_type = 'supersede_memory' WHERE op_type = 'correct_memory'",
        "UPDATE changeset SET state_root = upper(state_root)",
        "UPDATE changeset SET created_at = '2020-01-01T00:00:00.000000Z'",
    ],
)
def test_an_op_or_head_that_does_not_agree_with_its_digest_is_corrupt(
    world: StoreWorld, two_heads: tuple[str, str], sql: str
):
    before, after = two_heads
    flip(world, sql)
    with pytest.raises(Corrupt):
        world.store.diff(after, before)
    with pytest.raises(Corrupt):
        world.store.diff(after, before, limit=3)


def test_a_diff_of_what_is_not_there_is_not_found(world: StoreWorld, two_heads: tuple[str, str]):
    absent = "018f0000-0000-7000-8000-000000000000"
    for target, base in ((absent, None), (two_heads[0], absent)):
        with pytest.raises(NotFound):
            world.store.diff(target, base)


def test_what_is_erased_leaves_every_cache_also_that_of_another_process(
    world: StoreWorld, two_heads: tuple[str, str]
):
    before, after = two_heads
    other = LetheStore.open(world.path, merge_keys=None)
    for store in (world.store, other):
        assert "another text" in json.dumps(store.diff(after, before))
        assert "another text" in json.dumps(pages_of(store, before, after))
    world.store.redact(PROJECT, "m0", principal="officer", reason="asked to")
    for store in (world.store, other):
        assert "another text" not in json.dumps(store.diff(after, before))
        assert "another text" not in json.dumps(pages_of(store, before, after))
        assert "another text" not in json.dumps(store.log(PROJECT, BRANCH))
    other.close()


def pages_of(store: LetheStore, before: str, after: str) -> list[Json]:
    first = store.diff(after, before, limit=5)
    return [first, store.diff(after, before, after=first["page"]["next"])]
