"""Agents over MCP: real processes on stdio, a real server over HTTP, and the bridge between, in both eras of the protocol."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from memory_git.charon.gate import Gate
from memory_git.domain.errors import Unauthenticated, Unavailable
from memory_git.http.charon_app import create_charon_app, mount_mcp
from memory_git.http.serving import running
from memory_git.mcp.client import AgentClient, ToolRefused
from memory_git.mcp.http import mcp_app

pytestmark = pytest.mark.slow

SOURCES = str(Path(__file__).parents[2] / "src")
ON_STDIO = """
import os, sys
from pathlib import Path
from memory_git.charon.gate import Gate
from memory_git.mcp.stdio import serve_stdio
serve_stdio(Gate.open(Path(sys.argv[1])), os.environ.get("CHARON_TOKEN"), toolsets="all")
"""
BRIDGED = """
import os, sys
from memory_git.mcp.stdio import serve_stdio_client
serve_stdio_client(sys.argv[1], os.environ.get("CHARON_TOKEN"), toolsets="all")
"""
FRIDAY = "Releases go out on Fridays."
MONDAY = "Releases go out on Mondays."


@dataclass
class World:
    """A data directory with a served gate on it, and the tokens of three principals."""

    folder: Path
    gate: Gate
    url: str
    tokens: dict[str, str]

    def agent(self, who: str, road: str, mode: str) -> AgentClient:
        token = self.tokens[who]
        if road == "http":
            return AgentClient.http(f"{self.url}/mcp?toolsets=all", token, mode=mode)
        script, where = (ON_STDIO, str(self.folder)) if road == "stdio" else (BRIDGED, self.url)
        environment = {"CHARON_TOKEN": token, "PYTHONPATH": SOURCES}
        return AgentClient.stdio([sys.executable, "-c", script, where], environment, mode=mode)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    folder = tmp_path / "memory"
    gate = Gate.open(folder)
    local = gate.as_operator()
    gate.init_project(local, "atlas")
    tokens = {}
    for name, kind, profile in (
        ("builder", "agent", "propose"),
        ("scout", "agent", "propose"),
        ("reviewer", "human", "review"),
    ):
        gate.add_principal(local, name, kind, profile=profile)
        gate.grant(local, name, "atlas")
        tokens[name] = gate.mint_obol(local, name, 3600, project="atlas")["token"]
    app = create_charon_app(gate)
    with running(app, on_stop=gate.feed.close) as where:
        mount_mcp(app, mcp_app(gate, server_url=where.url))
        yield World(folder, gate, where.url, tokens)
    gate.close()


def adding(memory_id: str, content: str, **more: Any) -> dict[str, Any]:
    return {"op_type": "add_memory", "payload": {"memory_id": memory_id, "content": content, **more}}


def committed(agent: AgentClient, *ops: dict[str, Any]) -> dict[str, Any]:
    return agent.call("memory_changeset_create", {"message": "notes", "ops": list(ops), "read_head": True})


def refusal(call: Callable[[], Any]) -> ToolRefused:
    with pytest.raises(ToolRefused) as refused:
        call()
    return refused.value


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("road", ["stdio", "http", "bridge"])
def test_two_agents_and_a_reviewer_share_one_memory(world: World, road: str, mode: str) -> None:
    with ExitStack() as stack:
        builder, scout, reviewer = (
            stack.enter_context(world.agent(who, road, mode)) for who in ("builder", "scout", "reviewer")
        )
        assert builder.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
        assert {tool.name for tool in reviewer.tools()} >= {"memory_merge_review", "memory_merge", "fetch"}
        assert "memory_merge" not in {tool.name for tool in builder.tools()}
        done = committed(builder, adding("release/day", FRIDAY, kind="decision", title="Release day"))
        assert done["memory_ids"] == ["release/day"]
        assert scout.call("memory_context_at")["memories"] == []
        assert (
            refusal(lambda: scout.call("memory_show", {"changeset_id": done["changeset_id"]})).code
            == "not_found"
        )
        proposal = builder.call("memory_merge_propose", {"message": "as agreed", "title": "Release day"})
        name = {"proposal_id": proposal["proposal_id"]}
        listed = reviewer.call("memory_status")["proposals"]
        assert [item["proposal_id"] for item in listed] == [proposal["proposal_id"]]
        unready = refusal(lambda: reviewer.call("memory_merge", name))
        assert (unready.code, "What to do" in unready.told) == ("not_approved", True)
        assert FRIDAY in reviewer.prompt("review_proposal", name)
        assert FRIDAY in reviewer.call("fetch", {"id": f"proposal:{proposal['proposal_id']}"})["text"]
        approved = reviewer.call("memory_merge_review", {**name, "verdict": "approve"})
        assert (approved["status"], approved["verdict"]["mergeable"]) == ("approved", True)
        merged = reviewer.call("memory_merge", {**name, "idempotency_key": "once"})
        again = reviewer.call("memory_merge", {**name, "idempotency_key": "once"})
        assert (merged["status"], again["merged_head"]) == ("merged", merged["merged_head"])
        seen = scout.call("memory_context_at", {"query": "release"})
        assert [item["memory_id"] for item in seen["memories"]] == ["release/day"]
        assert seen["memories"][0]["record"]["content"] == FRIDAY
        assert seen["trust"] == "untrusted-data"
        assert FRIDAY in scout.read("memory://atlas/refs/shared/main")


def test_two_processes_on_one_directory_bring_each_other_s_work_and_a_moved_head_tells_the_head(
    world: World,
) -> None:
    with world.agent("builder", "stdio", "auto") as one, world.agent("builder", "stdio", "auto") as two:
        root = one.call("memory_status")["shared_head"]
        first = committed(one, adding("a", FRIDAY))
        assert two.call("memory_status")["working_head"] == first["head"]
        late = {"message": "late", "ops": [adding("b", MONDAY)], "expected_head": root}
        moved = refusal(lambda: two.call("memory_changeset_create", late))
        assert (moved.code, moved.facts["current_head"]) == ("ref_moved", first["head"])
        mended = two.call("memory_changeset_create", {**late, "expected_head": moved.facts["current_head"]})
        assert one.call("memory_status")["working_head"] == mended["head"]


def test_a_contradiction_is_refused_with_both_sides_until_someone_settles_it(world: World) -> None:
    with ExitStack() as stack:
        builder, scout, reviewer = (
            stack.enter_context(world.agent(who, "http", "auto")) for who in ("builder", "scout", "reviewer")
        )
        names = []
        for agent, memory_id, content in ((builder, "day/a", FRIDAY), (scout, "day/b", MONDAY)):
            committed(agent, adding(memory_id, content, kind="decision", fact_key="release-day"))
            proposal = agent.call("memory_merge_propose", {"message": "please"})
            names.append({"proposal_id": proposal["proposal_id"]})
        for name in names:
            reviewer.call("memory_merge_review", {**name, "verdict": "approve"})
        reviewer.call("memory_merge", names[0])
        reviewer.call("memory_merge_review", {**names[1], "verdict": "approve"})
        blocked = refusal(lambda: reviewer.call("memory_merge", names[1]))
        assert blocked.code == "merge_conflicts"
        assert FRIDAY in json.dumps(blocked.facts) or "day/a" in json.dumps(blocked.facts)
        found = reviewer.call("memory_conflicts", names[1])["conflicts"]
        found = [item for item in found if item["severity"] == "blocking"]
        assert {item["conflict_type"] for item in found} == {"contradictory_decision"}
        assert {side["memory_id"] for item in found for side in (*item["left"], *item["right"])} == {
            "day/a",
            "day/b",
        }


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("road", ["http", "bridge"])
def test_a_long_call_says_that_it_goes_on_and_arguments_are_completed(
    world: World, road: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = world.gate.status
    told: list[tuple[float, str | None]] = []

    def slow(*arguments: Any) -> Any:
        time.sleep(0.7)
        return shown(*arguments)

    async def heard(passed: float, _total: float | None, message: str | None) -> None:
        told.append((passed, message))

    monkeypatch.setattr(world.gate, "status", slow)
    monkeypatch.setattr("memory_git.mcp.progress.EVERY_S", 0.2)
    with world.agent("builder", road, mode) as agent:
        agent.called("memory_status", heard=heard)
        assert agent.completions("summarise_changes", "target", "refs/shared") == ["refs/shared/main"]
    assert len(told) >= 2
    assert [passed for passed, _ in told] == sorted({passed for passed, _ in told})
    assert "memory_status" in (told[0][1] or "")


@pytest.fixture
def bare(world: World) -> Iterator[str]:
    """The MCP application alone, with nothing before it that checks hosts."""
    with running(mcp_app(world.gate, origins=("https://notes.example",))) as where:
        yield where.url


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "https://notes.example"}, 200),
    ],
)
def test_a_foreign_host_or_origin_is_refused_whatever_stands_before(
    bare: str, world: World, headers: dict[str, str], status: int
) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
        "Authorization": f"Bearer {world.tokens['builder']}",
    }
    assert httpx.post(f"{bare}/mcp", json=hello, headers={**accept, **headers}).status_code == status


def test_blanks_at_the_ends_of_a_header_are_no_part_of_it(bare: str, world: World) -> None:
    key = "io.modelcontextprotocol"
    meta = {f"{key}/protocolVersion": "2026-07-28", f"{key}/clientCapabilities": {}}
    params = {"name": "memory_whoami", "arguments": {}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    lines = (
        *("POST /mcp HTTP/1.1", f"Host: {bare.removeprefix('http://')}", "Content-Type: application/json"),
        *("Accept: application/json, text/event-stream", f"Authorization: Bearer {world.tokens['builder']}"),
        *("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call  ", "Mcp-Name:  memory_whoami \t"),
        *(f"Content-Length: {len(body)}", "Connection: close", "", body),
    )
    host, port = bare.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall("\r\n".join(lines).encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    assert answer.startswith("HTTP/1.1 200"), answer
    assert "builder" in answer


@pytest.mark.parametrize(
    "authorization", [None, "Bearer obol_0_0", "Bearer x y", "Basic eDp4", f"Bearer {'x' * 9000}"]
)
def test_a_request_without_a_known_bearer_is_401_with_a_challenge(
    bare: str, authorization: str | None
) -> None:
    headers = {"Authorization": authorization} if authorization else {}
    answer = httpx.post(
        f"{bare}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers
    )
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_revoked_token_ends_an_open_connection_at_its_next_call(world: World) -> None:
    with world.agent("builder", "http", "auto") as agent, world.agent("scout", "stdio", "auto") as local:
        agent.call("memory_whoami")
        operator = world.gate.as_operator()
        for obol in world.gate.obols(operator):
            world.gate.revoke_obol(operator, obol["obol_id"])
        assert refusal(lambda: local.call("memory_whoami")).code == "unauthenticated"
        with pytest.raises(Exception, match="error response"):
            agent.call("memory_whoami")


def test_a_client_without_a_server_or_a_token_is_told_why(world: World) -> None:
    with pytest.raises(Unavailable) as nobody:
        AgentClient.http("http://127.0.0.1:9/mcp", world.tokens["builder"])
    assert nobody.value.code == "charon_unreachable"
    with pytest.raises(Unauthenticated):
        AgentClient.http(f"{world.url}/mcp", "obol_unknown")


@pytest.mark.parametrize("script", [ON_STDIO, BRIDGED])
def test_a_stdio_server_without_a_token_says_how_to_get_one(world: World, script: str) -> None:
    where = str(world.folder) if script == ON_STDIO else world.url
    environment = {**os.environ, "CHARON_TOKEN": ""}
    ended = subprocess.run(
        [sys.executable, "-c", script, where],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode != 0
    assert ended.stdout == ""
    assert "charon obol mint" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stdio_server_that_is_told_to_stop_writes_what_waits(world: World, number: signal.Signals) -> None:
    with started(world) as process:
        said(process, initialize())
        assert "memory-git" in process.stdout.readline()
        process.send_signal(number)
        assert process.wait(30) == 0
    assert world.gate.ledger_verify(world.gate.as_operator())["ok"]


@contextmanager
def started(world: World) -> Iterator[Any]:
    process = subprocess.Popen(
        [sys.executable, "-c", ON_STDIO, str(world.folder)],
        env={**os.environ, "CHARON_TOKEN": world.tokens["builder"]},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process


def said(process: Any, line: Any) -> None:
    process.stdin.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
    process.stdin.flush()


def initialize() -> dict[str, Any]:
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def test_a_stdio_server_outlives_lines_that_are_no_messages(world: World) -> None:
    lines = [
        "",
        "not json",
        "[]",
        '{"jsonrpc":"2.0"}',
        '{"jsonrpc":"2.0","id":1,"method":7}',
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory_status","arguments":{"a":"\\ud800"}}}',
        initialize(),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "memory_whoami"}},
    ]
    with started(world) as process:
        for line in lines:
            said(process, line)
        answers = []
        while not answers or answers[-1].get("id") != 3:
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.wait(30) == 0
    assert "builder" in json.dumps(answers[-1])
    assert "Traceback" not in json.dumps(answers)


BODIES = {
    "nothing": b"",
    "no JSON": b"{",
    "a number": b"7",
    "a batch": b"[]",
    "no method": b'{"jsonrpc":"2.0","id":1}',
    "an unknown method": b'{"jsonrpc":"2.0","id":1,"method":"memory/steal"}',
    "arguments of a wrong kind": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_status","arguments":[]}}',
    "an unknown tool": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"__init__","arguments":{}}}',
    "a lone surrogate": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"\\ud800"}}}',
    "deep nesting": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
    + b'{"a":' * 900
    + b"1"
    + b"}" * 900
    + b"}",
    "bytes": bytes(range(256)),
    "ten megabytes": b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (10 << 20) + b'"}',
}


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28", "1999-01-01", "\u00e9"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_malformed_body_is_the_client_s_error(bare: str, world: World, body: bytes, version: str) -> None:
    headers = {
        "Authorization": f"Bearer {world.tokens['builder']}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version.encode("latin-1"),
    }
    answer = httpx.post(f"{bare}/mcp", content=body, headers=headers)  # type: ignore[arg-type]
    assert answer.status_code < 500
    assert "Traceback" not in answer.text
