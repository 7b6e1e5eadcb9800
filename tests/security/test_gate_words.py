"""What is no text is refused by the gate, whoever brings it: nothing of it reaches a row, and the ledger goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from gate_world import MAIN, PROJECT, GateWorld

from memory_git.charon.gate import Caller, Gate
from memory_git.domain.errors import Invalid
from memory_git.domain.ids import SHARED_MAIN

CUT, NUL = "caf\udcc3", "a\0b"
ABSENT = "018f0000-0000-7000-8000-000000000000"
Verb = Callable[[Gate, Caller, str, str], Any]

VERBS: dict[str, Verb] = {
    "a proposal's title": lambda gate, by, p, text: gate.propose(by, PROJECT, message="m", title=text),
    "a proposal's message": lambda gate, by, p, text: gate.propose(by, PROJECT, message=text),
    "a proposal's key": lambda gate, by, p, text: gate.propose(
        by, PROJECT, message="m", idempotency_key=text
    ),
    "a review's comment": lambda gate, by, p, text: gate.review(by, p, "approve", comment=text),
    "a review's finding": lambda gate, by, p, text: gate.review(by, p, "approve", findings=[{"text": text}]),
    "a finding's key": lambda gate, by, p, text: gate.review(by, p, "approve", findings=[{text: "x"}]),
    "a merge's key": lambda gate, by, p, text: gate.merge(by, p, idempotency_key=text),
    "a proposal's id": lambda gate, by, p, text: gate.proposal(by, text),
    "a conflict's note": lambda gate, by, p, text: gate.resolve_conflict(by, PROJECT, ABSENT, "both", text),
    "a redaction's reason": lambda gate, by, p, text: gate.redact(by, PROJECT, "m/1", text),
    "a revert's title": lambda gate, by, p, text: gate.propose_revert(by, PROJECT, ABSENT, title=text),
    "a revert's message": lambda gate, by, p, text: gate.propose_revert(by, PROJECT, ABSENT, message=text),
    "a commit's message": lambda gate, by, p, text: gate.commit(
        by, PROJECT, message=text, ops=[], read_head=True
    ),
    "a search": lambda gate, by, p, text: gate.search(by, PROJECT, text, ref=SHARED_MAIN),
    "a memory's id": lambda gate, by, p, text: gate.memory(by, PROJECT, text, ref=MAIN),
    "a changeset's id": lambda gate, by, p, text: gate.show(by, PROJECT, text),
    "a branch": lambda gate, by, p, text: gate.create_branch(by, PROJECT, text),
    "a principal's id": lambda gate, by, p, text: gate.add_principal(gate.as_operator(), text, "human"),
    "a display name": lambda gate, by, p, text: gate.add_principal(
        gate.as_operator(), "new", "human", display_name=text
    ),
    "an actor of a new principal": lambda gate, by, p, text: gate.add_principal(
        gate.as_operator(), "new", "human", actor_ids=[text]
    ),
    "an actor": lambda gate, by, p, text: gate.add_actor(gate.as_operator(), "one", text),
    "who gets a grant": lambda gate, by, p, text: gate.grant(gate.as_operator(), text, PROJECT),
    "a grant's pattern": lambda gate, by, p, text: gate.grant(
        gate.as_operator(), "one", PROJECT, refs=[f"refs/topics/{text}"]
    ),
    "a grant's project": lambda gate, by, p, text: gate.revoke_grant(gate.as_operator(), "one", text),
    "whose grants": lambda gate, by, p, text: gate.grants(gate.as_operator(), text),
    "whose token": lambda gate, by, p, text: gate.mint_obol(gate.as_operator(), text),
    "a token's id": lambda gate, by, p, text: gate.revoke_obol(gate.as_operator(), text),
    "a policy's field": lambda gate, by, p, text: gate.project_policy(by, PROJECT, {text: 1}),
    "a project": lambda gate, by, p, text: gate.status(by, text),
    "who signs in": lambda gate, by, p, text: gate.mint_sign_in(gate.as_operator(), text),
}


@pytest.mark.parametrize("text", [CUT, NUL], ids=["surrogate", "nul"])
@pytest.mark.parametrize("name", VERBS)
def test_what_is_no_text_is_refused_as_invalid_and_the_ledger_goes_on(
    world: GateWorld, name: str, text: str
) -> None:
    world.add("one", "m/1", "one")
    proposal_id = world.propose("one")["proposal_id"]
    with pytest.raises(Invalid) as refusal:
        VERBS[name](world.gate, world.gate.as_principal("bob"), proposal_id, text)
    assert text not in str(refusal.value.to_problem())
    world.approve(proposal_id)
    assert world.gate.ledger_verify(world.operator)["ok"]


def test_nobody_acts_in_a_name_that_is_no_text(world: GateWorld) -> None:
    with pytest.raises(Invalid) as refusal:
        world.gate.as_principal(CUT)
    assert refusal.value.code == "not_text"


def test_a_content_that_is_no_text_is_refused_as_no_wire_could_have_brought_it(world: GateWorld) -> None:
    with pytest.raises(Invalid) as refusal:
        world.add("one", "m/1", CUT)
    assert refusal.value.code == "not_i_json"


@pytest.mark.parametrize("op_type", [[], {}, ["add_memory"], {"add_memory": 1}, 7, None, True])
def test_an_op_type_that_is_no_text_is_a_fault(world: GateWorld, op_type: Any) -> None:
    with pytest.raises(Invalid) as refusal:
        world.commit("one", [{"op_type": op_type, "payload": {"content": "x"}}])
    assert [(fault.ordinal, fault.field) for fault in refusal.value.faults] == [(0, "op_type")]
