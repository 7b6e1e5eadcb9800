"""Rejection kept as knowledge: what was refused before is told, with its reason, to whoever may know of it."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from gate_world import PROJECT, GateWorld

from memory_git.cli import charon
from memory_git.cli.program import run
from memory_git.domain.refused_values import proposed_values
from memory_git.http.charon_app import create_charon_app
from memory_git.http.serving import running
from memory_git.mcp.server import TOOLS, build_server, call
from memory_git.web.app import create_pages

REASON = "We deploy on Fridays since the audit."


def refuse(
    world: GateWorld, name: str = "one", content: str = "Deploys go out on Tuesdays.", **payload: Any
) -> str:
    world.add(name, "deploy/day", content, **payload)
    proposal_id = str(world.propose(name)["proposal_id"])
    world.gate.review(world.caller("bob"), proposal_id, "reject", comment=REASON)
    return proposal_id


def again(world: GateWorld, name: str, memory_id: str, content: str, **payload: Any) -> dict[str, Any]:
    world.gate.create_branch(world.caller(name), PROJECT, f"refs/agents/{name}/again")
    op = {"op_type": "add_memory", "payload": {"memory_id": memory_id, "content": content, **payload}}
    world.commit(name, [op], ref=f"refs/agents/{name}/again")
    return world.propose(name, source_ref=f"refs/agents/{name}/again")


@pytest.mark.parametrize(
    ("content", "payload", "is_told"),
    [
        pytest.param("Deploys go out on Tuesdays.", {}, True, id="the same text"),
        pytest.param("deploys  go out on TUESDAYS", {}, True, id="the same text, written otherwise"),
        pytest.param("Deploys go out on Wednesdays.", {}, False, id="another day"),
        pytest.param("Deploys go out on Tuesdays.", {"scope": "staging"}, False, id="another scope"),
    ],
)
def test_what_was_refused_is_told_when_the_same_value_is_proposed_again(
    world: GateWorld, content: str, payload: dict[str, Any], is_told: bool
) -> None:
    refused = refuse(world)
    made = again(world, "one", "other/id", content, **payload)
    expected = [(refused, ["other/id"], "bob", REASON)] if is_told else []
    for found in (made, world.gate.proposal(world.caller("bob"), made["proposal_id"])):
        told = found["refused_before"]
        assert [(t["proposal_id"], t["memory_ids"], t["reviewer"], t["reason"]) for t in told] == expected
    assert made["status"] == "pending"


def test_a_refusal_is_told_to_nobody_who_may_not_see_the_refused_proposal(world: GateWorld) -> None:
    refused = refuse(world, "one")
    made = again(world, "two", "mine", "Deploys go out on Tuesdays.")
    assert made["refused_before"] == []
    told = world.gate.proposal(world.caller("bob"), made["proposal_id"])["refused_before"]
    assert [item["proposal_id"] for item in told] == [refused]


def test_a_refused_status_and_a_refused_relationship_are_known_again(world: GateWorld) -> None:
    world.commit("one", [add("a", "one thing"), add("b", "another thing")])
    world.accept("one")
    ops = [
        {
            "op_type": "set_status",
            "target_event_id": "a",
            "payload": {"status": "deprecated", "reason": "old"},
        },
        {
            "op_type": "add_relationship",
            "payload": {"kind": "about", "from_memory_id": "a", "to_memory_id": "b"},
        },
    ]
    world.commit("one", ops)
    refused = world.propose("one")["proposal_id"]
    world.gate.review(world.caller("bob"), refused, "reject", comment=REASON)
    world.gate.create_branch(world.caller("one"), PROJECT, "refs/agents/one/again")
    world.commit("one", ops, ref="refs/agents/one/again")
    made = world.propose("one", source_ref="refs/agents/one/again")
    assert [item["memory_ids"] for item in made["refused_before"]] == [["a", "b"]]


def test_a_withdrawn_or_objected_value_was_not_refused(world: GateWorld) -> None:
    world.add("one", "deploy/day", "Deploys go out on Tuesdays.")
    first = world.propose("one")["proposal_id"]
    world.gate.review(world.caller("bob"), first, "request_changes", comment="Say which.")
    world.gate.cancel(world.caller("one"), first)
    assert again(world, "one", "x", "Deploys go out on Tuesdays.")["refused_before"] == []


def test_a_refusal_survives_a_restart_and_a_rotation_of_the_key_and_holds_no_text(world: GateWorld) -> None:
    refused = refuse(world, content="plantedword here")
    world.gate.rotate_secret(world.operator, "ledger")
    world.restart()
    made = again(world, "one", "x", "plantedword here")
    assert [item["proposal_id"] for item in made["refused_before"]] == [refused]
    with world.gate._house.database.read() as connection:
        rows = connection.rows("SELECT * FROM refused_value")
    assert rows
    assert "plantedword" not in str(rows)


def test_what_is_erased_is_forgotten_as_refused_too(world: GateWorld) -> None:
    world.gate.add_principal(world.operator, "officer", "human", profile="readonly", scopes=["memory.redact"])
    world.gate.grant(world.operator, "officer", PROJECT)
    refuse(world)
    world.gate.redact(world.gate.as_principal("officer"), PROJECT, "deploy/day", "asked for")
    with world.gate._house.database.read() as connection:
        assert connection.rows("SELECT * FROM refused_value") == []


def test_a_model_is_told_that_it_was_refused_and_of_contradictions_inside_its_proposal(
    world: GateWorld,
) -> None:
    refuse(world)
    world.gate.create_branch(world.caller("one"), PROJECT, "refs/agents/one/again")
    ops = [
        add("x", "Deploys go out on Tuesdays.", kind="fact", fact_key="deploy/day"),
        add("y", "Deploys go out on Mondays.", kind="fact", fact_key="deploy/day"),
    ]
    world.commit("one", ops, ref="refs/agents/one/again")
    tool = next(tool for tool in TOOLS if tool.name == "memory_merge_propose")
    arguments = {"project": PROJECT, "message": "again", "source_ref": "refs/agents/one/again"}
    answer = call(tool, world.gate, world.caller("one", "mcp"), arguments)
    text = str(answer.content)
    assert "proposed before and refused" in text
    assert "contradicts itself" in text
    assert answer.structured_content["refused_before"][0]["reason"] == REASON
    before_the_fence = text.split("Between the two marks", maxsplit=1)[0]
    assert REASON not in before_the_fence
    server = build_server(world.gate, lambda: world.caller("bob", "mcp"))
    proposal_id = answer.structured_content["proposal_id"]
    read = asyncio.run(server.read_resource(f"memory://{PROJECT}/proposals/{proposal_id}"))
    assert REASON in str(read)


def test_values_are_those_of_texts_that_would_be_active() -> None:
    def item(memory_id: str, before: dict[str, Any] | None, **after: Any) -> dict[str, Any]:
        return {"memory_id": memory_id, "before": before, "after": {"memory_id": memory_id, **after}}

    same = {"status": "active", "content": "A", "memory_id": "s"}
    diff = {
        "memories_added": [item("a", None, status="active", content="Text.")],
        "corrections_proposed": [
            item("s", same, status="active", content="a"),
            item("b", same, status="active", content="TEXT"),
        ],
        "statuses_changed": [item("c", same, status="retracted", content="A")],
        "target_changeset_id": "x",
    }
    assert list(proposed_values(diff).values()) == [("c",), ("a", "b")]


def add(memory_id: str, content: str, **payload: Any) -> dict[str, Any]:
    return {"op_type": "add_memory", "payload": {"memory_id": memory_id, "content": content, **payload}}


def test_a_person_reads_it_on_the_page_and_in_the_terminal(
    world: GateWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = refuse(world)
    world.gate.create_branch(world.caller("one"), PROJECT, "refs/agents/one/again")
    ops = [
        add("x", "Deploys go out on Tuesdays.", kind="fact", fact_key="deploy/day"),
        add("y", "Deploys go out on Mondays.", kind="fact", fact_key="deploy/day"),
    ]
    world.commit("one", ops, ref="refs/agents/one/again")
    proposal_id = world.propose("one", source_ref="refs/agents/one/again")["proposal_id"]
    app = create_charon_app(world.gate, pages=create_pages(world.gate))
    with running(app, on_stop=world.gate.feed.close) as where, httpx.Client(base_url=where.url) as browser:
        browser.headers["Origin"] = where.url
        browser.post("/sign-in", data={"token": world.tokens["bob"]})
        page = browser.get(f"/proposals/{proposal_id}").text
        for words in ("Proposed before and refused", REASON, refused, "direct contradiction"):
            assert words in page.replace("_", " ") or words in page
        monkeypatch.setenv("CHARON_URL", where.url)
        monkeypatch.setenv("CHARON_TOKEN", world.tokens["bob"])
        monkeypatch.setenv("XDG_CONFIG_HOME", str(world.folder))
        assert run(charon.program, ["proposal", "show", proposal_id]) == 0
    told = capsys.readouterr().out.lower()
    for words in ("refused before", "we deploy on fridays", "note: direct contradiction"):
        assert words in told
