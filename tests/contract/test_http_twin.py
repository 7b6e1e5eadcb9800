"""One store asked twice: directly, and through the client and a real server. Every reading and every refusal is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memory_git.domain.envelope import MergeKeys
from memory_git.domain.errors import Refused
from memory_git.domain.ids import SHARED_MAIN
from memory_git.domain.policy import Audience
from memory_git.http.lethe_app import create_lethe_app
from memory_git.http.serving import running
from memory_git.lethe.client import LetheClient
from memory_git.lethe.protocol import Json, Lethe
from memory_git.lethe.store import LetheStore

KEY = "the-key-of-this-test"
ABSENT = "018f0000-0000-7000-8000-000000000000"
LEFT, RIGHT = "refs/topics/left", "refs/topics/right"
READER = Audience("reviewer", frozenset({"shared", "public"}))


@dataclass
class World:
    """A store with history, and its client."""

    store: Lethe
    client: Lethe
    root: str
    base: str
    left: str
    right: str
    manifest: str


def _request(ref: str, head: str, *ops: Json, key: str) -> Json:
    return {
        "project_id": "atlas",
        "ref_name": ref,
        "parent_ids": [head],
        "author_principal": key,
        "message": f"work {key}",
        "idempotency_key": key,
        "ops": list(ops),
        "expected_head": head,
        "advance_ref": True,
        "create_ref_if_missing": True,
    }


def _add(memory_id: str, content: str, **payload: Any) -> Json:
    return {"op_type": "add_memory", "payload": {"memory_id": memory_id, "content": content, **payload}}


def _correct(memory_id: str, content: str) -> Json:
    return {"op_type": "correct_memory", "target_event_id": memory_id, "payload": {"content": content}}


@pytest.fixture(scope="module")
def world(place_of_module: Path | str) -> Iterator[World]:
    keys = MergeKeys((("k1", "a-merge-key-of-more-than-32-characters"),))
    store = LetheStore.open(place_of_module, merge_keys=keys)
    store.append_event("atlas", {"event_type": "note", "content": "before the beginning", "event_id": "e-1"})
    root = store.init_project("atlas")["changeset"]["changeset_id"]

    def commit(ref: str, head: str, *ops: Json, key: str) -> str:
        made: str = store.create_changeset(_request(ref, head, *ops, key=key))[0]["changeset_id"]
        return made

    secret = _add("secret", "ü 日本 private", visibility="private", owner_principal="base", confidence=0.5)
    first = commit(
        LEFT, root, _add("a", "one", visibility="shared"), _add("b", "two", tags=["x"]), secret, key="base"
    )
    store.create_branch("atlas", RIGHT, first, "right")
    left = commit(LEFT, first, _correct("a", "left"), key="left")
    right = commit(RIGHT, first, _correct("a", "right"), _add("c", "three"), key="right")
    found = store.detect_conflicts("atlas", first, left, right)
    store.persist_conflicts("atlas", "018f0000-0000-7000-8000-0000000000aa", found)
    pinned = store.context("atlas", {"ref_name": LEFT, "create_manifest": True, "principal": "left"})
    with running(create_lethe_app(store, api_key=KEY), on_stop=store.feed.close) as where:
        client = LetheClient(where.url, KEY)
        yield World(store, client, root, first, left, right, pinned["manifest_id"])
        client.close()
    store.close()


NOW = "2026-01-01T00:00:00Z"
READINGS: dict[str, Callable[[Lethe, World], Any]] = {
    "projects": lambda lethe, _: lethe.list_projects(),
    "a project begun again": lambda lethe, _: lethe.init_project("atlas"),
    "refs": lambda lethe, _: lethe.list_refs("atlas"),
    "a ref": lambda lethe, _: lethe.resolve_ref("atlas", LEFT),
    "a ref at a changeset": lambda lethe, world: lethe.resolve_ref("atlas", LEFT, world.base),
    "a ref's log": lambda lethe, _: lethe.ref_log("atlas", RIGHT),
    "a changeset": lambda lethe, world: lethe.get_changeset(world.base),
    "a changeset for a reader": lambda lethe, world: lethe.get_changeset(world.base, READER),
    "a log": lambda lethe, _: lethe.log("atlas", LEFT),
    "a page of a log": lambda lethe, _: lethe.log("atlas", LEFT, limit=1, first_parent=True, audience=READER),
    "ancestry": lambda lethe, world: lethe.is_ancestor("atlas", world.left, world.right),
    "merge bases": lambda lethe, world: lethe.merge_base("atlas", world.left, world.right),
    "authors": lambda lethe, world: lethe.authors("atlas", world.right, world.root),
    "a diff": lambda lethe, world: lethe.diff(world.right, world.left),
    "a page of a diff": lambda lethe, world: lethe.diff(world.right, world.left, limit=1),
    "the next page of a diff": lambda lethe, world: lethe.diff(
        world.right,
        world.left,
        READER,
        after=lethe.diff(world.right, world.left, limit=1)["page"]["next"],
    ),
    "a diff for a reader": lambda lethe, world: lethe.diff(world.base, None, READER),
    "memories": lambda lethe, world: lethe.memories("atlas", world.right),
    "a page of memories": lambda lethe, world: lethe.memories(
        "atlas", world.right, limit=1, kind="observation"
    ),
    "memories for a reader": lambda lethe, world: lethe.memories("atlas", world.right, audience=READER),
    "a memory": lambda lethe, world: lethe.memory("atlas", world.right, "a"),
    "a memory's history": lambda lethe, world: lethe.memory_history("atlas", world.right, "a", READER),
    "a search": lambda lethe, world: lethe.search("atlas", world.right, "right three"),
    "a search in another script": lambda lethe, world: lethe.search("atlas", world.right, "日本"),
    "a merge plan": lambda lethe, world: lethe.plan_merge("atlas", world.left, world.right),
    "a rebase plan": lambda lethe, world: lethe.plan_rebase("atlas", world.right, world.left),
    "a revert plan": lambda lethe, world: lethe.plan_revert("atlas", world.left, world.left),
    "a revert plan of a range": lambda lethe, world: lethe.plan_revert(
        "atlas", world.left, world.left, from_changeset_id=world.root
    ),
    "a cherry-pick plan": lambda lethe, world: lethe.plan_cherry_pick(
        "atlas", [{"changeset_id": world.right, "ordinal": 1}], world.left
    ),
    "conflicts found": lambda lethe, world: lethe.detect_conflicts(
        "atlas", world.base, world.left, world.right
    ),
    "conflicts stored": lambda lethe, _: lethe.list_conflicts("atlas", status="open"),
    "a context": lambda lethe, _: lethe.context("atlas", {"ref_name": LEFT, "query": "left", "now": NOW}),
    "a context for a reader": lambda lethe, _: lethe.context("atlas", {"ref_name": LEFT, "now": NOW}, READER),
    "a manifest": lambda lethe, world: lethe.get_manifest(world.manifest),
    "a reproduction": lambda lethe, world: lethe.reproduce(world.manifest),
    "events": lambda lethe, _: lethe.list_events("atlas"),
    "an event": lambda lethe, _: lethe.get_event("e-1"),
    "advances": lambda lethe, _: lethe.list_advances("atlas"),
    "a verification": lambda lethe, _: lethe.verify("atlas"),
    "health": lambda lethe, _: lethe.health(),
    "readiness": lambda lethe, _: lethe.ready(),
}
REFUSALS: dict[str, Callable[[Lethe, World], Any]] = {
    "a bad project": lambda lethe, _: lethe.list_refs("Atlas"),
    "an absent project": lambda lethe, _: lethe.list_refs("nowhere"),
    "a bad ref": lambda lethe, _: lethe.resolve_ref("atlas", "heads/main"),
    "an absent ref": lambda lethe, _: lethe.resolve_ref("atlas", "refs/topics/none"),
    "a bad time": lambda lethe, _: lethe.resolve_ref("atlas", LEFT, "soon"),
    "a ref that exists": lambda lethe, world: lethe.create_branch("atlas", LEFT, world.root, "left"),
    "a protected ref": lambda lethe, world: lethe.create_branch("atlas", "refs/shared/x", world.root, "left"),
    "a lost race": lambda lethe, world: lethe.advance_ref("atlas", LEFT, world.root, world.left),
    "no descendant": lambda lethe, world: lethe.advance_ref("atlas", LEFT, world.left, world.right),
    "an absent changeset": lambda lethe, _: lethe.get_changeset(ABSENT),
    "an absent head": lambda lethe, _: lethe.memories("atlas", ABSENT),
    "an absent memory": lambda lethe, world: lethe.memory("atlas", world.left, "none"),
    "a memory of another": lambda lethe, world: lethe.memory("atlas", world.left, "secret", READER),
    "a limit of nothing": lambda lethe, world: lethe.memories("atlas", world.left, limit=0),
    "a limit too large": lambda lethe, _: lethe.log("atlas", LEFT, limit=100_000),
    "an unknown cursor": lambda lethe, world: lethe.memories("atlas", world.left, after="?"),
    "a page of a diff without an end": lambda lethe, world: lethe.diff(world.right, limit=1001),
    "a range that is none": lambda lethe, world: lethe.plan_revert(
        "atlas", world.left, world.left, from_changeset_id=world.right
    ),
    "an unknown place in a diff": lambda lethe, world: lethe.diff(world.right, after="?"),
    "a place in another diff": lambda lethe, world: lethe.diff(
        world.left, after=lethe.diff(world.right, world.left, limit=1)["page"]["next"]
    ),
    "an unknown place in a log": lambda lethe, _: lethe.log("atlas", LEFT, before="?"),
    "a stale commit": lambda lethe, world: lethe.create_changeset(
        _request(LEFT, world.base, _add("n", "n"), key="n")
    ),
    "another under a key": lambda lethe, world: lethe.create_changeset(
        _request(LEFT, world.left, _add("n", "n"), key="left")
    ),
    "faulty ops": lambda lethe, world: lethe.create_changeset(
        _request(LEFT, world.left, {}, _add("", ""), key="f")
    ),
    "a request of another shape": lambda lethe, _: lethe.create_changeset(
        {"project_id": "atlas", "colour": 1}
    ),
    "an empty request": lambda lethe, _: lethe.create_changeset({}),
    "a number that JSON has not": lambda lethe, world: lethe.create_changeset(
        _request(LEFT, world.left, _add("n", "n", confidence=float("nan")), key="nan")
    ),
    "an integer beyond JSON": lambda lethe, world: lethe.create_changeset(
        _request(LEFT, world.left, _add("n", "n", extra={"n": 2**60}), key="big")
    ),
    "a lone surrogate": lambda lethe, world: lethe.create_changeset(
        _request(LEFT, world.left, _add("n", "\ud800"), key="s")
    ),
    "a forged merge": lambda lethe, world: lethe.merge_ref(
        "atlas",
        {
            "ref_name": SHARED_MAIN,
            "expected_head": world.root,
            "new_head": world.left,
            "merge_proposal_id": ABSENT,
            "reviewer_principal": "reviewer",
            "merge_authorization": '{"envelope": {}, "signature": "00"}',
        },
    ),
    "an empty merge": lambda lethe, _: lethe.merge_ref("atlas", {}),
    "an unknown resolution": lambda lethe, _: lethe.resolve_conflict(
        "atlas", "0" * 64, outcome="newest", resolution_note="", principal="x"
    ),
    "an unknown status": lambda lethe, _: lethe.retire_conflicts("atlas", ABSENT, "gone"),
    "conflicts that nobody found": lambda lethe, _: lethe.persist_conflicts(
        "atlas", ABSENT, [{"conflict_id": "x"}]
    ),
    "a head that the ref does not reach": lambda lethe, world: lethe.context(
        "atlas", {"ref_name": LEFT, "head_changeset_id": world.right}
    ),
    "a context of another shape": lambda lethe, _: lethe.context("atlas", {"ref_name": LEFT, "limit": "ten"}),
    "a manifest of another shape": lambda lethe, _: lethe.create_manifest(
        {"project_id": "atlas", "kind": "other"}
    ),
    "an absent manifest": lambda lethe, _: lethe.reproduce(ABSENT),
    "an event of another shape": lambda lethe, _: lethe.append_event("atlas", {"content": 1}),
    "an event's id again": lambda lethe, _: lethe.append_event(
        "atlas", {"event_type": "note", "content": "other", "event_id": "e-1"}
    ),
    "an absent event": lambda lethe, _: lethe.get_event("e-2"),
    "an assembly of another shape": lambda lethe, _: lethe.record_assembly(
        "s", {"project_id": "atlas", "items": 1}
    ),
    "an absent assembly": lambda lethe, _: lethe.give_feedback(ABSENT, "good"),
    "an unknown verdict": lambda lethe, _: lethe.give_feedback(ABSENT, "splendid"),
    "ops that are none": lambda lethe, world: lethe.plan_cherry_pick("atlas", [{"ordinal": "x"}], world.left),
    "a backup into nothing": lambda lethe, _: lethe.backup("/no/such/directory"),
}


@pytest.mark.parametrize("reading", READINGS)
def test_a_reading_is_the_same_through_http(world: World, reading: str) -> None:
    ask = READINGS[reading]
    direct = ask(world.store, world)
    assert direct is not None
    assert ask(world.client, world) == direct


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refusal_is_the_same_through_http(world: World, refusal: str) -> None:
    ask = REFUSALS[refusal]
    told = []
    for lethe in (world.store, world.client):
        with pytest.raises(Refused) as caught:
            ask(lethe, world)
        told.append((type(caught.value), caught.value.code, caught.value.message, caught.value.facts))
    assert told[0] == told[1]
