"""What clients do to a model's arguments: markup of the call inside a value, half characters, a body reduced to its edit."""

from __future__ import annotations

from typing import Any

import pytest
from gate_world import PROJECT, GateWorld
from mcp_types import CallToolResult, TextContent

from memory_git.mcp.errors import REFUSAL
from memory_git.mcp.markup import markup_at
from memory_git.mcp.server import TOOLS, call

BY_NAME = {tool.name: tool for tool in TOOLS}


def opens(name: str, rest: str = "") -> str:
    return f"<{name}{rest}>"


def closes(name: str) -> str:
    return opens(f"/{name}")


NAMED = opens("parameter", " name='kind'")
SWALLOWED = {
    "the end of its own argument and the next": f"Fridays.{closes('content')}\n{NAMED}fact",
    "the end of the call": f"Fridays.{closes('parameter')}\n{closes('invoke')}",
    "the end of all calls": f"Fridays.\n{closes('function_calls')}",
    "a name space before": f"Fridays.{closes('ns:parameter')}",
    "another call": f"Fridays. {opens('invoke', ' name=memory_merge')}",
    "in capitals": f"Fridays.{closes('PARAMETER')}",
    "a tool_call element": f"Fridays.{closes('tool_call')}",
    "a function by its name": f"Fridays.{opens('function=memory_merge')}",
    "a special token": f"Fridays.{opens('|tool_call_end|')}",
    "a special token of wide signs": f"Fridays.{opens('｜tool▁calls▁begin｜')}",
    "a word in brackets": "Fridays.[TOOL_CALLS] [{}]",
    "after code that is closed": f"`ls` ```\nls\n```{closes('parameter')}",
    "after code that is not closed": f"```\nls{closes('parameter')}",
}
SOUND = {
    "plain words": "Releases go out on Fridays.",
    "a comparison": "a < b and b > c, x <- y; List<Parameter> p",
    "another element": f"{opens('content')}Fridays{closes('content')}",
    "a word": "The parameter invoke takes; function calls and tool calls are counted.",
    "markup set in code": f"The call ends with `{closes('parameter')}` and `{closes('invoke')}`.",
    "markup in a block of code": f"```xml\n{NAMED}fact{closes('parameter')}\n```\nis how it is sent.",
    "an arrow and a pipe": "a |> b <| c",
}


@pytest.mark.parametrize("text", SWALLOWED.values(), ids=SWALLOWED.keys())
def test_markup_of_a_call_is_seen(text: str) -> None:
    assert markup_at(text) is not None


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND.keys())
def test_what_is_about_markup_or_looks_a_little_like_it_passes(text: str) -> None:
    assert markup_at(text) is None


def called(world: GateWorld, name: str, **arguments: Any) -> CallToolResult:
    return call(BY_NAME[name], world.gate, world.caller("one", "mcp"), {"project": PROJECT, **arguments})


def committed(world: GateWorld, op: dict[str, Any], **more: Any) -> CallToolResult:
    return called(world, "memory_changeset_create", message="notes", ops=[op], read_head=True, **more)


def told(result: CallToolResult) -> tuple[str, str]:
    """Gives the code of a refusal and the text that a model reads."""
    assert isinstance(result.content[0], TextContent)
    return (result.meta or {}).get(REFUSAL, {}).get("code", "passed"), result.content[0].text


@pytest.mark.parametrize("text", [*SWALLOWED.values(), "half \ud83d a face"])
def test_nothing_of_it_is_committed_and_the_model_is_told_what_to_do(world: GateWorld, text: str) -> None:
    code, words = told(
        committed(world, {"op_type": "add_memory", "payload": {"memory_id": "a", "content": text}})
    )
    assert code == "invalid_request"
    assert "ops[0].payload.content" in words
    assert "set it in `code`" in words or "send it whole" in words
    assert "Fridays" not in words
    assert world.gate.status(world.caller("one"), PROJECT)["working_head"] is None


LONG = "Releases go out on Fridays, after the tests are green and two people have looked. " * 5


def corrected(world: GateWorld, content: str, **more: Any) -> CallToolResult:
    op = {"op_type": "correct_memory", "target_event_id": "a", "payload": {"content": content}}
    return committed(world, op, **more)


def test_a_body_that_shrinks_to_a_tenth_is_asked_about(world: GateWorld) -> None:
    world.add("one", "a", LONG)
    code, words = told(corrected(world, "on Mondays"))
    assert (code, "shrink_ok" in words, "Fridays" in words) == ("invalid_changeset", True, False)
    assert world.content("a", "one", ref="refs/agents/one/main") == LONG
    assert told(corrected(world, LONG.replace("Fridays", "Mondays")[: len(LONG) // 2]))[0] == "passed"
    assert told(corrected(world, "Mondays.", shrink_ok=True))[0] == "passed"
    assert world.content("a", "one", ref="refs/agents/one/main") == "Mondays."
    assert told(corrected(world, "M"))[0] == "passed", "a short note may become shorter"


def test_a_shrinking_body_is_told_with_the_other_faults(world: GateWorld) -> None:
    world.add("one", "a", LONG)
    ops = [
        {"op_type": "correct_memory", "target_event_id": "a", "payload": {"content": "x"}},
        {"op_type": "set_status", "target_event_id": "a", "payload": {"status": "nonsense"}},
    ]
    result = called(world, "memory_changeset_create", message="notes", ops=ops, read_head=True)
    facts = (result.meta or {})[REFUSAL]
    assert {fault["ordinal"] for fault in facts["faults"]} == {0, 1}


def test_the_length_of_what_may_not_be_seen_is_not_told(world: GateWorld) -> None:
    world.add("one", "a", LONG)
    op = {"op_type": "correct_memory", "target_event_id": "a", "payload": {"content": "x"}}
    arguments = {"project": PROJECT, "message": "m", "ops": [op], "read_head": True}
    refused = call(BY_NAME["memory_changeset_create"], world.gate, world.caller("two", "mcp"), arguments)
    assert "shrink" not in told(refused)[1]


def test_a_program_over_http_is_not_asked(world: GateWorld) -> None:
    world.add("one", "a", LONG)
    world.correct("one", "a", content="Mondays.")
    assert world.content("a", "one", ref="refs/agents/one/main") == "Mondays."
