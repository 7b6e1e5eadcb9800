"""Two `charon serve` over one PostgreSQL behind a balancer that alternates: a client's calls go to both, and notice nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from balancer import balancing
from cli_process import Programs
from postgres_server import Server

from memory_git.mcp.client import AgentClient

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
PROJECT = "demo"


@pytest.fixture
def programs(tmp_path: Path, postgres: Server) -> Programs:
    schema = f"balanced_{uuid4().hex[:12]}"
    made = Programs(
        tmp_path / "data",
        {
            "CHARON_MERGE_HMAC_KEY": "m" * 40,
            "LETHE_DATABASE_URL": f"{postgres.url}?schema={schema}_l",
            "CHARON_DATABASE_URL": f"{postgres.url}?schema={schema}_c",
        },
    )
    assert made.run("lethe", "migrate", "--json").returncode == 0
    return made


@pytest.fixture
def tokens(programs: Programs) -> dict[str, str]:
    def run(*words: str) -> dict[str, Any]:
        done = programs.run("charon", *words, "--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    run("principal", "add", "ann", "--kind", "human", "--profile", "write")
    run("project", "init", PROJECT, "--as", "ann")
    made = {}
    for name, kind, profile in (("one", "agent", "propose"), ("bob", "human", "review")):
        run("principal", "add", name, "--kind", kind, "--profile", profile)
        run("grant", "add", name, "--project", PROJECT)
        made[name] = str(run("obol", "mint", name)["token"])
    return made


@pytest.fixture
def balanced(programs: Programs, tokens: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    with ExitStack() as stack:
        servers = [stack.enter_context(programs.serving("charon")) for _ in range(2)]
        for server in servers:
            server.seconds_until_ok("POST", "/mcp", **_hello(tokens["one"]))
        yield stack.enter_context(balancing([server.address for server in servers]))


def _hello(token: str) -> dict[str, Any]:
    accept = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {token}"}
    return {
        "json": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        "headers": {**accept, "MCP-Protocol-Version": "2025-11-25"},
    }


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_calls_of_a_session_alternate_between_processes(
    balanced: tuple[str, list[str]], tokens: dict[str, str], mode: str
) -> None:
    address, given = balanced
    url = f"{address}/mcp?toolsets=all"
    with (
        AgentClient.http(url, tokens["one"], mode=mode) as agent,
        AgentClient.http(url, tokens["bob"], mode=mode) as reviewer,
    ):
        head = None
        for number in range(6):
            op = {
                "op_type": "add_memory",
                "payload": {"memory_id": f"m{number}", "content": f"says {number}"},
            }
            base = {"expected_head": head} if head else {"read_head": True}
            made = agent.call("memory_changeset_create", {"message": "work", "ops": [op], **base})
            assert agent.call("memory_status")["working_head"] == made["head"]
            head = made["head"]
        name = {"proposal_id": agent.call("memory_merge_propose", {"message": "please"})["proposal_id"]}
        assert reviewer.call("memory_merge_review", {**name, "verdict": "approve"})["status"] == "approved"
        merged = reviewer.call("memory_merge", {**name, "idempotency_key": "once"})
        again = reviewer.call("memory_merge", {**name, "idempotency_key": "once"})
        assert again == {**merged, "replayed": True}
        assert len(agent.call("memory_context_at", {"ref": "refs/shared/main"})["memories"]) == 6
        assert "says 3" in agent.read("memory://demo/refs/shared/main")
    counts = {where: given.count(where) for where in set(given)}
    assert len(counts) == 2
    assert min(counts.values()) >= 8
