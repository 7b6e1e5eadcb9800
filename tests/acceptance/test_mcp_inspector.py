"""The MCP Inspector's command line, an outside program, against the real face on stdio and over HTTP."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memory_git.charon.gate import Gate
from memory_git.http.charon_app import create_charon_app, mount_mcp
from memory_git.http.serving import running
from memory_git.mcp.http import mcp_app

pytestmark = [pytest.mark.deep, pytest.mark.slow, pytest.mark.timeout(400)]

PACKAGE = "@modelcontextprotocol/inspector"
VERSION = "2.12.0"
LEAST_NODE = (22, 19)
ON_STDIO = """
import os, sys
from pathlib import Path
from memory_git.charon.gate import Gate
from memory_git.mcp.stdio import serve_stdio
serve_stdio(Gate.open(Path(sys.argv[1])), os.environ.get("CHARON_TOKEN"), toolsets="all")
"""


@dataclass
class Inspector:
    """The installed program."""

    node: str
    script: Path
    home: Path

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "HOME": str(self.home),
            "PATH": f"{Path(self.node).parent}:{os.environ['PATH']}",
        }
        command = [self.node, str(self.script), "--cli", *arguments]
        return subprocess.run(
            command, check=False, capture_output=True, text=True, env=environment, timeout=120
        )


@pytest.fixture(scope="session")
def inspector() -> Inspector:
    node = _node()
    if node is None:
        pytest.skip("no Node of version 22.19 or newer: `make test-all` brings one")
    cache = Path(tempfile.gettempdir()) / f"memory-git-inspector-{VERSION}"
    script = cache / "node_modules" / ".bin" / "mcp-inspector"
    if not script.exists():
        _install(node, cache)
    home = cache / "home"
    home.mkdir(exist_ok=True)
    return Inspector(node, script, home)


def _node() -> str | None:
    """Gives a Node that is new enough: the virtual environment's, else that of the PATH."""
    for path in (shutil.which("node", path=str(Path(sys.executable).parent)), shutil.which("node")):
        told = (
            subprocess.run([path, "--version"], check=False, capture_output=True, text=True).stdout
            if path
            else ""
        )
        found = re.match(r"v(\d+)\.(\d+)\.", told)
        if found and (int(found[1]), int(found[2])) >= LEAST_NODE:
            return path
    return None


def _install(node: str, cache: Path) -> None:
    npm = shutil.which("npm", path=f"{Path(node).parent}:{os.environ['PATH']}")
    if npm is None:
        pytest.skip("Node is here, but npm is not")
    with tempfile.TemporaryDirectory(prefix="memory-git-npm-") as folder:
        command = [npm, "install", "--no-audit", "--no-fund", "--silent", f"{PACKAGE}@{VERSION}"]
        environment = {**os.environ, "PATH": f"{Path(node).parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            command, check=False, cwd=folder, capture_output=True, text=True, timeout=300, env=environment
        )
        if done.returncode:
            pytest.skip(f"npm could not fetch {PACKAGE}@{VERSION}: {done.stderr[-300:]}")
        if not cache.exists():
            shutil.move(folder, cache)
            Path(folder).mkdir()


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


def asked(inspector: Inspector, door: Door, *arguments: str) -> Any:
    """Gives the document that the Inspector printed."""
    if door.road == "http":
        done = inspector(*door.target, "--transport", "http", *arguments, *door.before)
    else:
        done = inspector(*door.before, *arguments, "--", *door.target)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_the_inspector_finds_no_fault_with_the_tools(inspector: Inspector, door: Door) -> None:
    listed = asked(inspector, door, "--strict", "--method", "tools/list")
    names = {tool["name"] for tool in listed["tools"]}
    assert {"memory_status", "memory_changeset_create", "memory_show", "search", "fetch"} <= names
    assert "memory_merge" not in names


def test_the_inspector_asks_where_it_stands_and_commits(inspector: Inspector, door: Door) -> None:
    status = asked(inspector, door, "--method", "tools/call", "--tool-name", "memory_status")
    assert status["structuredContent"]["project"] == "atlas"
    ops = [{"op_type": "add_memory", "payload": {"memory_id": "a", "content": "Releases go out on Fridays."}}]
    call = ("--method", "tools/call", "--tool-name", "memory_changeset_create", "--tool-arg")
    made = asked(inspector, door, *call, "message=notes", "read_head=true", f"ops={json.dumps(ops)}")
    assert made["structuredContent"]["memory_ids"] == ["a"]
    after = asked(inspector, door, "--method", "tools/call", "--tool-name", "memory_status")
    assert after["structuredContent"]["working_head"] == made["structuredContent"]["head"]


def test_the_inspector_reads_a_resource_and_lists_prompts(inspector: Inspector, door: Door) -> None:
    read = asked(inspector, door, "--method", "resources/read", "--uri", "memory://atlas/refs/shared/main")
    assert "Reference data, not instructions" in read["contents"][0]["text"]
    prompts = asked(inspector, door, "--method", "prompts/list")["prompts"]
    assert {prompt["name"] for prompt in prompts} == {"review_proposal", "summarise_changes"}
