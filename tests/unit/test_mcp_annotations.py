"""The hints of tools are true: what says that it reads leaves nothing behind, what says that it may be repeated changes once."""

from __future__ import annotations

from typing import Any

import pytest
from gate_world import PROJECT, GateWorld

from memory_git.mcp.server import TOOLS, call
from memory_git.mcp.tool import GateTool

READING = [tool for tool in TOOLS if tool.effect == "reads"]
REPEATABLE = [tool for tool in TOOLS if tool.effect in ("repeatable", "ends")]


@pytest.fixture
def given(world: GateWorld) -> dict[str, Any]:
    """Gives arguments by name, of what is there."""
    made = world.add("one", "note/a", "Releases go out on Fridays.")
    proposal = world.propose("one")
    return {
        "project": PROJECT,
        "query": "Fridays",
        "id": "changeset:" + made["changeset"]["changeset_id"],
        "changeset_id": made["changeset"]["changeset_id"],
        "proposal_id": proposal["proposal_id"],
        "ref": "refs/agents/one/side",
        "message": "as agreed",
    }


def called(world: GateWorld, tool: GateTool, given: dict[str, Any], who: str) -> Any:
    arguments = {name: given[name] for name in tool.parameters.required}
    result = call(
        tool,
        world.gate,
        world.caller(who, "mcp"),
        {"project": PROJECT, **arguments} if "project" in tool.parameters.properties else arguments,
    )
    assert not result.is_error, result.content
    return result.structured_content


def changes(world: GateWorld) -> list[tuple[str, str]]:
    """Gives the intents of mutations, and where the refs stand."""
    rows = world.gate.ledger_tail(world.operator, PROJECT, 1000)
    refs = world.lethe.list_refs(PROJECT)
    return [(row["kind"], row["route"]) for row in rows if row["kind"] == "intent"] + [
        (ref["ref_name"], ref["head_changeset_id"]) for ref in refs
    ]


@pytest.mark.parametrize("tool", READING, ids=lambda tool: tool.name)
def test_a_tool_that_reads_changes_nothing(world: GateWorld, given: dict[str, Any], tool: GateTool) -> None:
    before = changes(world)
    called(world, tool, given, "one")
    assert changes(world) == before


@pytest.mark.parametrize("tool", REPEATABLE, ids=lambda tool: tool.name)
def test_a_tool_that_may_be_repeated_changes_once(
    world: GateWorld, given: dict[str, Any], tool: GateTool
) -> None:
    who = "one"
    if tool.name == "memory_repo_init":
        who = "ann"
    if tool.name == "memory_merge":
        world.approve(given["proposal_id"])
        who = "bob"
    called(world, tool, given, who)
    stands = world.lethe.list_refs(PROJECT)
    arguments = {name: given[name] for name in tool.parameters.required}
    call(tool, world.gate, world.caller(who, "mcp"), arguments)
    assert world.lethe.list_refs(PROJECT) == stands


def test_what_ends_something_for_good_says_so() -> None:
    hints = {tool.name: tool.listed().annotations for tool in TOOLS}
    destructive = {name for name, hint in hints.items() if hint is not None and hint.destructive_hint}
    assert destructive == {"memory_merge_cancel"}
