"""Diffs and logs by pages, and reverts of a range, through each face: gate, HTTP, MCP, command line (4-history; 6-charon)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from gate_world import MAIN, PROJECT, GateWorld

from memory_git.cli import lethe
from memory_git.cli.program import run
from memory_git.domain.errors import Refused
from memory_git.http.charon_app import create_charon_app
from memory_git.http.serving import running
from memory_git.lethe.protocol import Json
from memory_git.mcp.errors import REFUSAL
from memory_git.mcp.server import TOOLS, call

BRANCH = "refs/agents/one/main"
Read = Callable[..., Json]


@pytest.fixture
def heads(world: GateWorld) -> tuple[str, str]:
    """Gives accepted memory, and a branch of one's that is ahead of it by five changesets."""
    world.add("one", "m/0", "accepted")
    world.accept("one")
    for n in range(1, 5):
        world.add("one", f"m/{n}", f"text {n}", kind="decision")
    world.correct("one", "m/0", content="corrected", title="t")
    return world.head(), world.head(BRANCH)


@pytest.fixture(params=["gate", "http", "mcp", "cli"])
def face(
    request: pytest.FixtureRequest, world: GateWorld, capsys: pytest.CaptureFixture[str]
) -> Iterator[Read]:
    """Gives how a face is asked for a diff or a log, in the name of one."""
    if request.param == "gate":
        yield _gate(world)
    elif request.param == "mcp":
        yield _mcp(world)
    elif request.param == "cli":
        yield _cli(world, capsys)
    else:
        with running(create_charon_app(world.gate), on_stop=world.gate.feed.close) as where:
            headers = {"Authorization": f"Bearer {world.tokens['one']}"}
            with httpx.Client(base_url=f"{where.url}/api/v1/projects/{PROJECT}", headers=headers) as client:
                yield _http(client)


def _gate(world: GateWorld) -> Read:
    def read(what: str, **asked: Any) -> Json:
        return dict(getattr(world.gate, what)(world.caller("one"), PROJECT, **asked))

    return read


def _http(client: httpx.Client) -> Read:
    def read(what: str, **asked: Any) -> Json:
        answer = client.get("/diff" if what == "diff" else "/changesets", params=asked)
        found: Json = answer.json()
        return found if answer.is_success else {"refused": found["code"]}

    return read


def _mcp(world: GateWorld) -> Read:
    tools = {tool.name: tool for tool in TOOLS}

    def read(what: str, **asked: Any) -> Json:
        result = call(tools[f"memory_{what}"], world.gate, world.caller("one"), {"project": PROJECT, **asked})
        if result.is_error:
            return {"refused": (result.meta or {})[REFUSAL]["code"]}
        found = dict(result.structured_content or {})
        assert found.pop("trust") == "untrusted-data"
        return found

    return read


def _cli(world: GateWorld, capsys: pytest.CaptureFixture[str]) -> Read:
    def read(what: str, **asked: Any) -> Json:
        named = [asked.pop("target")] if "target" in asked else []
        options = [f"--{name}={value}" for name, value in asked.items()]
        words = [
            "memory",
            what,
            *named,
            *options,
            f"--project={PROJECT}",
            f"--data-dir={world.folder}",
            "--json",
        ]
        capsys.readouterr()
        code = run(lethe.program, words)
        found: Json = json.loads(capsys.readouterr().out)
        return found if code == 0 else {"refused": found["code"]}

    return read


def sections(diff: Json) -> Json:
    return {name: items for name, items in diff.items() if isinstance(items, list)}


def test_the_pages_of_a_diff_are_the_whole_in_every_face(face: Read, heads: tuple[str, str]) -> None:
    base, target = heads
    whole = face("diff", target=target, base=base)
    assert "page" not in whole
    found: list[Json] = []
    after: Json = {}
    while not found or after:
        found.append(face("diff", target=target, base=base, limit=2, **after))
        following = found[-1]["page"].get("next")
        after = {"after": following} if following else {}
    assert len(found) == 3
    assert {name: [item for page in found for item in page[name]] for name in sections(whole)} == sections(
        whole
    )


def test_a_page_of_another_diff_is_refused_in_every_face(face: Read, heads: tuple[str, str]) -> None:
    base, target = heads
    cursor = _next_of(face, base, target)
    for asked in (
        {"target": base, "base": target, "after": cursor},
        {"target": target, "base": base, "after": "?"},
    ):
        try:
            answer = face("diff", **asked)
        except Refused as refused:
            answer = {"refused": refused.code}
        assert answer == {"refused": "bad_cursor"}


def _next_of(face: Read, base: str, target: str) -> str:
    return str(face("diff", target=target, base=base, limit=1)["page"]["next"])


def test_the_pages_of_a_log_are_the_whole_in_every_face(face: Read, heads: tuple[str, str]) -> None:
    whole = [item["changeset_id"] for item in face("log", ref=BRANCH, limit=200)["changesets"]]
    assert len(whole) >= 7
    found: list[str] = []
    before: Json = {}
    while not found or before:
        page = face("log", ref=BRANCH, limit=2, **before)
        found += [item["changeset_id"] for item in page["changesets"]]
        before = {"before": page["next"]} if "next" in page else {}
    assert found == whole


def test_mcp_takes_back_a_range(world: GateWorld, heads: tuple[str, str]) -> None:
    start = world.head(MAIN)
    world.accept("one")
    made = _mcp(world)("revert_propose", changeset_id=world.head(MAIN), from_changeset_id=start)
    assert (made["kind"], made["status"]) == ("revert", "pending")
    assert {item["memory_id"] for item in made["diff"]["statuses_changed"]} == {f"m/{n}" for n in range(1, 5)}
