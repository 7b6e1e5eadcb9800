"""Proposals from the first commit to the merged head, on the real store."""

from __future__ import annotations

from typing import Any

import pytest
from gate_world import MAIN, PROJECT, GateWorld

from memory_git.domain.errors import Clash, Invalid, NotAllowed, NotFound
from memory_git.lethe import comparing


def decision(day: str, **more: Any) -> dict[str, Any]:
    return {
        "content": f"We deploy on {day}",
        "kind": "decision",
        "scope": "ops",
        "fact_key": "deploy-day",
        **more,
    }


def test_what_is_merged_is_exactly_base_and_branch(world: GateWorld) -> None:
    world.add("one", "m/base", "known before")
    world.accept("one")
    world.add("two", "m/new", "learned by two")
    merged = world.accept("two")
    shown = world.gate.memories(world.caller("bob"), PROJECT, ref=MAIN)
    assert sorted(item["memory_id"] for item in shown["memories"]) == ["m/base", "m/new"]
    assert merged["ref"]["head_changeset_id"] == merged["merged_head"] == world.head()
    assert merged["status"] == "merged"


def test_agents_do_not_see_each_others_branches(world: GateWorld) -> None:
    made = world.add("one", "m/1", "mine")["changeset"]["changeset_id"]
    two = world.caller("two")
    with pytest.raises(NotFound):
        world.gate.show(two, PROJECT, made)
    with pytest.raises(NotFound):
        world.gate.memories(two, PROJECT, ref="refs/agents/one/main")
    assert [ref["ref_name"] for ref in world.gate.list_refs(two, PROJECT)] == [MAIN]
    assert world.gate.memories(two, PROJECT)["total"] == 0


def test_a_proposal_is_pinned_to_its_head(world: GateWorld) -> None:
    world.add("one", "m/1", "first")
    made = world.propose("one")
    world.add("one", "m/2", "later")
    world.approve(made["proposal_id"])
    world.merge(made["proposal_id"])
    assert world.gate.memories(world.caller("bob"), PROJECT, ref=MAIN)["total"] == 1


def test_an_unrelated_merge_leaves_an_approval_standing(world: GateWorld) -> None:
    world.add("one", "m/1", "first")
    world.add("two", "m/2", "second")
    first, second = world.propose("one"), world.propose("two")
    world.approve(first["proposal_id"])
    world.approve(second["proposal_id"])
    world.merge(second["proposal_id"])
    now = world.gate.proposal(world.caller("one"), first["proposal_id"])
    assert now["stale"] and now["current_head"] == world.head()
    assert now["verdict"] == {"mergeable": True, "missing": []}
    merged = world.merge(first["proposal_id"])
    assert merged["strategy"] == "merge_commit"
    parents = world.gate.show(world.caller("bob"), PROJECT, merged["merged_head"])["parent_ids"]
    assert parents == [second["head_changeset_id"], first["head_changeset_id"]]


def test_a_merge_that_changes_the_outcome_voids_an_approval(world: GateWorld) -> None:
    world.add("one", "m/1", "first", tags=["a"])
    world.accept("one")
    world.correct("one", "m/1", tags=["a", "b"])
    first = world.propose("one")
    world.approve(first["proposal_id"])
    ref = world.sync("two")["ref_name"]
    world.commit(
        "two", [{"op_type": "correct_memory", "target_event_id": "m/1", "payload": {"title": "T"}}], ref=ref
    )
    world.accept("two", source_ref=ref)
    now = world.gate.proposal(world.caller("one"), first["proposal_id"])
    assert [item["code"] for item in now["verdict"]["missing"]] == ["approval_missing"]
    with pytest.raises(Clash) as refused:
        world.merge(first["proposal_id"])
    assert refused.value.code == "not_approved"
    assert refused.value.facts["current_head"] == world.head()
    world.approve(first["proposal_id"], "cy")
    world.merge(first["proposal_id"], "cy")
    record = world.gate.memory(world.caller("bob"), PROJECT, "m/1", ref=MAIN)["record"]
    assert (record["tags"], record["title"]) == (["a", "b"], "T")


