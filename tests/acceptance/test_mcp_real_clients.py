"""Clients that people use, in pinned versions, against the real programs: over stdio, and over HTTP with a token."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli_process import BIN, Programs
from node_programs import NodeProgram, installed
from python_programs import python_with

from memory_git.mcp.client import AgentClient

pytestmark = [pytest.mark.deep, pytest.mark.slow, pytest.mark.timeout(400)]

CONVERSATIONS = Path(__file__).parents[1] / "data" / "mcp_clients"
SOURCES = str(Path(__file__).parents[2] / "src")
CLIENTS = ("typescript 1", "typescript 2", "langchain", "openai_agents")
TYPESCRIPT = {
    "1": ("@modelcontextprotocol/sdk", "1.32.2"),
    "2": ("@modelcontextprotocol/client", "2.4.0"),
}
PYTHON = {"langchain": "langchain-mcp-adapters==0.3.2", "openai_agents": "openai-agents==0.24.0"}


@dataclass
class Door:
    """A served gate, the token of an agent, and how to reach it on either road."""

    folder: Path
    url: str
    token: str

    def target(self, road: str) -> list[str]:
        if road == "http":
            return [f"{self.url}/mcp?toolsets=all"]
        return [str(BIN / "charon"), "mcp", "--data-dir", str(self.folder), "--toolsets", "all"]

    def environment(self) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("LETHE_", "CHARON_"))
        }
        return {**kept, "CHARON_TOKEN": self.token, "PYTHONPATH": SOURCES}


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    programs = Programs(tmp_path / "data")
    with programs.serving("charon") as server:
        token = str(server.told["token"])
        hello = {"json": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}}
        accept = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {token}"}
        server.seconds_until_ok("POST", "/mcp", headers=accept, **hello)
        yield Door(programs.data, server.address, token)


def conversation(client: str, door: Door, road: str) -> dict[str, Any]:
    """Gives what a client's script told: its tools, what it committed, where it stands, whether a bad call was refused."""
    name, _, generation = client.partition(" ")
    if name == "typescript":
        package, version = TYPESCRIPT[generation]
        program = installed(f"{package}/package.json", f"{package}@{version}")
        command = [program.node, str(CONVERSATIONS / "typescript.mjs"), generation, str(program.folder)]
    else:
        command = [python_with(PYTHON[name]), str(CONVERSATIONS / f"{name}.py")]
    done = subprocess.run(
        [*command, road, *door.target(road)],
        env=door.environment(),
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.parametrize("road", ["stdio", "http"])
@pytest.mark.parametrize("client", CLIENTS)
def test_it_lists_tools_commits_asks_where_it_stands_and_is_refused_soundly(
    door: Door, client: str, road: str
) -> None:
    told = conversation(client, door, road)
    assert {"memory_status", "memory_changeset_create", "memory_show", "search", "fetch"} <= set(
        told["tools"]
    )
    assert told["made"]["memory_ids"] == ["a"]
    assert told["status"]["working_head"] == told["made"]["head"]
    assert told["refused"] is True


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_mcp_remote_brings_a_stdio_client_to_the_server(door: Door, tmp_path: Path, mode: str) -> None:
    remote = installed("mcp-remote/dist/proxy.js", "mcp-remote@0.15.1")
    command = [
        *(remote.node, str(remote.script), *door.target("http")),
        *("--header", f"Authorization: Bearer {door.token}"),
    ]
    with (tmp_path / "errors").open("w") as errors:
        agent = AgentClient.stdio(command, remote.environment(HOME=str(tmp_path)), mode=mode, errors=errors)
        with agent:
            op = {
                "op_type": "add_memory",
                "payload": {"memory_id": "a", "content": "Releases go out on Fridays."},
            }
            made = agent.call("memory_changeset_create", {"message": "notes", "ops": [op], "read_head": True})
            assert agent.call("memory_status")["working_head"] == made["head"]


def test_claude_says_connected(door: Door, tmp_path: Path) -> None:
    claude = installed(".bin/claude", "@anthropic-ai/claude-code@2.1.332")
    home = tmp_path / "home"
    home.mkdir()

    def run(*words: str) -> str:
        return _claude(claude, home, *words)

    run(*("mcp", "add", "--transport", "http", "far", *door.target("http")), "--header", _bearer(door))
    environment = (f"CHARON_TOKEN={door.token}", f"PYTHONPATH={SOURCES}")
    run("mcp", "add", "near", "-e", environment[0], "-e", environment[1], "--", *door.target("stdio"))
    listed = [line for line in run("mcp", "list").splitlines() if line.startswith(("far:", "near:"))]
    assert len(listed) == 2
    assert all(line.endswith("Connected") for line in listed), listed


def _bearer(door: Door) -> str:
    return f"Authorization: Bearer {door.token}"


def _claude(claude: NodeProgram, home: Path, *words: str) -> str:
    """Runs the program, which may be a script of Node or an executable, in a home of its own."""
    environment = claude.environment(
        HOME=str(home), DISABLE_AUTOUPDATER="1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1"
    )
    done = subprocess.run(
        [str(claude.script), *words],
        cwd=home,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
