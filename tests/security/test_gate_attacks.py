"""Holes that an attacker of the gate once found, each by the name of what it must not be able to do again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from gate_world import MAIN, PROJECT, GateWorld

from memory_git.domain.errors import Clash, Refused


def proposed(world: GateWorld, memory_id: str = "m/1") -> str:
    world.add("one", memory_id, f"text of {memory_id}")
    proposal_id = str(world.propose("one")["proposal_id"])
    world.approve(proposal_id)
    return proposal_id


def refused(call: Callable[[], Any]) -> Refused:
    with pytest.raises(Refused) as found:
        call()
    return found.value


# what was answered holds


ENDINGS: dict[str, Callable[[GateWorld, str], Any]] = {
    "cancel": lambda world, name: world.gate.cancel(world.caller("one"), name),
    "reject": lambda world, name: world.gate.review(world.caller("cy"), name, "reject", comment="no"),
    "object": lambda world, name: world.gate.review(
        world.caller("cy"), name, "request_changes", comment="no"
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_else_ends_a_proposal_while_its_merge_is_under_way(world: GateWorld, ending: str) -> None:
    proposal_id = proposed(world)
    answers: list[Refused] = []
    lethe, land = world.lethe, world.lethe.merge_ref

    def meanwhile(*args: Any) -> Any:
        answers.append(refused(lambda: ENDINGS[ending](world, proposal_id)))
        return land(*args)

    lethe.merge_ref = meanwhile
    assert world.merge(proposal_id)["status"] == "merged"
    assert [item.code for item in answers] == ["merge_under_way"]
    assert world.gate.proposal(world.caller("bob"), proposal_id)["status"] == "merged"
    assert world.gate.reconcile(world.operator)["ok"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_merge_does_not_begin_on_a_proposal_that_ended_while_it_was_judged(
    world: GateWorld, ending: str
) -> None:
    proposal_id = proposed(world)
    lethe, plan = world.lethe, world.lethe.plan_merge
    ended: list[Any] = []

    def meanwhile(*args: Any) -> Any:
        found = plan(*args)
        if not ended:
            ended.append(None)
            ended.append(ENDINGS[ending](world, proposal_id))
        return found

    lethe.plan_merge = meanwhile
    refusal = refused(lambda: world.merge(proposal_id))
    assert isinstance(refusal, Clash) and refusal.code in ("proposal_closed", "not_approved")
    assert len(ended) == 2 and world.lethe.list_advances(PROJECT) == []
    assert world.gate.reconcile(world.operator)["ok"]


def test_an_attempt_that_lands_while_it_is_asked_about_does_not_count_as_failed(world: GateWorld) -> None:
    proposal_id = proposed(world)
    lethe, land, resolve = world.lethe, world.lethe.merge_ref, world.lethe.resolve_ref
    landing: list[tuple[Any, ...]] = []

    def later(*args: Any) -> Any:
        landing.append(args)
        return None

    def resolved(*args: Any) -> Any:
        if landing:
            land(*landing.pop())
        return resolve(*args)

    lethe.merge_ref, lethe.get_changeset, kept = later, _gone, lethe.get_changeset
    with pytest.raises(ConnectionError):
        world.merge(proposal_id)
    lethe.get_changeset, lethe.merge_ref, lethe.resolve_ref = kept, land, resolved
    assert refused(lambda: world.gate.cancel(world.caller("one"), proposal_id)).code == "proposal_closed"
    assert world.gate.proposal(world.caller("bob"), proposal_id)["status"] == "merged"
    assert world.gate.reconcile(world.operator, repair=True)["ok"]


def _gone(*_: Any) -> Any:
    raise ConnectionError
