"""Every output of every face against a dictionary model of who may see what (6-charon, reading; 12-lessons, permissions)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import policy_outputs as outputs
import pytest
from policy_outputs import EVERY, Desk, Output, Told
from policy_world import (
    KEPT,
    PEOPLE,
    PROJECT,
    READERS,
    SEARCHERS,
    SEES_PROPOSAL,
    TOPIC,
    WORK,
    Planted,
    PolicyWorld,
    words_in,
)

from memory_git.http.charon_app import create_charon_app
from memory_git.http.oauth_app import oauth_app
from memory_git.http.serving import running
from memory_git.lethe.feed import FeedEvent
from memory_git.mcp.completions import _SOURCES
from memory_git.mcp.server import TOOLS, build_server
from memory_git.web.app import create_pages


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    world = PolicyWorld(tmp_path_factory.mktemp("policy") / "data")
    app = create_charon_app(world.gate, pages=create_pages(world.gate))
    with running(app, on_stop=world.gate.feed.close) as where:
        desk = Desk(world, where.url)
        yield desk
        desk.close()
    world.close()


def test_every_route_is_in_the_model(desk: Desk) -> None:
    described = create_charon_app(desk.world.gate).openapi()["paths"]
    found = {f"{method.upper()} {path}" for path, item in described.items() for method in item}
    assert found == outputs.HTTP.keys() | outputs.STREAMS.keys()


def test_every_tool_resource_prompt_and_completion_is_in_the_model(desk: Desk) -> None:
    server = build_server(desk.world.gate, lambda: desk.world.caller("ann"))

    async def listed() -> tuple[set[str], set[str], set[str]]:
        templates = {item.uri_template for item in await server.list_resource_templates()}
        resources = {str(item.uri) for item in await server.list_resources()}
        return templates, resources, {item.name for item in await server.list_prompts()}

    templates, resources, prompts = asyncio.run(listed())
    assert {tool.name for tool in TOOLS} == outputs.TOOLS.keys()
    assert templates | resources == outputs.RESOURCES.keys()
    assert prompts == outputs.PROMPTS.keys()
    assert _SOURCES.keys() == outputs.COMPLETIONS.keys()


def test_every_page_is_in_the_model(desk: Desk) -> None:
    assert routed(create_pages(desk.world.gate)) == outputs.PAGES.keys()


def test_every_route_of_oauth_is_in_the_model(desk: Desk) -> None:
    assert routed(oauth_app(desk.world.gate, None)) == outputs.OAUTH.keys()


def routed(app: Any) -> set[str]:
    while not hasattr(app, "routes"):
        app = app.app
    return {f"{method} {route.path}" for route in app.routes for method in route.methods - {"HEAD"}}


def test_every_command_is_in_the_model() -> None:
    assert outputs.all_commands() == outputs.COMMANDS.keys()


def asked_about(output: Output, world: PolicyWorld) -> list[Any]:
    if output.about == "ref":
        return list(output.refs)
    if output.about == "memory":
        return [item for item in world.planted if item.ref in output.refs]
    return [None]


def expected(output: Output, world: PolicyWorld, who: str, at: Any) -> set[str]:
    """Gives the codes that the model allows: scopes first, then whether what is named may be seen."""
    person = PEOPLE[who]
    if output.needs == outputs.ADMIN:
        return {"denied"}
    if output.needs == outputs.ADMIN_HERE:
        return {"ok"} if who == "ann" else {"denied"}
    held = person.scopes
    readers = SEARCHERS if output.needs == ("memory.search",) else READERS
    hidden = {"not_found"}
    if output.about == "proposal" and who not in SEES_PROPOSAL:
        return hidden
    if output.about == "manifest" and who not in {"one", "ann"}:
        return hidden
    if not set(output.needs) <= held:
        return {"denied"} if person.grant != "none" else hidden
    if output.open_to is not None and who not in output.open_to:
        return {output.hidden} if output.hidden else {"ok"}
    if output.about == "ref" and who not in readers[at]:
        return hidden
    if isinstance(at, Planted):
        by_history = output.tells is outputs.one_changeset
        reached = readers[at.ref] | (readers[KEPT] if by_history and at.ref == TOPIC else set())
        if who not in reached:
            return hidden
        if not by_history and at.word not in world.words(who, at.ref):
            return {"memory_not_found", "not_found"}
    return {"ok"}


@pytest.mark.parametrize("name", sorted(EVERY))
def test_an_output_tells_a_person_what_the_model_says_and_nothing_else(desk: Desk, name: str) -> None:
    output, world = EVERY[name], desk.world
    wrong: list[str] = []
    before = standing(world)
    for who in PEOPLE:
        for at in asked_about(output, world):
            codes = expected(output, world, who, at)
            if output.changes and "ok" in codes:
                continue
            told: Told = output.ask(desk, who, at)
            allowed = output.tells(world, who, at) if "ok" in codes else set()
            found = words_in(told.text)
            if told.code not in codes or found != (allowed if told.code == "ok" else set()):
                wrong.append(
                    f"{who} {at}: {told.code} not {codes}; {sorted(found ^ allowed)} {told.text[:300]}"
                )
            wrong += [
                f"{who} {at}: is told of {stray}" for stray in strays(output, world, who, at, told.text)
            ]
    assert not wrong, "\n".join(wrong)
    assert standing(world) == before


def strays(output: Output, world: PolicyWorld, who: str, at: Any, text: str) -> list[str]:
    """Gives the names that an answer tells beyond those asked for and that are not the person's to know."""
    readers = SEARCHERS if output.needs == ("memory.search",) else READERS
    readable = {ref for ref in readers if who in readers[ref]}
    known = (
        readable
        | ({TOPIC, KEPT} if who in SEES_PROPOSAL else set())
        | ({at} if isinstance(at, str) else set())
    )
    reached = readable | ({TOPIC} if KEPT in readable else set())
    if output.about == "manifest" and who in {"one", "ann"}:
        known, reached = known | {WORK}, reached | {WORK}
    names = [name for ref, name in world.refs.items() if ref not in known]
    names += [item.changeset_id for item in world.planted if item.ref not in reached and item != at]
    if who not in SEES_PROPOSAL and output.about != "proposal" and at != KEPT:
        names.append(world.proposal_id)
    if who not in {"one", "ann"} and output.about != "manifest":
        names.append(world.manifest_id)
    return [name for name in names if name in text]