def test_a_stale_proposal_is_rebased_and_merged_by_fast_forward_with_its_approval(world: GateWorld) -> None:
    world.add("one", "m/1", "first")
    world.add("two", "m/2", "second")
    first = world.propose("one")
    world.approve(first["proposal_id"])
    world.accept("two")
    rebased = world.gate.rebase(world.caller("one"), first["proposal_id"])
    assert rebased["rebased"] and not rebased["stale"] and rebased["carried_approvals"] == 1
    assert rebased["head_changeset_id"] != first["head_changeset_id"]
    assert rebased["base_changeset_id"] == world.head()
    assert rebased["authors"] == ["one"]
    merged = world.merge(first["proposal_id"])
    assert merged["strategy"] == "fast_forward"
    assert world.content("m/1") == "first" and world.content("m/2") == "second"


def test_a_rebase_and_a_merge_commit_give_the_same_state(tmp_path: Any) -> None:
    roots = []
    for shape in ("rebase", "merge"):
        world = GateWorld(tmp_path / shape)
        world.add("one", "m/1", "first")
        world.add("two", "m/2", "second")
        first = world.propose("one")["proposal_id"]
        world.accept("two")
        if shape == "rebase":
            world.gate.rebase(world.caller("one"), first)
        world.approve(first)
        merged = world.merge(first)
        shown = world.gate.memories(world.caller("bob"), PROJECT, ref=MAIN)["memories"]
        roots.append([(item["memory_id"], item["record"]) for item in shown])
        assert merged["strategy"] == ("fast_forward" if shape == "rebase" else "merge_commit")
        world.close()
    assert roots[0] == roots[1]


def test_a_rebased_authors_approval_is_still_refused(world: GateWorld) -> None:
    world.gate.add_principal(world.operator, "both", "human", profile="write")
    world.gate.grant(world.operator, "both", PROJECT)
    both = world.gate.as_principal("both")
    op = {"op_type": "add_memory", "payload": {"memory_id": "m/1", "content": "mine"}}
    world.gate.commit(both, PROJECT, message="w", ops=[op])
    made = world.gate.propose(both, PROJECT, message="p")["proposal_id"]
    world.add("two", "m/2", "second")
    world.accept("two")
    world.gate.rebase(both, made)
    with pytest.raises(NotAllowed, match="denied: self review"):
        world.gate.review(both, made, "approve")


def test_contradicting_decisions_block_until_a_resolution_is_recorded(world: GateWorld) -> None:
    world.add("one", "m/friday", "We deploy on Fridays", kind="decision", scope="ops", fact_key="deploy-day")
    world.add(
        "two", "m/never", "We never deploy on Fridays", kind="decision", scope="ops", fact_key="deploy-day"
    )
    world.accept("one")
    made = world.propose("two")
    assert [item["conflict_type"] for item in made["conflicts"] if item["severity"] == "blocking"] == [
        "contradictory_decision"
    ]
    world.approve(made["proposal_id"])
    with pytest.raises(Clash) as refused:
        world.merge(made["proposal_id"])
    assert refused.value.code == "merge_conflicts"
    conflict_id = refused.value.facts["conflicts"][0]["conflict_id"]
    with pytest.raises(NotAllowed):
        world.gate.resolve_conflict(world.caller("two"), PROJECT, conflict_id, "both", "mine is right")
    settled = world.gate.resolve_conflict(
        world.caller("cy"), PROJECT, conflict_id, "both", "one is for staging"
    )
    assert (settled["status"], settled["resolved_by"]) == ("resolved", "cy")
    merged = world.merge(made["proposal_id"])
    assert merged["status"] == "merged"
    assert world.gate.conflicts(world.caller("bob"), PROJECT, status="open") == []


