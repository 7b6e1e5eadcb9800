"""The whole state machine of a proposal at the gate: every act in every status, those that must not be included."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gate_world import PROJECT, GateWorld

from memory_git.domain.errors import Refused
from memory_git.domain.proposals import FINAL_STATUSES, STATUSES, TRANSITIONS


def expired(world: GateWorld, name: str) -> dict[str, Any]:
    world.later(days=40)
    return world.gate.proposal(world.caller("bob"), name)


Act = Callable[[GateWorld, str], dict[str, Any]]
ACTS: dict[str, Act] = {
    "approve": lambda world, name: world.gate.review(world.caller("cy"), name, "approve"),
    "object": lambda world, name: world.gate.review(world.caller("cy"), name, "request_changes", comment="c"),
    "reject": lambda world, name: world.gate.review(world.caller("cy"), name, "reject", comment="c"),
    "merge": lambda world, name: world.merge(name),
    "cancel": lambda world, name: world.gate.cancel(world.caller("one"), name),
    "rebase": lambda world, name: world.gate.rebase(world.caller("one"), name),
    "expire": expired,
}
REACHES: dict[str, Callable[[GateWorld, str], object]] = {
    "pending": lambda world, name: None,
    "approved": lambda world, name: world.approve(name),
    "changes_requested": lambda world, name: world.gate.review(
        world.caller("bob"), name, "request_changes", comment="c"
    ),
    "merged": lambda world, name: (world.approve(name), world.merge(name)),
    "rejected": lambda world, name: world.gate.review(world.caller("bob"), name, "reject", comment="c"),
    "canceled": lambda world, name: world.gate.cancel(world.caller("one"), name),
    "expired": expired,
}
CLOSED = {
    **dict.fromkeys(("approve", "object", "reject", "cancel", "rebase", "merge"), "proposal_closed"),
    "expire": "same",
}
TABLE: dict[str, dict[str, str]] = {
    "pending": {
        "approve": "approved",
        "object": "changes_requested",
        "reject": "rejected",
        "merge": "not_approved",
        "cancel": "canceled",
        "rebase": "pending",
        "expire": "expired",
    },
    "approved": {
        "approve": "approved",
        "object": "changes_requested",
        "reject": "rejected",
        "merge": "merged",
        "cancel": "canceled",
        "rebase": "approved",
        "expire": "expired",
    },
    "changes_requested": {
        "approve": "changes_requested",
        "object": "changes_requested",
        "reject": "rejected",
        "merge": "not_approved",
        "cancel": "canceled",
        "rebase": "changes_requested",
        "expire": "expired",
    },
    **dict.fromkeys(FINAL_STATUSES, CLOSED),
}
"""What each act comes to in each status: the status after it, or the code that refuses it and leaves everything as it was."""


def test_the_table_has_every_status_and_every_act() -> None:
    assert TABLE.keys() == REACHES.keys() == set(STATUSES)
    assert all(row.keys() == ACTS.keys() for row in TABLE.values())


@pytest.mark.parametrize("status", STATUSES)
def test_every_act_in_every_status_comes_to_what_the_table_says(tmp_path: Path, status: str) -> None:
    for act, expected in TABLE[status].items():
        world = GateWorld(tmp_path / act)
        world.add("one", "m/1", "one thing")
        name = str(world.propose("one")["proposal_id"])
        REACHES[status](world, name)
        before = stood(world, name)
        assert before[0] == status
        try:
            ACTS[act](world, name)
        except Refused as refusal:
            assert refusal.code == expected, (status, act, refusal.code)
            assert stood(world, name) == before, (status, act)
        else:
            after = stood(world, name)
            assert after[0] == (status if expected == "same" else expected), (status, act)
            assert after[0] == status or after[0] in TRANSITIONS[status], (status, act)
        if status != "merged":
            assert len(world.lethe.list_advances(PROJECT)) == (1 if expected == "merged" else 0)
        world.close()


@pytest.mark.parametrize("status", ["rejected", "canceled", "expired"])
def test_work_whose_proposal_ended_may_be_proposed_anew_and_is_another_proposal(
    world: GateWorld, status: str
) -> None:
    world.add("one", "m/1", "one thing")
    first = str(world.propose("one")["proposal_id"])
    REACHES[status](world, first)
    again = world.propose("one")
    assert again["proposal_id"] != first
    assert (again["status"], again["replayed"]) == ("pending", False)
    assert stood(world, first)[0] == status


def stood(world: GateWorld, name: str) -> tuple[Any, ...]:
    seen = world.gate.proposal(world.caller("bob"), name)
    return (
        seen["status"],
        seen["head_changeset_id"],
        [(review["reviewer"], review["verdict"]) for review in seen["reviews"]],
        world.head(),
    )


@pytest.mark.parametrize(
    ("policy", "approvers", "lacks"),
    [
        pytest.param({}, ["bob"], [], id="one approval is enough by default"),
        pytest.param(
            {"approvals_needed": 2}, ["bob"], ["approval_missing"], id="two are asked, one is there"
        ),
        pytest.param({"approvals_needed": 2}, ["bob", "bob"], ["approval_missing"], id="twice by one is one"),
        pytest.param({"approvals_needed": 2}, ["bob", "cy"], [], id="two of two"),
        pytest.param(
            {"human_must_approve": True}, ["robot"], ["human_approval_missing"], id="a service alone"
        ),
        pytest.param({"human_must_approve": True}, ["robot", "bob"], [], id="a service and a person"),
        pytest.param(
            {"human_must_approve": True, "approvals_needed": 2},
            ["bob"],
            ["approval_missing"],
            id="a person alone",
        ),
        pytest.param(
            {"human_must_approve": True, "approvals_needed": 2},
            ["robot", "second"],
            ["human_approval_missing"],
            id="two services",
        ),
    ],
)
def test_a_merge_waits_for_the_approvals_that_the_policy_asks_for(
    world: GateWorld, policy: dict[str, Any], approvers: list[str], lacks: list[str]
) -> None:
    for name in ("robot", "second"):
        world.gate.add_principal(world.operator, name, "service", profile="review")
        world.gate.grant(world.operator, name, PROJECT)
        world.tokens[name] = world.gate.mint_obol(world.operator, name)["token"]
    world.gate.project_policy(world.gate.as_principal("ann"), PROJECT, policy)
    world.add("one", "m/1", "one thing")
    name = str(world.propose("one")["proposal_id"])
    for approver in approvers:
        seen = world.approve(name, approver)
    assert [item["code"] for item in seen["verdict"]["missing"]] == lacks
    if lacks:
        with pytest.raises(Refused) as refused:
            world.merge(name, "cy")
        assert refused.value.code == "not_approved"
    else:
        assert world.merge(name, "cy")["status"] == "merged"
