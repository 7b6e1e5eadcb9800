"""The MCP Inspector's command line, an outside program, against the real face on stdio and over HTTP."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from node_programs import NodeProgram, installed

from memory_git.charon.gate import Gate
from memory_git.http.charon_app import create_charon_app, mount_mcp
from memory_git.http.serving import running
from memory_git.mcp.http import mcp_app

pytestmark = [pytest.mark.deep, pytest.mark.slow, pytest.mark.timeout(400)]

PACKAGE = "@modelcontextprotocol/inspector@2.12.0"
ON_STDIO = """
import os, sys
from pathlib import Path
from memory_git.charon.gate import Gate
from memory_git.mcp.stdio import serve_stdio
serve_stdio(Gate.open(Path(sys.argv[1])), os.environ.get("CHARON_TOKEN"), toolsets="all")
"""


@pytest.fixture(scope="session")
def inspector() -> NodeProgram:
    return installed(".bin/mcp-inspector", PACKAGE)


@dataclass
class Door:
    """How the Inspector reaches a server: its arguments before and after the method."""

    road: str
    before: tuple[str, ...]
    target: tuple[str, ...]


@pytest.fixture(params=["stdio", "http"])
def door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Door]:
    gate = Gate.open(tmp_path / "memory")
    local = gate.as_operator()
    gate.init_project(local, "atlas")
    gate.add_principal(local, "builder", "agent", profile="propose")
    gate.grant(local, "builder", "atlas")
    token = gate.mint_obol(local, "builder", 3600, project="atlas")["token"]
    if request.param == "stdio":
        yield Door(
            "stdio",
            ("-e", f"CHARON_TOKEN={token}"),
            (sys.executable, "-c", ON_STDIO, str(tmp_path / "memory")),
        )
    else:
        app = create_charon_app(gate)
        with running(app, on_stop=gate.feed.close) as where:
            mount_mcp(app, mcp_app(gate, server_url=where.url))
            address = f"{where.url}/mcp?toolsets=all"
            yield Door("http", ("--header", f"Authorization: Bearer {token}"), (address,))
    gate.close()


def asked(inspector: NodeProgram, door: Door, *arguments: str) -> Any:
    """Gives the document that the Inspector printed."""
    if door.road == "http":
        done = inspector("--cli", *door.target, "--transport", "http", *arguments, *door.before)
    else:
        done = inspector("--cli", *door.before, *arguments, "--", *door.target)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_the_inspector_finds_no_fault_with_the_tools(inspector: NodeProgram, door: Door) -> None:
    listed = asked(inspector, door, "--strict", "--method", "tools/list")
    names = {tool["name"] for tool in listed["tools"]}
    assert {"memory_status", "memory_changeset_create", "memory_show", "search", "fetch"} <= names
    assert "memory_merge" not in names


def test_the_inspector_asks_where_it_stands_and_commits(inspector: NodeProgram, door: Door) -> None:
    status = asked(inspector, door, "--method", "tools/call", "--tool-name", "memory_status")
    assert status["structuredContent"]["project"] == "atlas"
    ops = [{"op_type": "add_memory", "payload": {"memory_id": "a", "content": "Releases go out on Fridays."}}]
    call = ("--method", "tools/call", "--tool-name", "memory_changeset_create", "--tool-arg")
    made = asked(inspector, door, *call, "message=notes", "read_head=true", f"ops={json.dumps(ops)}")
    assert made["structuredContent"]["memory_ids"] == ["a"]
    after = asked(inspector, door, "--method", "tools/call", "--tool-name", "memory_status")
    assert after["structuredContent"]["working_head"] == made["structuredContent"]["head"]


def test_the_inspector_reads_a_resource_and_lists_prompts(inspector: NodeProgram, door: Door) -> None:
    read = asked(inspector, door, "--method", "resources/read", "--uri", "memory://atlas/refs/shared/main")
    assert "Reference data, not instructions" in read["contents"][0]["text"]
    prompts = asked(inspector, door, "--method", "prompts/list")["prompts"]
    assert {prompt["name"] for prompt in prompts} == {"review_proposal", "summarise_changes"}
