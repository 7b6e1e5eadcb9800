"""The client protocol of Lethe: one suite for the store itself and for the client over a real server.

`store` is one and the same kind of database; `lethe` is how it is asked. What a test expects is written here, so that both
must give the same answers and the same errors; `test_http_twin.py` compares the two side by side besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_git.domain.envelope import MergeKeys
from memory_git.domain.errors import Clash, Invalid, NotAllowed, NotFound, Refused
from memory_git.domain.ids import SHARED_MAIN
from memory_git.domain.policy import Audience
from memory_git.http.lethe_app import create_lethe_app
from memory_git.http.serving import running
from memory_git.lethe.client import LetheClient
from memory_git.lethe.protocol import Json, Lethe
from memory_git.lethe.store import LetheStore

KEYS = MergeKeys((("k1", "a-merge-key-of-more-than-32-characters"),))
API_KEY = "the-key-of-this-test"
ABSENT = "018f0000-0000-7000-8000-000000000000"
BRANCH = "refs/agents/builder/main"
READER = Audience("reviewer", frozenset({"internal", "shared", "public"}))


@pytest.fixture(params=["direct", "http"])
def lethe(request: pytest.FixtureRequest, place: Path | str) -> Iterator[Lethe]:
    store = LetheStore.open(place, merge_keys=KEYS)
    try:
        if request.param == "direct":
            yield store
            return
        with running(create_lethe_app(store, api_key=API_KEY), on_stop=store.feed.close) as where:
            client = LetheClient(where.url, API_KEY)
            yield client
            client.close()
    finally:
        store.close()


@pytest.fixture
def root(lethe: Lethe) -> str:
    """Gives the root of the project atlas."""
    head: str = lethe.init_project("atlas")["changeset"]["changeset_id"]
    return head


def request_of(head: str, *ops: Json, key: str, ref: str = BRANCH, **more: Any) -> Json:
    """Gives a create request that moves a ref from a head."""
    return {
        "project_id": "atlas",
        "ref_name": ref,
        "parent_ids": [head],
        "author_principal": "builder",
        "message": f"work {key}",
        "idempotency_key": key,
        "ops": list(ops),
        "expected_head": head,
        "advance_ref": True,
        "create_ref_if_missing": True,
        **more,
    }


def add(memory_id: str, content: str, **payload: Any) -> Json:
    return {"op_type": "add_memory", "payload": {"memory_id": memory_id, "content": content, **payload}}


def correct(memory_id: str, content: str) -> Json:
    return {"op_type": "correct_memory", "target_event_id": memory_id, "payload": {"content": content}}


def commit(lethe: Lethe, head: str, *ops: Json, key: str, ref: str = BRANCH, **more: Any) -> str:
    changeset, _ = lethe.create_changeset(request_of(head, *ops, key=key, ref=ref, **more))
    changeset_id: str = changeset["changeset_id"]
    return changeset_id


def refused(call: Any, *arguments: Any, **named: Any) -> Refused:
    """Gives the refusal of a call."""
    with pytest.raises(Refused) as caught:
        call(*arguments, **named)
    return caught.value


# projects and refs


def test_a_project_starts_with_a_protected_shared_ref_at_a_root_without_parents_and_starting_again_changes_nothing(
    lethe: Lethe,
) -> None:
    begun = lethe.init_project("atlas")
    assert begun["changeset"]["parent_ids"] == []
    assert begun["ref"]["ref_name"] == SHARED_MAIN
    assert begun["ref"]["protected"] is True
    assert begun["ref"]["head_changeset_id"] == begun["changeset"]["changeset_id"]
    assert lethe.init_project("atlas") == begun
    assert lethe.list_projects() == ["atlas"]


@pytest.mark.parametrize("project", ["Atlas", "", "-a", "projects", "a/b", "a" * 129, "..", "a b", "%41"])
def test_a_bad_project_id_is_invalid_in_every_verb(lethe: Lethe, project: str) -> None:
    assert refused(lethe.init_project, project).code == "bad_project_id"
    assert refused(lethe.list_refs, project).code == "bad_project_id"


def test_an_absent_project_is_not_found(lethe: Lethe) -> None:
    assert isinstance(refused(lethe.list_refs, "nowhere"), NotFound)
    assert isinstance(refused(lethe.log, "nowhere", SHARED_MAIN), NotFound)


def test_a_branch_is_made_once_and_is_the_same_when_made_again(lethe: Lethe, root: str) -> None:
    ref = lethe.create_branch("atlas", BRANCH, root, "builder")
    assert (ref["head_changeset_id"], ref["protected"], ref["updated_by"]) == (root, False, "builder")
    assert lethe.create_branch("atlas", BRANCH, root, "builder") == ref
    assert lethe.list_refs("atlas") == [ref, lethe.resolve_ref("atlas", SHARED_MAIN)]
    head = commit(lethe, root, add("a", "one"), key="1")
    clash = refused(lethe.create_branch, "atlas", BRANCH, root, "builder")
    assert (type(clash), clash.code, clash.facts["current_head"]) == (Clash, "ref_exists", head)


@pytest.mark.parametrize(("ref", "protected"), [("refs/shared/other", False), (BRANCH, True)])
def test_nobody_makes_a_protected_ref(lethe: Lethe, root: str, ref: str, protected: bool) -> None:
    refusal = refused(lethe.create_branch, "atlas", ref, root, "builder", protected)
    assert (type(refusal), refusal.code) == (NotAllowed, "protected_ref")


def test_a_bad_ref_name_is_invalid_and_an_absent_ref_is_not_found(lethe: Lethe, root: str) -> None:
    assert refused(lethe.create_branch, "atlas", "refs/agents/../x", root, "builder").code == "bad_ref_name"
    assert isinstance(refused(lethe.resolve_ref, "atlas", "refs/topics/none"), NotFound)
    assert isinstance(refused(lethe.create_branch, "atlas", "refs/topics/t", ABSENT, "builder"), NotFound)


def test_a_ref_advances_to_a_descendant_by_compare_and_swap_and_its_log_tells_each_move(
    lethe: Lethe, root: str
) -> None:
    lethe.create_branch("atlas", BRANCH, root, "builder")
    head = commit(lethe, root, add("a", "one"), key="1", ref="refs/topics/t")
    moved = lethe.advance_ref("atlas", BRANCH, root, head, "builder")
    assert (moved["head_changeset_id"], moved["version"]) == (head, 2)
    lost = refused(lethe.advance_ref, "atlas", BRANCH, root, head, "builder")
    assert (type(lost), lost.code, lost.facts["current_head"]) == (Clash, "ref_moved", head)
    assert isinstance(refused(lethe.advance_ref, "atlas", BRANCH, head, root, "builder"), Clash)
    assert refused(lethe.advance_ref, "atlas", SHARED_MAIN, root, head, "builder").code == "protected_ref"
    moves = lethe.ref_log("atlas", BRANCH)
    assert [(move["from_head"], move["to_head"], move["principal"]) for move in moves] == [
        (None, root, "builder"),
        (root, head, "builder"),
    ]
    assert lethe.resolve_ref("atlas", BRANCH, root)["head_changeset_id"] == root
    assert lethe.resolve_ref("atlas", BRANCH, moves[1]["at"])["head_changeset_id"] == head
    assert isinstance(refused(lethe.resolve_ref, "atlas", BRANCH, "2000-01-01T00:00:00Z"), NotFound)
    assert isinstance(refused(lethe.resolve_ref, "atlas", BRANCH, "yesterday"), Invalid)


# changesets


def test_a_changeset_is_stored_with_ids_salts_and_digests_and_read_back_equal(
    lethe: Lethe, root: str
) -> None:
    made, replayed = lethe.create_changeset(request_of(root, add("a", "one"), key="1", topic_id="t"))
    assert not replayed
    assert lethe.get_changeset(made["changeset_id"]) == made
    assert made["parent_ids"] == [root]
    assert made["topic_id"] == "t"
    assert [op["payload"]["content"] for op in made["ops"]] == ["one"]
    assert len(made["integrity_digest"]) == len(made["ops"][0]["op_digest"]) == 64
    assert lethe.resolve_ref("atlas", BRANCH)["head_changeset_id"] == made["changeset_id"]


def test_the_same_request_again_is_a_replay_and_another_under_its_key_is_refused(
    lethe: Lethe, root: str
) -> None:
    made, _ = lethe.create_changeset(request_of(root, add("a", "one"), key="1"))
    assert lethe.create_changeset(request_of(root, add("a", "one"), key="1")) == (made, True)
    refusal = refused(lethe.create_changeset, request_of(root, add("a", "two"), key="1"))
    assert (type(refusal), refusal.code) == (Clash, "idempotency_mismatch")


def test_a_stale_head_is_a_clash_with_the_current_one(lethe: Lethe, root: str) -> None:
    head = commit(lethe, root, add("a", "one"), key="1")
    refusal = refused(lethe.create_changeset, request_of(root, add("b", "two"), key="2"))
    assert (type(refusal), refusal.code, refusal.facts["current_head"]) == (Clash, "ref_moved", head)


def test_all_faults_of_a_changeset_come_at_once_without_values(lethe: Lethe, root: str) -> None:
    ops = [
        {"op_type": "no_such_op", "payload": {}},
        add("a", "  "),
        correct("absent", "x"),
        add("b", "ok", colour="red"),
    ]
    refusal = refused(lethe.create_changeset, request_of(root, *ops, key="1"))
    assert isinstance(refusal, Invalid)
    assert {fault.ordinal for fault in refusal.faults} == {0, 1, 2, 3}
    assert refusal.facts["faults"] == [fault.to_json() for fault in refusal.faults]
    assert "red" not in str(refusal.facts)
    assert isinstance(refused(lethe.resolve_ref, "atlas", BRANCH), NotFound)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ops": "many"},
        {"ops": [1, None]},
        {"ops": [{"op_type": ["add_memory"]}]},
        {"ops": []},
        {"parent_ids": "one"},
        {"parent_ids": [1]},
        {"message": 7},
        {"idempotency_key": ""},
        {"advance_ref": "yes"},
        {"colour": "red"},
        {"author_principal": None},
        {"project_id": 5},
        {"ref_name": {}},
        {"evidence": {}},
        {"expected_head": 1.5},
    ],
    ids="-".join,
)
def test_a_create_request_of_another_shape_is_invalid(lethe: Lethe, root: str, wrong: Json) -> None:
    assert isinstance(
        refused(lethe.create_changeset, request_of(root, add("a", "one"), key="1") | wrong), Invalid
    )


def test_a_commit_to_a_protected_ref_is_refused_in_every_form(lethe: Lethe, root: str) -> None:
    direct = request_of(root, add("a", "one"), key="1", ref=SHARED_MAIN)
    asked = request_of(root, add("a", "one"), key="2", protected=True)
    for request in (direct, asked):
        refusal = refused(lethe.create_changeset, request)
        assert (type(refusal), refusal.code) == (NotAllowed, "protected_ref")


def test_an_absent_changeset_is_not_found_whatever_its_form(lethe: Lethe, root: str) -> None:
    for name in (ABSENT, "x", "", "../projects", "a/b", "é"):
        assert isinstance(refused(lethe.get_changeset, name), NotFound), name
        assert isinstance(refused(lethe.diff, name), NotFound), name


def test_history_is_read_in_pages_newest_first(lethe: Lethe, root: str) -> None:
    heads = [root]
    for number in range(5):
        heads.append(commit(lethe, heads[-1], add(f"m{number}", "text"), key=str(number)))
    first = lethe.log("atlas", BRANCH, limit=4)
    rest = lethe.log("atlas", BRANCH, limit=4, before=first["next"])
    ids = [item["changeset_id"] for page in (first, rest) for item in page["changesets"]]
    assert ids == heads[::-1]
    assert rest.get("next") is None
    assert [item["changeset_id"] for item in lethe.log("atlas", head=heads[1])["changesets"]] == heads[1::-1]


def test_ancestry_bases_and_authors(lethe: Lethe, root: str) -> None:
    left = commit(lethe, root, add("a", "one"), key="1")
    right = commit(
        lethe, root, add("b", "two"), key="2", ref="refs/agents/tester/main", author_principal="tester"
    )
    assert lethe.is_ancestor("atlas", root, left) is True
    assert lethe.is_ancestor("atlas", left, left) is True
    assert lethe.is_ancestor("atlas", left, right) is False
    assert lethe.merge_base("atlas", left, right) == [root]
    assert lethe.authors("atlas", right, root) == ["tester"]
    assert isinstance(refused(lethe.merge_base, "atlas", left, ABSENT), NotFound)


# states


def test_a_state_is_read_whole_by_pages_and_one_by_one_with_history(lethe: Lethe, root: str) -> None:
    first = commit(lethe, root, *(add(f"m/{number}", f"text {number}") for number in range(5)), key="1")
    head = commit(lethe, first, correct("m/2", "better"), key="2")
    page = lethe.memories("atlas", head, limit=3)
    rest = lethe.memories("atlas", head, limit=3, after=page["next"])
    assert page["total"] == 5
    assert {entry["memory_id"] for part in (page, rest) for entry in part["memories"]} == {
        f"m/{n}" for n in range(5)
    }
    one = lethe.memory("atlas", head, "m/2")
    assert (one["record"]["content"], one["version"], one["introduced_by"], one["changed_by"]) == (
        "better",
        2,
        first,
        head,
    )
    versions = lethe.memory_history("atlas", head, "m/2")["versions"]
    assert [version["record"]["content"] for version in versions] == ["better", "text 2"]
    assert [version["version"] for version in versions] == [2, 1]
    assert isinstance(refused(lethe.memory, "atlas", head, "absent"), NotFound)
    assert lethe.memories("atlas", root)["total"] == 0


def test_the_records_of_memories_at_states_are_those_of_each_one(lethe: Lethe, root: str) -> None:
    head = commit(lethe, root, add("a", "one"), add("b", "two"), key="1")
    found = lethe.records("atlas", [root, head], ["a", "b", "absent"])
    assert found == {name: [lethe.memory("atlas", head, name)["record"]] for name in ("a", "b")}
    assert lethe.records("atlas", [head], []) == {}


def test_a_memory_id_of_any_script_travels_whole(lethe: Lethe, root: str) -> None:
    names = ["a b&c=d#e?f%2F/..", "日本語", "+", "🙂", "a;b"]
    head = commit(lethe, root, *(add(name, f"about {number}") for number, name in enumerate(names)), key="1")
    for number, name in enumerate(names):
        assert lethe.memory("atlas", head, name)["record"]["content"] == f"about {number}"


def test_the_private_record_of_another_is_absent_from_every_reading(lethe: Lethe, root: str) -> None:
    hidden = add("secret", "the launch is on Friday", visibility="private", owner_principal="builder")
    head = commit(lethe, root, add("open", "the launch is public"), hidden, key="1")
    owner = Audience("builder", frozenset({"internal"}))
    assert lethe.memories("atlas", head, audience=READER)["total"] == 1
    assert lethe.memories("atlas", head, audience=owner)["total"] == 2
    assert isinstance(refused(lethe.memory, "atlas", head, "secret", READER), NotFound)
    assert [hit["memory_id"] for hit in lethe.search("atlas", head, "launch", audience=READER)["hits"]] == [
        "open"
    ]
    assert len(lethe.search("atlas", head, "launch", audience=owner)["hits"]) == 2
    withheld = lethe.get_changeset(head, READER)["ops"][1]
    assert withheld["withheld"] is True
    assert "payload" not in withheld
    assert "Friday" not in str(lethe.diff(head, root, READER))
    nobody = Audience("stranger", frozenset())
    assert lethe.memories("atlas", head, audience=nobody)["total"] == 0


def test_a_diff_tells_before_and_after_and_is_empty_between_equals(lethe: Lethe, root: str) -> None:
    first = commit(lethe, root, add("a", "old"), key="1")
    head = commit(lethe, first, correct("a", "new"), add("b", "more"), key="2")
    found = lethe.diff(head)
    assert found["base_changeset_id"] == first
    assert [item["after"]["memory_id"] for item in found["memories_added"]] == ["b"]
    (corrected,) = found["corrections_proposed"]
    assert (corrected["before"]["content"], corrected["after"]["content"]) == ("old", "new")
    assert lethe.diff(head, first) == found
    equal = lethe.diff(head, head)
    assert not equal["memories_added"]
    assert not equal["corrections_proposed"]


# plans and conflicts


def test_plans_write_nothing_and_say_what_they_would_do(lethe: Lethe, root: str) -> None:
    left = commit(lethe, root, add("a", "one"), key="1")
    side = "refs/agents/tester/main"
    right = commit(lethe, root, add("b", "two"), key="2", ref=side, author_principal="tester")
    refs = lethe.list_refs("atlas")
    assert lethe.plan_merge("atlas", root, left)["strategy"] == "fast_forward"
    assert lethe.plan_merge("atlas", left, root)["strategy"] == "up_to_date"
    merged = lethe.plan_merge("atlas", left, right)
    assert (merged["strategy"], merged["unsettled"], merged["authors"]) == ("merge_commit", [], ["tester"])
    rebased = lethe.plan_rebase("atlas", right, left)
    assert rebased["steps"][0]["source_changeset_id"] == right
    picked = lethe.plan_cherry_pick("atlas", [{"changeset_id": right, "ordinal": 0}], left)
    assert picked["steps"][0]["ops"][0]["payload"]["content"] == "two"
    reverted = lethe.plan_revert("atlas", left, left)
    assert reverted["steps"][0]["ops"]
    assert lethe.list_refs("atlas") == refs
    assert isinstance(refused(lethe.plan_rebase, "atlas", ABSENT, left), NotFound)


def test_conflicts_are_found_kept_resolved_and_retired(lethe: Lethe, root: str) -> None:
    base = commit(lethe, root, add("a", "old"), key="1")
    left = commit(lethe, base, correct("a", "left"), key="2", ref="refs/topics/left", author_principal="left")
    right = commit(
        lethe, base, correct("a", "right"), key="3", ref="refs/topics/right", author_principal="right"
    )
    found = lethe.detect_conflicts("atlas", base, left, right)
    (conflict,) = [item for item in found if item["conflict_type"] == "concurrent_change"]
    assert conflict["severity"] == "blocking"
    assert conflict["memory_ids"] == ["a"]
    assert lethe.list_conflicts("atlas") == []
    proposal = "018f0000-0000-7000-8000-0000000000aa"
    assert lethe.persist_conflicts("atlas", proposal, found) == len(found)
    assert lethe.persist_conflicts("atlas", proposal, found) == len(found)
    stored = {item["conflict_id"]: item for item in lethe.list_conflicts("atlas", proposal_id=proposal)}
    assert len(stored) == len(found)
    assert stored[conflict["conflict_id"]]["status"] == "open"
    own = refused(
        lethe.resolve_conflict,
        "atlas",
        conflict["conflict_id"],
        outcome="keep_left",
        resolution_note="mine",
        principal="left",
    )
    assert isinstance(own, NotAllowed)
    resolved = lethe.resolve_conflict(
        "atlas",
        conflict["conflict_id"],
        outcome="keep_left",
        resolution_note="tried it",
        principal="reviewer",
    )
    assert (resolved["status"], resolved["outcome"], resolved["resolved_by"]) == (
        "resolved",
        "keep_left",
        "reviewer",
    )
    assert [item["conflict_id"] for item in lethe.list_conflicts("atlas", status="resolved")] == [
        conflict["conflict_id"]
    ]
    assert lethe.retire_conflicts("atlas", proposal, "canceled") == len(found) - 1
    unknown = refused(
        lethe.resolve_conflict, "atlas", "0" * 64, outcome="both", resolution_note="x", principal="reviewer"
    )
    assert isinstance(unknown, NotFound)


@pytest.mark.parametrize("authorization", ["{}", "not json", '{"envelope": {}, "signature": "00"}'])
def test_a_merge_without_a_good_envelope_is_refused(lethe: Lethe, root: str, authorization: str) -> None:
    head = commit(lethe, root, add("a", "one"), key="1")
    request = {
        "ref_name": SHARED_MAIN,
        "expected_head": root,
        "new_head": head,
        "merge_proposal_id": "018f0000-0000-7000-8000-0000000000aa",
        "reviewer_principal": "reviewer",
        "merge_authorization": authorization,
    }
    refusal = refused(lethe.merge_ref, "atlas", request)
    assert (type(refusal), refusal.code) == (NotAllowed, "invalid_authorization")
    assert lethe.resolve_ref("atlas", SHARED_MAIN)["head_changeset_id"] == root
    assert lethe.list_advances("atlas") == []


# context, manifests, events, assemblies


def test_a_context_is_pinned_by_a_manifest_and_reproduced(lethe: Lethe, root: str) -> None:
    head = commit(lethe, root, add("a", "the build uses make"), add("b", "tests run nightly"), key="1")
    asked = {"ref_name": BRANCH, "head_changeset_id": head, "principal": "builder", "create_manifest": True}
    context = lethe.context("atlas", asked)
    assert context["head_changeset_id"] == head
    assert {item["memory_id"] for item in context["memories"]} == {"a", "b"}
    manifest = lethe.get_manifest(context["manifest_id"])
    assert "make" not in str(manifest)
    again = lethe.reproduce(context["manifest_id"])
    assert again == lethe.reproduce(context["manifest_id"])
    assert "the build uses make" in str(again)
    without = lethe.context("atlas", {"ref_name": BRANCH})
    assert without.get("manifest_id") is None
    assert isinstance(refused(lethe.get_manifest, ABSENT), NotFound)
    assert isinstance(refused(lethe.context, "atlas", {"ref_name": BRANCH, "colour": "red"}), Invalid)
    assert isinstance(refused(lethe.context, "atlas", {"ref_name": BRANCH, "limit": "many"}), Invalid)


def test_events_are_appended_once_and_read_by_seq(lethe: Lethe, root: str) -> None:
    event = {"event_type": "note", "content": "hello", "event_id": "e-1", "actor": "builder"}
    made = lethe.append_event("atlas", event)
    assert lethe.append_event("atlas", event) == made
    second = lethe.append_event("atlas", {"event_type": "note", "content": "again"})
    assert lethe.get_event("e-1") == made
    assert lethe.list_events("atlas", after=made["seq"]) == [second]
    assert lethe.list_events("atlas", limit=1) == [made]
    assert isinstance(refused(lethe.get_event, "e-2"), NotFound)
    for wrong in (
        {},
        {"event_type": 1, "content": "x"},
        {"event_type": "note", "content": {}},
        {**event, "colour": 1},
    ):
        assert isinstance(refused(lethe.append_event, "atlas", wrong), Invalid)


def test_an_assembly_is_recorded_and_judged(lethe: Lethe, root: str) -> None:
    head = commit(lethe, root, add("a", "one"), key="1")
    digest = lethe.memory("atlas", head, "a")["record_digest"]
    assembly = {
        "project_id": "atlas",
        "head_changeset_id": head,
        "items": [{"memory_id": "a", "content_digest": digest, "tokens": 12}],
    }
    made = lethe.record_assembly("session/1", assembly)
    assert lethe.list_assemblies("session/1") == [made]
    assert lethe.get_assembly(made["assembly_id"]) == made
    assert lethe.give_feedback(made["assembly_id"], "good", "fine")["verdict"] == "good"
    assert isinstance(refused(lethe.give_feedback, made["assembly_id"], "splendid"), Invalid)
    assert isinstance(refused(lethe.get_assembly, ABSENT), NotFound)


# redaction


def test_a_redacted_memory_is_gone_from_every_version_and_the_store_still_verifies(
    lethe: Lethe, root: str
) -> None:
    first = commit(lethe, root, add("a", "the password is swordfish"), add("b", "stays"), key="1")
    head = commit(lethe, first, correct("a", "the password was swordfish"), key="2")
    assert lethe.list_redactions("atlas") == []
    done = lethe.redact("atlas", "a", principal="officer", reason="a password")
    assert "a" in done["memory_ids"]
    assert [item["redaction_id"] for item in lethe.list_redactions("atlas")] == [done["redaction_id"]]
    for at in (first, head):
        told = [lethe.memories("atlas", at), lethe.get_changeset(at), lethe.diff(at)]
        assert "swordfish" not in str(told)
    assert lethe.memory("atlas", head, "b")["record"]["content"] == "stays"
    assert lethe.verify("atlas")["ok"] is True
    assert isinstance(refused(lethe.redact, "atlas", "none", principal="officer", reason="x"), NotFound)


# the store itself


def test_the_store_verifies_itself_says_how_it_is_and_is_copied(
    lethe: Lethe, root: str, tmp_path: Path
) -> None:
    commit(lethe, root, add("a", "one"), key="1")
    told: list[tuple[str, int, int]] = []
    found = lethe.verify("atlas", lambda kind, done, total: told.append((kind, done, total)))
    assert (found["ok"], found["faults"]) == (True, [])
    assert found["checked"]["changeset"] == 2
    assert told
    assert lethe.health()["status"] == "ok"
    assert lethe.ready()["status"] == "ok"
    (tmp_path / "copy").mkdir()
    if lethe.ready()["engine"] == "postgresql":
        assert "pg_dump" in refused(lethe.backup, str(tmp_path / "copy")).message
        return
    copy = lethe.backup(str(tmp_path / "copy"))
    assert (tmp_path / "copy" / copy["file"]).stat().st_size > 0


def test_a_refs_log_is_read_whole_or_beyond_a_move(lethe: Lethe, root: str) -> None:
    head = root
    for number in range(5):
        head = commit(lethe, head, add(f"m{number}", "one"), key=str(number))
    whole = lethe.ref_log("atlas", BRANCH)
    assert [move["seq"] for move in whole] == [1, 2, 3, 4, 5]
    assert lethe.ref_log("atlas", BRANCH, after=2, limit=2) == whole[2:4]
    assert lethe.ref_log("atlas", BRANCH, after=5) == []


def test_refs_advances_and_redactions_are_read_whole_or_by_pages(lethe: Lethe, root: str) -> None:
    head = root
    for number in range(5):
        head = commit(lethe, head, add(f"m{number}", "one"), key=str(number))
        lethe.create_branch("atlas", f"refs/topics/t{number}", head, "builder")
        lethe.redact("atlas", f"m{number}", principal="officer", reason="asked for")
    refs, redactions = lethe.list_refs("atlas"), lethe.list_redactions("atlas")
    names = [ref["ref_name"] for ref in refs]
    assert lethe.list_refs("atlas", after=names[1], limit=2) == refs[2:4]
    assert lethe.list_refs("atlas", after=names[-1], limit=2) == []
    assert lethe.list_redactions("atlas", after=redactions[1]["seq"], limit=2) == redactions[2:4]
    assert lethe.list_advances("atlas", after=0, limit=2) == lethe.list_advances("atlas") == []
