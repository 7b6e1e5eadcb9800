"""Steps 9 to 12: a contradiction, a cherry-pick, a rejection, a revert."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_git.cli.story.beginning import CACHE, DEPLOY
from memory_git.cli.story.expect import expect, expect_equal, refusal
from memory_git.cli.story.tale import Tale
from memory_git.cli.story.world import PROJECT
from memory_git.domain.ids import SHARED_MAIN
from memory_git.lethe.protocol import Json

OTHER_DEPLOY = "story/deploy-tool-b"
UNRELATED = "story/backup-window"
PICKED = "story/picked"
LEFT_OUT = "story/left-out"
REASON = "Nobody could say where this number comes from."


def branch_and_commit(tale: Tale, name: str, branch: str, ops: list[Json], message: str) -> Json:
    """Has an agent commit on a session branch of its own, made from accepted memory; gives the changeset."""
    agent, ref_name = tale.agent(name), f"refs/sessions/{name}/{branch}"
    head = agent.call("memory_branch_create", project=PROJECT, ref=ref_name)["head_changeset_id"]
    changeset: Json = agent.commit(
        ref_name, ops, message, f"{name}-{branch}", project=PROJECT, expected_head=head, parent_ids=[head]
    )
    return changeset


def _decision(memory_id: str, content: str, subject: str) -> Json:
    payload = {
        "memory_id": memory_id,
        "content": content,
        "kind": "decision",
        "scope": "operations",
        "subject": subject,
    }
    return {"op_type": "add_memory", "payload": payload}


def a_contradiction_blocks(tale: Tale) -> Mapping[str, Any]:
    """Two contradicting decisions block the merge until a resolution is recorded; an unrelated one raises nothing."""
    by_a = branch_and_commit(
        tale,
        "agent-a",
        "deploy",
        [_decision(DEPLOY, "We deploy with blue and green environments.", "deployment")],
        "How we deploy",
    )
    by_b = branch_and_commit(
        tale,
        "agent-b",
        "deploy",
        [_decision(OTHER_DEPLOY, "We deploy by rolling restarts.", "deployment")],
        "How we deploy",
    )
    third = branch_and_commit(
        tale,
        "agent-b",
        "backup",
        [_decision(UNRELATED, "Backups run at four in the morning.", "backups")],
        "When backups run",
    )
    first = tale.propose("agent-a", by_a["changeset_id"], "Deployment, as A sees it")
    tale.accept(first["proposal_id"])
    second = tale.propose("agent-b", by_b["changeset_id"], "Deployment, as B sees it")
    shown = tale.reviewer.get(f"/proposals/{second['proposal_id']}")
    blocking = [item for item in shown["conflicts"] if item["severity"] == "blocking"]
    expect_equal(
        [item["conflict_type"] for item in blocking], ["contradictory_decision"], "the blocking conflicts"
    )
    conflict = blocking[0]
    expect_equal(sorted(conflict["memory_ids"]), sorted([DEPLOY, OTHER_DEPLOY]), "what contradicts")
    expect(conflict["left"] and conflict["right"], "both sides are in the conflict")
    refusal(lambda: tale.accept(second["proposal_id"]), "merge_conflicts", "merging over a contradiction")
    expect_equal(
        set(tale.state_at(tale.shared_head())) & {DEPLOY, OTHER_DEPLOY},
        {DEPLOY},
        "shared memory holds one side",
    )

    unrelated = tale.propose("agent-b", third["changeset_id"], "An unrelated decision")
    raised = [
        item
        for item in tale.reviewer.get(f"/proposals/{unrelated['proposal_id']}")["conflicts"]
        if item["severity"] != "warning"
    ]
    expect_equal(raised, [], "conflicts of an unrelated decision in the same scope")
    tale.accept(unrelated["proposal_id"])

    settled = tale.reviewer.post(
        f"/projects/{PROJECT}/conflicts/{conflict['conflict_id']}/resolve",
        {"outcome": "both", "note": "Blue and green for the shop, rolling restarts for the workers."},
    )
    settled = settled["resolved"]
    expect_equal(settled["status"], "resolved", "the conflict's status")
    merged = tale.accept(second["proposal_id"])
    expect(
        set(tale.state_at(merged["merged_head"])) >= {DEPLOY, OTHER_DEPLOY, UNRELATED},
        "both sides are accepted now",
    )
    return {
        "conflict_type": conflict["conflict_type"],
        "conflict_id": conflict["conflict_id"],
        "outcome": settled["outcome"],
    }


def one_op_is_picked(tale: Tale) -> Mapping[str, Any]:
    """One op is cherry-picked out of a mixed changeset; the copy says where from; the rest does not arrive."""
    ops = [
        {
            "op_type": "add_memory",
            "payload": {"memory_id": PICKED, "content": "The box office opens at ten.", "kind": "fact"},
        },
        {
            "op_type": "add_memory",
            "payload": {"memory_id": LEFT_OUT, "content": "A seat hold lasts 11 minutes.", "kind": "fact"},
        },
    ]
    mixed = branch_and_commit(tale, "agent-b", "mixed", ops, "Two things at once")
    tale.kept["mixed"] = mixed
    selected = [{"changeset_id": mixed["changeset_id"], "ordinal": 0}]
    proposed = tale.propose("agent-b", mixed["changeset_id"], "Only the opening hours", selected_ops=selected)
    merged = tale.accept(proposed["proposal_id"])
    expect_equal(merged["strategy"], "cherry_pick", "the strategy")
    arrived = tale.store.get_changeset(merged["merged_head"])
    copies = [op for op in arrived["ops"] if op["op_type"] == "add_memory"]
    expect_equal(
        [op["payload"]["cherrypicked_from"] for op in copies],
        [mixed["changeset_id"]],
        "where the copy is from",
    )
    state = tale.state_at(tale.shared_head())
    expect(PICKED in state, "the picked memory is accepted")
    expect(LEFT_OUT not in state, "the rest did not arrive")
    return {"picked": PICKED, "from": mixed["changeset_id"], "as": merged["merged_head"]}


def the_rest_is_rejected(tale: Tale) -> Mapping[str, Any]:
    """The rest is rejected; it, its reviewer and the reason stay readable a restart later."""
    mixed = tale.kept["mixed"]
    selected = [{"changeset_id": mixed["changeset_id"], "ordinal": 1}]
    proposed = tale.propose("agent-b", mixed["changeset_id"], "The seat hold", selected_ops=selected)
    proposal_id = proposed["proposal_id"]
    tale.reviewer.post(f"/proposals/{proposal_id}/review", {"verdict": "reject", "comment": REASON})
    tale.world.restart()
    tale.forget_actors()
    shown = tale.reviewer.get(f"/proposals/{proposal_id}")
    expect_equal(shown["status"], "rejected", "the status a restart later")
    expect_equal(
        [(item["reviewer"], item["comment"]) for item in shown["reviews"]],
        [("reviewer", REASON)],
        "who and why",
    )
    work = tale.store.get_changeset(mixed["changeset_id"])
    expect_equal(
        work["ops"][1]["payload"]["content"], "A seat hold lasts 11 minutes.", "the rejected work itself"
    )
    kept = tale.store.resolve_ref(PROJECT, f"refs/proposals/{proposal_id}")
    attested = tale.store.get_changeset(kept["head_changeset_id"])["ops"][-1]
    expect_equal(attested["op_type"], "attach_verification", "the attestation on the proposal's ref")
    expect_equal(attested["payload"]["reviewer"], "reviewer", "the attestation's reviewer")
    expect_equal(attested["payload"]["note"], REASON, "the attestation's reason")
    refusal(
        lambda: tale.reviewer.post(f"/proposals/{proposal_id}/merge"),
        "proposal_closed",
        "merging what was rejected",
    )
    return {"proposal": proposal_id, "reviewer": "reviewer", "reason": REASON}


def a_revert_restores(tale: Tale) -> Mapping[str, Any]:
    """A revert restores the former value by a new changeset; nothing is deleted; history shows all three versions."""
    former = tale.state_at(tale.shared_head())[CACHE]
    change = {
        "op_type": "correct_memory",
        "target_event_id": CACHE,
        "payload": {"content": "The seat map is cached for an hour."},
    }
    corrected = branch_and_commit(tale, "agent-a", "cache", [change], "Cache the seat map longer")
    merged = tale.accept(tale.propose("agent-a", corrected["changeset_id"], "A longer cache")["proposal_id"])
    tale.kept["before_revert"] = _record_context(tale)
    changed = tale.state_at(merged["merged_head"])[CACHE]
    expect(changed["record_digest"] != former["record_digest"], "the correction changed the record")

    revert = tale.agent_b.call(
        "memory_revert_propose", project=PROJECT, changeset_id=corrected["changeset_id"]
    )
    merged = tale.accept(revert["proposal_id"])
    tale.kept["after_revert"] = _record_context(tale)
    restored = tale.state_at(merged["merged_head"])[CACHE]
    expect_equal(restored["record"]["content"], former["record"]["content"], "the value after the revert")
    versions = tale.store.memory_history(PROJECT, merged["merged_head"], CACHE)["versions"]
    expect_equal(
        [item["record"]["content"] for item in versions],
        [
            "The seat map is cached for fifteen seconds.",
            "The seat map is cached for an hour.",
            "The seat map is cached for fifteen seconds.",
        ],
        "the three versions, newest first",
    )
    expect(
        tale.store.is_ancestor(PROJECT, corrected["changeset_id"], merged["merged_head"]),
        "the reverted changeset stays in history",
    )
    return {"memory": CACHE, "versions": len(versions), "reverted": corrected["changeset_id"]}


def _record_context(tale: Tale) -> Json:
    """Asks for the accepted context at the present head and pins it; gives the answer."""
    asked = {"ref": SHARED_MAIN, "query": "seat map cache", "limit": 20, "create_manifest": True}
    context: Json = tale.world.person("agent-a").post(f"/projects/{PROJECT}/context", asked)
    expect(
        any(item["memory_id"] == CACHE for item in context["memories"]),
        "the context holds the memory in question",
    )
    told = tale.agent_a.call("memory_context_at", project=PROJECT, ref=SHARED_MAIN, query="seat map cache")
    expect_equal(told["memories"], context["memories"], "the same context over MCP")
    return context