def test_an_unrelated_decision_in_the_same_scope_raises_nothing(world: GateWorld) -> None:
    world.add("one", "m/friday", "We deploy on Fridays", kind="decision", scope="ops", fact_key="deploy-day")
    world.accept("one")
    world.add("two", "m/logs", "Logs are kept for ninety days", kind="decision", scope="ops", fact_key="logs")
    made = world.propose("two")
    assert [item for item in made["conflicts"] if item["severity"] == "blocking"] == []


@pytest.mark.parametrize(("outcome", "kept"), [("keep_left", "left says"), ("keep_right", "right says")])
def test_a_field_that_both_changed_is_settled_as_the_resolution_says(
    world: GateWorld, outcome: str, kept: str
) -> None:
    proposal_id = _concurrent(world)
    world.approve(proposal_id)
    _resolve_all(world, proposal_id, outcome)
    world.merge(proposal_id)
    assert world.content("m/1") == kept


def test_a_field_that_both_changed_is_settled_by_given_ops(world: GateWorld) -> None:
    proposal_id = _concurrent(world)
    world.approve(proposal_id)
    _resolve_all(world, proposal_id, "edited")
    with pytest.raises(Clash) as refused:
        world.merge(proposal_id)
    assert refused.value.code == "resolutions_needed"
    stranger = {"op_type": "add_memory", "payload": {"content": "smuggled"}}
    with pytest.raises(Invalid):
        world.merge(proposal_id, resolutions=[stranger])
    answer = {"op_type": "correct_memory", "target_event_id": "m/1", "payload": {"content": "both say"}}
    world.merge(proposal_id, resolutions=[answer])
    assert world.content("m/1") == "both say"


def _concurrent(world: GateWorld) -> str:
    world.add("one", "m/1", "said before")
    world.accept("one")
    ref = world.sync("two")["ref_name"]
    world.correct("one", "m/1", content="left says")
    op = {"op_type": "correct_memory", "target_event_id": "m/1", "payload": {"content": "right says"}}
    world.commit("two", [op], ref=ref)
    world.accept("one")
    return str(world.propose("two", source_ref=ref)["proposal_id"])


def _resolve_all(world: GateWorld, proposal_id: str, outcome: str) -> None:
    for item in world.gate.proposal(world.caller("cy"), proposal_id)["conflicts"]:
        if item["severity"] == "blocking":
            world.gate.resolve_conflict(world.caller("cy"), PROJECT, item["conflict_id"], outcome, "agreed")


def test_one_op_is_picked_and_the_rest_does_not_arrive(world: GateWorld) -> None:
    ops = [
        {"op_type": "add_memory", "payload": {"memory_id": name, "content": name}}
        for name in ("m/a", "m/b", "m/c")
    ]
    source = world.commit("one", ops)["changeset"]["changeset_id"]
    made = world.propose("one", selected_ops=[{"changeset_id": source, "ordinal": 1}])
    assert made["strategy"] == "cherry_pick"
    assert [item["memory_id"] for item in made["diff"]["memories_added"]] == ["m/b"]
    world.approve(made["proposal_id"])
    merged = world.merge(made["proposal_id"])
    copy = world.gate.show(world.caller("bob"), PROJECT, merged["merged_head"])
    assert copy["ops"][0]["payload"]["cherrypicked_from"] == source
    assert [
        item["memory_id"] for item in world.gate.memories(world.caller("bob"), PROJECT, ref=MAIN)["memories"]
    ] == ["m/b"]


def test_a_picked_op_that_lacks_what_it_needs_is_refused_by_name(world: GateWorld) -> None:
    first = world.add("one", "m/a", "made here")["changeset"]["changeset_id"]
    second = world.correct("one", "m/a", title="T")["changeset"]["changeset_id"]
    with pytest.raises(Clash) as refused:
        world.propose("one", selected_ops=[{"changeset_id": second, "ordinal": 0}])
    assert refused.value.code == "ops_refused"
    both = [{"changeset_id": name, "ordinal": 0} for name in (first, second)]
    assert world.propose("one", selected_ops=both)["verdict"]["missing"][0]["code"] == "approval_missing"