def standing(world: PolicyWorld) -> Any:
    """Gives what a refused call must leave as it was: refs, proposals, principals, grants, tokens, policy."""
    gate, operator, ann = world.gate, world.gate.as_operator(), world.caller("ann")
    seen = gate.proposal(ann, world.proposal_id)
    return (
        world.gate._house.lethe.list_refs(PROJECT),
        (seen["status"], seen["reviews"], seen["head_changeset_id"]),
        gate.principals(operator),
        gate.grants(operator),
        [{**item, "last_used_at": None} for item in gate.obols(operator)],
        gate.project_policy(ann, PROJECT),
        gate.list_projects(operator),
    )


def test_a_denial_is_in_the_ledger_with_its_reason_whatever_it_looks_like_outside(desk: Desk) -> None:
    gate = desk.world.gate
    asked = {
        "nobody": "no such proposal for this caller",
        "two": "no such proposal for this caller",
        "guest": "the token lacks the scope memory.review",
    }
    for who in asked:
        EVERY["tool memory_merge_review"].ask(desk, who, None)
    rows = gate.ledger_tail(gate.as_operator(), PROJECT, 20)
    assert {
        row["principal_id"]: row["reason"]
        for row in rows
        if row["decision"] == "denied" and row["principal_id"] in asked
    } == asked


def test_the_live_feed_tells_of_what_may_be_seen_alone(desk: Desk) -> None:
    world, gate = desk.world, desk.world.gate
    told: dict[str, set[str]] = {}
    for who in PEOPLE:
        caller = world.caller(who)
        told[who] = {
            ref
            for ref, name in world.refs.items()
            if gate.may_see(caller, FeedEvent("x-1", "ref_moved", PROJECT, {"ref_name": name}))
        }
        event = FeedEvent("x-2", "proposal_changed", PROJECT, {"proposal_id": world.proposal_id})
        assert gate.may_see(caller, event) == (who in SEES_PROPOSAL)
    assert told == {who: {ref for ref in READERS if who in READERS[ref]} for who in PEOPLE}
