"""Completions suggest what the caller's own lists say, and nothing where it may not look."""

from __future__ import annotations

import pytest
from gate_world import PROJECT, GateWorld

from memory_git.mcp.completions import MAX_VALUES, completion


def suggested(
    world: GateWorld, who: str, name: str, begun: str = "", project: str | None = None
) -> list[str]:
    return list(completion(world.gate, world.caller(who), name, begun, project).values)


def test_projects_refs_proposals_changesets_and_memories_are_suggested(world: GateWorld) -> None:
    made = world.add("ann", "note/a", "Releases go out on Fridays.")
    proposal = world.propose("ann")
    own = made["ref"]["ref_name"]
    assert suggested(world, "ann", "project") == [PROJECT]
    assert set(suggested(world, "ann", "ref", "refs/")) >= {own, "refs/shared/main"}
    assert suggested(world, "ann", "target", own) == [own]
    assert suggested(world, "ann", "proposal_id") == [proposal["proposal_id"]]
    assert made["changeset"]["changeset_id"] in suggested(world, "ann", "changeset_id")
    assert suggested(world, "ann", "memory_id", "note/") == ["note/a"]
    assert suggested(world, "ann", "memory_id", "other/") == []


def test_a_branch_that_may_not_be_read_is_not_suggested(world: GateWorld) -> None:
    own = world.add("ann", "note/a", "hidden")["ref"]["ref_name"]
    assert own not in suggested(world, "bob", "ref")
    assert suggested(world, "bob", "memory_id") == []


@pytest.mark.parametrize("name", ["project", "ref", "proposal_id", "changeset_id", "memory_id"])
def test_a_project_that_may_not_be_known_suggests_what_one_that_is_not_there_does(
    world: GateWorld, name: str
) -> None:
    world.gate.init_project(world.operator, "hidden")
    assert suggested(world, "ann", name, "", "hidden") == suggested(world, "ann", name, "", "absent")


def test_what_is_not_known_or_no_text_suggests_nothing(world: GateWorld) -> None:
    assert suggested(world, "ann", "message") == []
    assert suggested(world, "ann", "ref", "\ud800") == []


def test_a_long_list_is_cut_and_says_so(world: GateWorld) -> None:
    ops = [
        {"op_type": "add_memory", "payload": {"memory_id": f"m{n:03}", "content": f"number {n}"}}
        for n in range(MAX_VALUES + 5)
    ]
    world.commit("ann", ops)
    found = completion(world.gate, world.caller("ann"), "memory_id", "m", None)
    assert (len(found.values), found.total, found.has_more) == (MAX_VALUES, MAX_VALUES + 5, True)