def test_a_rejection_stays_readable_with_its_reviewer_and_reason(world: GateWorld) -> None:
    made = world.add("one", "m/1", "not so")["changeset"]["changeset_id"]
    proposal_id = world.propose("one")["proposal_id"]
    rejected = world.gate.review(world.caller("bob"), proposal_id, "reject", comment="it is not so")
    assert rejected["status"] == "rejected"
    world.restart()
    now = world.gate.proposal(world.caller("cy"), proposal_id)
    assert [(item["reviewer"], item["comment"]) for item in now["reviews"]] == [("bob", "it is not so")]
    assert world.gate.show(world.caller("cy"), PROJECT, made)["ops"][0]["payload"]["content"] == "not so"
    attested = world.gate.show(world.caller("cy"), PROJECT, now["attestation_changeset_id"])["ops"][0][
        "payload"
    ]
    assert (attested["reviewer"], attested["note"], attested["rejected_from"]) == (
        "bob",
        "it is not so",
        MAIN,
    )
    assert world.head(f"refs/proposals/{proposal_id}") == now["attestation_changeset_id"]
    with pytest.raises(Clash, match="rejected"):
        world.approve(proposal_id, "cy")


def test_a_rejection_says_why(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    proposal_id = world.propose("one")["proposal_id"]
    for verdict in ("reject", "request_changes"):
        with pytest.raises(Invalid, match="breaks a rule"):
            world.gate.review(world.caller("bob"), proposal_id, verdict)
    assert world.gate.proposal(world.caller("bob"), proposal_id)["status"] == "pending"


def test_a_later_objection_blocks_an_earlier_approval(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    proposal_id = world.propose("one")["proposal_id"]
    assert world.approve(proposal_id)["status"] == "approved"
    after = world.gate.review(world.caller("cy"), proposal_id, "request_changes", comment="say since when")
    assert after["status"] == "changes_requested"
    with pytest.raises(Clash) as refused:
        world.merge(proposal_id)
    assert refused.value.code == "not_approved"
    assert world.approve(proposal_id, "cy")["status"] == "approved"
    assert world.merge(proposal_id)["status"] == "merged"


def test_an_approval_falls_with_its_makers_grant(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    proposal_id = world.propose("one")["proposal_id"]
    world.approve(proposal_id, "cy")
    world.gate.revoke_grant(world.operator, "cy", PROJECT)
    with pytest.raises(Clash) as refused:
        world.merge(proposal_id)
    assert [item["code"] for item in refused.value.facts["missing"]] == ["approval_missing"]


def test_a_review_of_what_has_changed_meanwhile_is_refused_with_the_present_digest(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    made = world.propose("one")
    with pytest.raises(Clash) as refused:
        world.gate.review(world.caller("bob"), made["proposal_id"], "approve", judged_digest="0" * 64)
    assert refused.value.facts["judged_digest"] == made["judged_digest"]
    after = world.gate.review(
        world.caller("bob"), made["proposal_id"], "approve", judged_digest=made["judged_digest"]
    )
    assert after["status"] == "approved"


def test_only_its_originator_cancels_a_proposal(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    proposal_id = world.propose("one")["proposal_id"]
    with pytest.raises(NotFound):
        world.gate.cancel(world.caller("two"), proposal_id)
    world.gate.grant(world.operator, "two", PROJECT, refs=["refs/agents/one/*"])
    with pytest.raises(NotAllowed, match="originator"):
        world.gate.cancel(world.caller("two"), proposal_id)
    assert world.gate.cancel(world.caller("one"), proposal_id)["status"] == "canceled"
    with pytest.raises(Clash):
        world.approve(proposal_id)


def test_a_proposal_whose_time_is_over_has_expired(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    proposal_id = world.propose("one", lifetime_s=600)["proposal_id"]
    world.approve(proposal_id)
    world.later(minutes=11)
    bob = world.caller("bob")
    assert world.gate.proposal(bob, proposal_id)["status"] == "expired"
    with pytest.raises(Clash, match="expired"):
        world.merge(proposal_id)
    listed = world.gate.proposals(bob, PROJECT, status="expired")["proposals"]
    assert [item["proposal_id"] for item in listed] == [proposal_id]
    assert world.gate.proposals(bob, PROJECT, status="open")["proposals"] == []


def test_a_revert_brings_the_former_value_back_and_deletes_nothing(world: GateWorld) -> None:
    world.add("one", "m/1", "former")
    world.accept("one")
    changed = world.correct("one", "m/1", content="mistaken")["changeset"]["changeset_id"]
    world.accept("one")
    made = world.gate.propose_revert(world.caller("two"), PROJECT, changed)
    assert made["kind"] == "revert"
    world.approve(made["proposal_id"])
    world.merge(made["proposal_id"])
    assert world.content("m/1") == "former"
    history = world.gate.memory_history(world.caller("bob"), PROJECT, "m/1", ref=MAIN)["versions"]
    assert [item["record"]["content"] for item in history] == ["former", "mistaken", "former"]


def test_a_closed_proposal_too_large_for_one_answer_shows_a_page_and_says_so(
    world: GateWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add("one", "m/1", "text")
    world.add("one", "m/2", "text of another")
    proposal_id = world.accept("one")["proposal_id"]
    bob = world.caller("bob")
    assert "page" not in world.gate.proposal(bob, proposal_id)["diff"]
    monkeypatch.setattr(comparing, "MAX_WHOLE", 0)
    shown = world.gate.proposal(bob, proposal_id)["diff"]
    assert shown["page"] == {"limit": 200}
    assert shown["memories_added"]


def test_a_range_of_accepted_changesets_is_taken_back_by_one_proposal(world: GateWorld) -> None:
    world.add("one", "m/1", "former")
    world.accept("one")
    start = world.head()
    world.correct("one", "m/1", content="mistaken")
    world.accept("one")
    world.add("one", "m/2", "also a mistake")
    world.accept("one")
    two = world.caller("two")
    made = world.gate.propose_revert(two, PROJECT, world.head(), from_changeset_id=start)
    assert (made["kind"], made["title"]) == ("revert", f"Revert of {start}..{world.head()}")
    world.approve(made["proposal_id"])
    world.merge(made["proposal_id"])
    assert world.content("m/1") == "former"
    assert world.gate.memory(two, PROJECT, "m/2", ref=MAIN)["record"]["status"] == "retracted"


def test_a_range_that_somebody_changed_since_is_refused_with_the_memory(world: GateWorld) -> None:
    world.add("one", "m/1", "former")
    world.accept("one")
    start = world.head()
    world.correct("one", "m/1", content="mistaken")
    world.accept("one")
    end = world.head()
    world.correct("one", "m/1", content="mended")
    world.accept("one")
    with pytest.raises(Clash) as refused:
        world.gate.propose_revert(world.caller("two"), PROJECT, end, from_changeset_id=start)
    assert refused.value.code == "ops_refused"
    assert [item["memory_id"] for item in refused.value.facts["refused"]] == ["m/1"]


def test_private_memory_is_not_proposed_but_the_rest_is_offered(world: GateWorld) -> None:
    source = world.commit(
        "one",
        [
            {"op_type": "add_memory", "payload": {"memory_id": "m/open", "content": "for all"}},
            {
                "op_type": "add_memory",
                "payload": {"memory_id": "m/own", "content": "for me", "visibility": "private"},
            },
        ],
    )["changeset"]["changeset_id"]
    with pytest.raises(Clash) as refused:
        world.propose("one")
    assert refused.value.code == "private_in_delta"
    assert refused.value.facts["selectable_ops"] == [{"changeset_id": source, "ordinal": 0}]
    world.accept("one", selected_ops=refused.value.facts["selectable_ops"])
    assert world.content("m/open") == "for all"
    with pytest.raises(NotFound):
        world.content("m/own")


def test_the_same_key_makes_one_proposal_and_one_merge(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    first = world.propose("one", idempotency_key="k")
    again = world.propose("one", idempotency_key="k")
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert first["proposal_id"] == again["proposal_id"]
    with pytest.raises(Clash) as refused:
        world.propose("one", idempotency_key="k", title="another")
    assert refused.value.code == "idempotency_mismatch"
    world.approve(first["proposal_id"])
    merged = world.merge(first["proposal_id"], idempotency_key="k")
    repeated = world.merge(first["proposal_id"], idempotency_key="k")
    assert (merged["replayed"], repeated["replayed"]) == (False, True)
    assert merged["merged_head"] == repeated["merged_head"]
    assert len(world.lethe.list_advances(PROJECT)) == 1
    with pytest.raises(Clash, match="merged"):
        world.merge(first["proposal_id"])


def test_the_same_head_is_proposed_once_while_it_is_open(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    first = world.propose("one")
    again = world.propose("one")
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert again["proposal_id"] == first["proposal_id"]
    with pytest.raises(Clash) as refused:
        world.propose("one", title="in other words")
    assert refused.value.code == "already_proposed"
    assert refused.value.facts["proposal_id"] == first["proposal_id"]
    assert len(world.gate.proposals(world.caller("bob"), PROJECT)["proposals"]) == 1
    world.gate.cancel(world.caller("one"), first["proposal_id"])
    renewed = world.propose("one", title="in other words")
    assert renewed["proposal_id"] != first["proposal_id"] and not renewed["replayed"]
    world.later(days=400)
    assert world.propose("one")["proposal_id"] != renewed["proposal_id"]


def test_a_person_merges_alone_only_where_the_policy_says_so(world: GateWorld) -> None:
    ann = world.gate.as_principal("ann")
    op = {"op_type": "add_memory", "payload": {"memory_id": "m/1", "content": "mine"}}
    world.gate.commit(ann, PROJECT, message="w", ops=[op])
    proposal_id = world.gate.propose(ann, PROJECT, message="p")["proposal_id"]
    with pytest.raises(NotAllowed, match="denied: self review"):
        world.gate.review(ann, proposal_id, "approve")
    with pytest.raises(NotAllowed, match="denied: self merge"):
        world.gate.merge(ann, proposal_id)
    world.gate.project_policy(ann, PROJECT, {"lone_person_may_merge": True})
    world.gate.review(ann, proposal_id, "approve")
    assert world.gate.merge(ann, proposal_id)["status"] == "merged"


def test_the_originator_of_anothers_work_does_not_approve_it(world: GateWorld) -> None:
    world.gate.add_principal(world.operator, "lead", "agent", profile="write")
    world.gate.grant(world.operator, "lead", PROJECT, refs=["refs/agents/one/*"])
    world.add("one", "m/1", "text")
    lead = world.gate.as_principal("lead")
    proposal_id = world.gate.propose(lead, PROJECT, message="p", source_ref="refs/agents/one/main")[
        "proposal_id"
    ]
    with pytest.raises(NotAllowed, match="denied: self approval"):
        world.gate.review(lead, proposal_id, "approve")
    world.approve(proposal_id)
    with pytest.raises(NotAllowed, match="denied: self merge"):
        world.gate.merge(lead, proposal_id)


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ({"approvals_needed": 2}, "approval_missing"),
        ({"verified_kinds": ["fact"]}, "verification_missing"),
    ],
)
def test_the_projects_policy_is_asked_before_a_merge(
    world: GateWorld, policy: dict[str, Any], code: str
) -> None:
    world.gate.project_policy(world.gate.as_principal("ann"), PROJECT, policy)
    world.add("one", "m/1", "text", kind="fact")
    proposal_id = world.propose("one")["proposal_id"]
    world.approve(proposal_id)
    with pytest.raises(Clash) as refused:
        world.merge(proposal_id)
    assert [item["code"] for item in refused.value.facts["missing"]] == [code]


def test_a_wrong_policy_is_refused_with_every_fault(world: GateWorld) -> None:
    with pytest.raises(Invalid) as refused:
        world.gate.project_policy(
            world.gate.as_principal("ann"),
            PROJECT,
            {"approvals_needed": 0, "blocking_severities": [], "x": 1},
        )
    assert {fault.field for fault in refused.value.faults} == {"approvals_needed", "blocking_severities", "x"}


def test_an_unmerged_shape_that_was_asked_for_is_refused(world: GateWorld) -> None:
    world.add("one", "m/1", "first")
    world.add("two", "m/2", "second")
    first = world.propose("one")["proposal_id"]
    world.accept("two")
    world.approve(first)
    with pytest.raises(Clash) as refused:
        world.merge(first, strategy="fast_forward")
    assert refused.value.code == "wrong_merge_shape"
    assert refused.value.facts["possible"] == ["merge_commit"]


def test_a_retry_after_a_lost_answer_is_the_same_commit(world: GateWorld) -> None:
    op = {"op_type": "add_memory", "payload": {"memory_id": "m/1", "content": "text"}}
    first = world.commit("one", [op], idempotency_key="k")
    again = world.commit("one", [op], idempotency_key="k")
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert first["changeset"]["changeset_id"] == again["changeset"]["changeset_id"]
    with pytest.raises(Clash) as refused:
        world.commit("one", [{**op, "payload": {**op["payload"], "content": "other"}}], idempotency_key="k")
    assert refused.value.code == "idempotency_mismatch"


def test_a_head_that_was_given_is_never_refreshed(world: GateWorld) -> None:
    seen = world.add("one", "m/1", "first")["changeset"]["changeset_id"]
    now = world.add("one", "m/2", "second")["changeset"]["changeset_id"]
    op = {"op_type": "add_memory", "payload": {"memory_id": "m/3", "content": "third"}}
    with pytest.raises(Clash) as refused:
        world.commit("one", [op], expected_head=seen)
    assert (refused.value.code, refused.value.facts["current_head"]) == ("ref_moved", now)
    with pytest.raises(Invalid) as unsaid:
        world.commit("one", [op], read_head=False)
    assert (unsaid.value.code, unsaid.value.facts["current_head"]) == ("expected_head_needed", now)


def test_a_refused_first_commit_leaves_no_branch_behind(world: GateWorld) -> None:
    for ops in ([], [{"op_type": "correct_memory", "target_event_id": "absent", "payload": {"title": "T"}}]):
        with pytest.raises(Invalid):
            world.commit("one", ops, read_head=False)
    assert [ref["ref_name"] for ref in world.gate.list_refs(world.caller("one"), PROJECT)] == [MAIN]
    op = {"op_type": "add_memory", "payload": {"memory_id": "m/1", "content": "text"}}
    made = world.commit("one", [op], read_head=False, idempotency_key="k")
    assert made["changeset"]["parent_ids"] == [world.head()]
    assert world.commit("one", [op], read_head=False, idempotency_key="k")["replayed"]


def test_work_is_proposed_only_from_a_branch_that_is_there(world: GateWorld) -> None:
    with pytest.raises(NotFound) as refused:
        world.propose("one")
    assert (refused.value.code, "refs/agents/one/main" in refused.value.message) == ("ref_not_found", True)


def test_a_ref_is_rebased_into_a_new_one_beside_it(world: GateWorld) -> None:
    world.add("one", "m/1", "first")
    world.add("two", "m/2", "second")
    world.accept("two")
    done = world.gate.rebase_ref(world.caller("one"), PROJECT, "refs/agents/one/main")
    assert done["ref"]["ref_name"] == "refs/agents/one/main-rebased-1"
    shown = world.gate.memories(world.caller("one"), PROJECT, ref=done["ref"]["ref_name"])["memories"]
    assert sorted(item["memory_id"] for item in shown) == ["m/1", "m/2"]
    assert world.head("refs/agents/one/main") == done["rebased_from"]
