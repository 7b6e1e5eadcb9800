"""Many callers of one gate at once: one wins where one may, nothing that was acknowledged is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from gate_world import MAIN, PROJECT, GateWorld

from memory_git.domain.errors import Clash, Refused


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """Runs calls together and gives what each returned, or the refusal it raised."""
    found: list[Any] = [None] * len(calls)
    start = threading.Barrier(len(calls))

    def run(place: int) -> None:
        start.wait()
        try:
            found[place] = calls[place]()
        except Refused as refusal:
            found[place] = refusal

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_one_proposal_merged_by_many_lands_once(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    proposal_id = world.propose("one")["proposal_id"]
    world.approve(proposal_id)
    found = at_once(
        [lambda name=name: world.merge(proposal_id, name) for name in ("bob", "cy", "ann", "bob")]
    )
    assert sum(isinstance(item, dict) for item in found) == 1
    assert all(isinstance(item, dict | Clash) for item in found)
    assert len(world.lethe.list_advances(PROJECT)) == 1
    assert world.gate.reconcile(world.operator, repair=True)["ok"]


def test_disjoint_proposals_merged_together_all_land(world: GateWorld) -> None:
    made = []
    for place in range(6):
        ref = world.gate.create_branch(world.caller("one"), PROJECT, f"refs/agents/one/b{place}")["ref_name"]
        op = {"op_type": "add_memory", "payload": {"memory_id": f"m/{place}", "content": f"text {place}"}}
        world.commit("one", [op], ref=ref)
        proposal_id = world.propose("one", source_ref=ref)["proposal_id"]
        world.approve(proposal_id)
        made.append(proposal_id)
    found = at_once([lambda name=name: world.merge(name) for name in made])
    assert [item["status"] for item in found] == ["merged"] * 6
    assert world.gate.memories(world.caller("bob"), PROJECT, ref=MAIN)["total"] == 6
    assert world.gate.reconcile(world.operator)["ok"]
    assert world.lethe.verify(PROJECT)["ok"]


def test_one_key_proposes_once_however_often_it_is_sent_at_once(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    found = at_once([lambda: world.propose("one", idempotency_key="k")] * 6)
    assert len({item["proposal_id"] for item in found}) == 1
    assert sum(not item["replayed"] for item in found) == 1
    assert len(world.gate.proposals(world.caller("bob"), PROJECT)["proposals"]) == 1


def test_one_head_is_proposed_once_however_many_propose_it_at_once_without_a_key(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    found = at_once([lambda: world.propose("one")] * 6)
    made = world.gate.proposals(world.caller("bob"), PROJECT)["proposals"]
    assert len(made) == 1
    for item in found:
        named = item.facts["proposal_id"] if isinstance(item, Clash) else item["proposal_id"]
        assert named == made[0]["proposal_id"]
    assert world.gate.reconcile(world.operator, repair=True)["ok"]


def test_commits_on_one_head_have_one_winner_a_round(world: GateWorld) -> None:
    head = world.add("one", "m/0", "text")["changeset"]["changeset_id"]

    def commit(place: int) -> Any:
        op = {"op_type": "add_memory", "payload": {"memory_id": f"m/r{place}", "content": "text"}}
        return world.commit("one", [op], expected_head=head)

    found = at_once([lambda place=place: commit(place) for place in range(8)])
    won = [item for item in found if isinstance(item, dict)]
    assert len(won) == 1
    assert {item.code for item in found if isinstance(item, Refused)} == {"ref_moved"}
    assert world.head("refs/agents/one/main") == won[0]["changeset"]["changeset_id"]
