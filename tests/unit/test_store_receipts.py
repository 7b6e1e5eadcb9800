"""Events, manifests and assemblies of a real store: chained, checked on the way in, reproduced byte for byte (5-lethe; 7-context)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from store_world import BRANCH, PROJECT, Json, StoreWorld, add, correct, edge, retract

from memory_git.domain.canonical import canonical_bytes
from memory_git.domain.chain import Row, check
from memory_git.domain.errors import Clash, Corrupt, Invalid, NotFound, Refused
from memory_git.domain.ids import SHARED_MAIN
from memory_git.domain.policy import Audience
from memory_git.domain.proof import Proof, verify_proof
from memory_git.domain.record import record_bytes_digest
from memory_git.domain.state_root import memory_key
from memory_git.lethe.store import LetheStore


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


# events and the baseline


def test_events_before_the_beginning_are_the_baseline_and_ops_may_target_them(tmp_path: Path) -> None:
    store = LetheStore.open(tmp_path / "lethe.db", merge_keys=None)
    for name in ("e-1", "e-2"):
        store.append_event(PROJECT, {"event_id": name, "event_type": "note", "content": f"about {name}"})
    assert store.list_projects() == []
    store.close()
    world = StoreWorld(tmp_path)
    world.store.append_event(PROJECT, {"event_id": "e-3", "event_type": "note", "content": "later"})
    assert sorted(world.records(world.root)) == ["e-1", "e-2"]
    record = world.records(world.root)["e-1"]
    assert record == {
        "memory_id": "e-1",
        "content": "about e-1",
        "event_type": "note",
        "kind": "observation",
        "sources": ["legacy_event"],
        "status": "active",
        "visibility": "internal",
    }
    head = world.commit(BRANCH, world.root, correct("e-1", "better"), edge("e-1", "e-2"))
    assert world.records(head)["e-1"]["content"] == "better"
    refusal = refused(world.commit, BRANCH, head, correct("e-3", "x"))
    assert isinstance(refusal, Invalid)
    adopted = world.commit(BRANCH, head, add("e-3", "later"))
    assert world.records(adopted)["e-3"]["content"] == "later"
    assert isinstance(refused(world.commit, "refs/topics/t", head, add("e-3", "not what it says")), Invalid)
    assert world.faults() == []
    world.close()


def test_events_are_chained(world: StoreWorld) -> None:
    for number in range(5):
        world.store.append_event(PROJECT, {"event_type": "note", "content": f"event {number}"})
    events = world.store.list_events(PROJECT)
    assert [item["seq"] for item in events] == [1, 2, 3, 4, 5]
    left_out = ("content", "salt", "event_digest")
    rows = []
    previous = None
    for item in events:
        view = {key: value for key, value in item.items() if key not in left_out}
        rows.append(Row(previous, view, item["event_digest"]))
        previous = item["event_digest"]
    assert check(rows) is None


@pytest.mark.parametrize(
    "change", [{"content": "y"}, {"event_type": "z"}, {"actor": "b"}, {"memory_id": "m"}]
)
def test_an_event_id_used_for_another_event_is_a_clash(world: StoreWorld, change: Json) -> None:
    event = {"event_id": "e", "event_type": "note", "content": "x"}
    made = world.store.append_event(PROJECT, event)
    assert world.store.append_event(PROJECT, event) == made
    refusal = refused(world.store.append_event, PROJECT, {**event, **change})
    assert (type(refusal), refusal.code) == (Clash, "event_exists")


def test_an_event_never_takes_the_id_of_a_memory(world: StoreWorld) -> None:
    """`verify` then asked the older add_memory to adopt the younger event's content, and called the store corrupt."""
    world.commit(BRANCH, world.root, add("a", "one"))
    event = {"event_id": "a", "event_type": "note", "content": "another text"}
    assert refused(world.store.append_event, PROJECT, event).code == "event_exists"
    assert world.faults() == []


# manifests


@pytest.fixture
def head(world: StoreWorld) -> str:
    return world.commit(BRANCH, world.root, add("a", "one"), add("b", "two"), add("c", "three"))


def pinned(world: StoreWorld, *names: str) -> list[Json]:
    head = world.head(BRANCH)
    return [
        {"memory_id": name, "record_digest": world.store.memory(PROJECT, head, name)["record_digest"]}
        for name in names
    ]


def input_manifest(world: StoreWorld, head: str, *names: str, **more: Any) -> Json:
    return {
        "project_id": PROJECT,
        "kind": "input",
        "ref_name": BRANCH,
        "head_changeset_id": head,
        "selected": pinned(world, *names),
        **more,
    }


def test_a_manifest_is_checked_on_the_way_in(world: StoreWorld, head: str) -> None:
    good = input_manifest(world, head, "a", "b")
    assert world.store.create_manifest(good)["selected"] == good["selected"]
    loose = world.loose(head, add("d", "four"))
    gone = world.commit(BRANCH, head, retract("c"))
    elsewhere = world.store.init_project("other")["changeset"]["changeset_id"]
    wrong: dict[str, Json] = {
        "an absent memory": {"selected": [{"memory_id": "z", "record_digest": "0" * 64}]},
        "another digest": {"selected": [{**good["selected"][0], "record_digest": "0" * 64}]},
        "no digest": {"selected": [{"memory_id": "a"}]},
        "a retired memory": {"head_changeset_id": gone, "selected": pinned(world, "c")},
        "another state root": {"state_root": "0" * 64},
        "a head that the ref does not reach": {"head_changeset_id": loose},
        "a head of another project": {"head_changeset_id": elsewhere},
        "another ref": {"ref_name": SHARED_MAIN},
        "an unknown field": {"colour": "red"},
        "an unknown kind": {"kind": "thing"},
        "no time": {"evaluated_at": "yesterday"},
        "a selection of another shape": {"selected": "all"},
        "a selection that names a memory twice": {"selected": good["selected"][:1] * 2},
        "a selection of no objects": {"selected": [1]},
        "reasons that are no texts": {"inclusion_reasons": {"a": {"b": 1}}},
        "reasons in a list": {"exclusion_reasons": ["a"]},
        "a reason of nothing": {"exclusion_reasons": {"": "expired"}},
        "conflicts that are no ids": {"unresolved_conflicts": [{"conflict_id": "0" * 64}]},
        "pins that are no names": {"pins": [None]},
        "a limit that is true": {"limit": True},
        "no budget at all": {"max_tokens": 0},
        "another projection": {"projection_version": "memory-context/v9"},
    }
    for name, change in wrong.items():
        refusal = refused(world.store.create_manifest, {**good, **change})
        assert isinstance(refusal, Invalid | NotFound), name


def test_a_head_that_a_ref_once_had_may_be_pinned_though_it_is_an_older_one(
    world: StoreWorld, head: str
) -> None:
    request = input_manifest(world, head, "a")
    world.commit(BRANCH, head, correct("a", "newer"))
    assert world.store.create_manifest(request)["head_changeset_id"] == head


def test_an_output_manifest_says_what_came_of_what(world: StoreWorld, head: str) -> None:
    request = {
        "project_id": PROJECT,
        "kind": "output",
        "base_changeset_id": world.root,
        "resulting_changeset_id": head,
    }
    made = world.store.create_manifest(request)
    assert world.store.get_manifest(made["manifest_id"]) == made
    backwards = {**request, "base_changeset_id": head, "resulting_changeset_id": world.root}
    assert isinstance(refused(world.store.create_manifest, backwards), Invalid)
    assert isinstance(refused(world.store.reproduce, made["manifest_id"]), Invalid)


def test_a_reproduction_is_the_same_bytes_after_fifty_changesets_and_a_restart_and_its_proofs_hold(
    world: StoreWorld, head: str
) -> None:
    asked = {"ref_name": BRANCH, "create_manifest": True}
    context = world.store.context(PROJECT, asked)
    before = canonical_bytes(world.store.reproduce(context["manifest_id"]))
    for number in range(50):
        head = world.commit(BRANCH, head, correct("a", f"version {number}"), add(f"n{number}", "x"))
    world.restart()
    found = world.store.reproduce(context["manifest_id"])
    assert canonical_bytes(found) == before == canonical_bytes(world.store.reproduce(context["manifest_id"]))
    assert [item["record"] for item in found["memories"]] == [item["record"] for item in context["memories"]]
    root = bytes.fromhex(found["memories_root"])
    for item in found["memories"]:
        digest = bytes.fromhex(item["record_digest"])
        assert record_bytes_digest(item["salt"], canonical_bytes(item["record"])) == item["record_digest"]
        assert verify_proof(root, memory_key(item["memory_id"]), digest, Proof.from_json(item["proof"]))
    assert "one" not in json.dumps(world.store.get_manifest(context["manifest_id"]))


def test_a_reproduction_fails_when_one_byte_of_a_record_was_flipped(tmp_path: Path) -> None:
    world = StoreWorld(tmp_path)
    world.commit(BRANCH, world.root, add("a", "one"), add("b", "two"))
    manifest = world.store.context(PROJECT, {"ref_name": BRANCH, "create_manifest": True})["manifest_id"]
    world.store.close()
    editing = apsw.Connection(str(world.path))
    (body,) = editing.execute("SELECT body FROM version WHERE memory_id = 'a'").fetchone()  # type: ignore[misc]
    editing.execute(
        "UPDATE version SET body = ? WHERE memory_id = 'a'", (bytes(body).replace(b"one", b"ona"),)
    )
    editing.close()
    world.store = LetheStore.open(world.path, merge_keys=None)
    with pytest.raises(Corrupt):
        world.store.reproduce(manifest)
    with pytest.raises(Corrupt):
        world.store.memory(PROJECT, world.head(BRANCH), "a")
    assert world.store.memory(PROJECT, world.head(BRANCH), "b")["record"]["content"] == "two"
    assert world.faults()
    world.close()


def test_what_an_audience_may_not_see_today_is_withheld_and_the_rest_is_exact(world: StoreWorld) -> None:
    secret = add("s", "mine", visibility="private", owner_principal="builder")
    world.commit(BRANCH, world.root, add("a", "one"), secret)
    manifest = world.store.context(PROJECT, {"ref_name": BRANCH, "create_manifest": True})["manifest_id"]
    reader = Audience("reader", frozenset({"internal"}))
    shown = {item["memory_id"]: item for item in world.store.reproduce(manifest, reader)["memories"]}
    assert shown["s"] == {"memory_id": "s", "withheld": True}
    whole = {item["memory_id"]: item for item in world.store.reproduce(manifest)["memories"]}
    assert shown["a"] == whole["a"]


def test_a_context_names_the_head_it_was_asked_for_only_if_the_ref_reaches_it(
    world: StoreWorld, head: str
) -> None:
    loose = world.loose(head, add("d", "not accepted"))
    for wrong in (loose, world.store.init_project("other")["changeset"]["changeset_id"]):
        asked = {"ref_name": BRANCH, "head_changeset_id": wrong}
        assert isinstance(refused(world.store.context, PROJECT, asked), NotFound)
    older = world.store.context(PROJECT, {"ref_name": BRANCH, "head_changeset_id": world.root})
    assert (older["total_active"], older["memories"]) == (0, [])


def test_counts_and_order_are_those_of_the_audience_alone(world: StoreWorld, head: str) -> None:
    """Twin worlds: with and without the secret, to who may not see it (11, step 16)."""
    reader = Audience("reader", frozenset({"internal"}))
    asked = {"ref_name": BRANCH, "query": "one two", "now": "2026-01-01T00:00:00Z"}

    def seen() -> list[Any]:
        now = world.head(BRANCH)
        context = world.store.context(PROJECT, asked, reader)
        page = world.store.memories(PROJECT, now, audience=reader)
        found = world.store.search(PROJECT, now, "one two three", audience=reader)
        left_out = ("head_changeset_id", "state_root")
        return [
            {key: value for key, value in context.items() if key not in left_out},
            page,
            found,
        ]

    before = seen()
    secret = {"visibility": "private", "owner_principal": "builder", "pinned": True}
    world.commit(BRANCH, head, add("s", "one two three", **secret), edge("a", "s"), edge("s", "b"))
    assert seen() == before


# assemblies


def test_a_sessions_assemblies_come_in_their_order_over_projects(world: StoreWorld, head: str) -> None:
    other = world.store.init_project("a-first")["changeset"]["changeset_id"]
    item = {"memory_id": "a", "content_digest": "0" * 64}
    made = []
    for project, at in ((PROJECT, head), ("a-first", other), (PROJECT, head)):
        assembly = {"project_id": project, "head_changeset_id": at, "items": [item]}
        made.append(world.store.record_assembly("s", assembly)["assembly_id"])
    assert [row["assembly_id"] for row in world.store.list_assemblies("s")] == made
    assert world.store.verify("a-first")["ok"]


def test_an_assembly_of_another_projects_or_another_heads_manifest_is_refused(
    world: StoreWorld, head: str
) -> None:
    manifest = world.store.create_manifest(input_manifest(world, head, "a"))["manifest_id"]
    other = world.store.init_project("other")["changeset"]["changeset_id"]
    assembly = {"project_id": PROJECT, "head_changeset_id": head, "manifest_id": manifest, "items": []}
    assert world.store.record_assembly("s", assembly)["manifest_id"] == manifest
    elsewhere = {**assembly, "project_id": "other", "head_changeset_id": other}
    assert isinstance(refused(world.store.record_assembly, "s", elsewhere), NotFound)
    older = {**assembly, "head_changeset_id": world.root}
    assert isinstance(refused(world.store.record_assembly, "s", older), Invalid)


def test_what_an_assembly_says_has_its_type(world: StoreWorld, head: str) -> None:
    item = {"memory_id": "a", "content_digest": "0" * 64}
    good = {"project_id": PROJECT, "head_changeset_id": head, "items": [item]}
    for wrong in (
        {"items": [{**item, "tokens": -1}]},
        {"items": [{**item, "tokens": True}]},
        {"items": [{**item, "tokens": "many"}]},
        {"token_counts": {"total": -1}},
        {"token_counts": {"total": False}},
        {"token_counts": [1]},
        {"model": {"name": "m"}},
    ):
        refusal = refused(world.store.record_assembly, "s", {**good, **wrong})
        assert refusal.code == "invalid_assembly", wrong
    counted = {**good, "token_counts": {"total": 0}, "model": "m", "items": [{**item, "tokens": 0}]}
    assert world.store.record_assembly("s", counted)["token_counts"] == {"total": 0}


def test_a_token_budget_drops_whole_memories_from_the_low_end_and_a_larger_one_shows_all_of_a_smaller_one(
    world: StoreWorld, head: str
) -> None:
    for number, size in enumerate((400, 4_000, 40, 800)):
        head = world.commit(BRANCH, head, add(f"sized-{number}", "x" * size))
    everything = world.store.context(PROJECT, {"ref_name": BRANCH})
    order = [item["memory_id"] for item in everything["memories"]]
    before: list[str] = []
    for budget in (1, 100, 201, 215, 1_200, 1_400, everything["estimated_tokens"]):
        found = world.store.context(PROJECT, {"ref_name": BRANCH, "max_tokens": budget})
        shown = [item["memory_id"] for item in found["memories"]]
        assert shown == order[: len(shown)]
        assert set(before) <= set(shown)
        assert found["estimated_tokens"] <= budget
        assert set(found["exclusion_reasons"]) == set(order[len(shown) :])
        whole = {item["memory_id"]: item for item in everything["memories"]}
        assert all(item == whole[item["memory_id"]] for item in found["memories"])
        before = shown
    assert before == order
