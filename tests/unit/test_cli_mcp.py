"""`charon mcp` as a real process: what it refuses before it speaks, and whose memory it works on."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest
from cli_process import BIN, Programs

from memory_git.charon.gate import Gate
from memory_git.cli.charon_commands.first_start import first_start
from memory_git.cli.exits import Exit
from memory_git.mcp.client import AgentClient

pytestmark = pytest.mark.slow
ELSEWHERE = "http://memory.example.org"


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path / "data")


@pytest.fixture
def token(programs: Programs) -> str:
    """Gives the token of the agent that a first start made."""
    gate = Gate.open(programs.data)
    made = first_start(gate, "default")
    gate.close()
    assert made is not None
    return made


@pytest.fixture
def nobody_listens() -> str:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{closed.getsockname()[1]}"


@pytest.mark.parametrize(
    ("extra", "words", "exit_code", "code"),
    [
        pytest.param({}, [], Exit.NOT_ALLOWED, "token_needed", id="no token"),
        pytest.param(
            {"CHARON_TOKEN": "obol_0_0"}, [], Exit.NOT_ALLOWED, "unauthenticated", id="another token"
        ),
        pytest.param(
            {"CHARON_URL": "itself"}, [], Exit.NOT_ALLOWED, "token_needed", id="no token for a server"
        ),
        pytest.param(
            {"CHARON_TOKEN": "right"},
            ["--toolsets", "all,nothing"],
            Exit.REFUSED,
            "invalid_request",
            id="a toolset",
        ),
        pytest.param(
            {"CHARON_TOKEN": "right", "CHARON_URL": "itself"},
            [],
            Exit.UNAVAILABLE,
            "charon_unreachable",
            id="a server that is not there",
        ),
        pytest.param(
            {"CHARON_TOKEN": "right", "CHARON_URL": ELSEWHERE},
            [],
            Exit.REFUSED,
            "bad_charon_url",
            id="a token in clear to another machine",
        ),
    ],
)
def test_it_says_why_it_can_not_serve_and_nothing_on_the_protocols_stream(
    programs: Programs,
    token: str,
    nobody_listens: str,
    extra: dict[str, str],
    words: list[str],
    exit_code: Exit,
    code: str,
) -> None:
    known = {"right": token, "itself": nobody_listens}
    programs.extra = {name: known.get(value, value) for name, value in extra.items()}
    done = programs.run("charon", "mcp", *words)
    assert (done.returncode, done.stdout) == (exit_code, "")
    assert f"({code})" in done.stderr and token not in done.stderr


def test_where_nothing_was_begun_it_makes_nothing(programs: Programs) -> None:
    programs.extra = {"CHARON_TOKEN": "obol_0_0"}
    done = programs.run("charon", "mcp")
    assert (done.returncode, done.stdout) == (Exit.REFUSED, "")
    assert "(data_directory_absent)" in done.stderr and not programs.data.exists()


@pytest.mark.parametrize("command", [[str(BIN / "charon")], [sys.executable, "-m", "memory_git.cli.charon"]])
def test_a_named_data_directory_counts_more_than_a_server_of_the_environment(
    programs: Programs, token: str, nobody_listens: str, command: list[str]
) -> None:
    programs.extra = {"CHARON_TOKEN": token, "CHARON_URL": nobody_listens}
    words = ["mcp", "--toolsets", "history", "--data-dir", str(programs.data)]
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        AgentClient.stdio([*command, *words], programs.environment(), errors=nowhere) as agent,
    ):
        assert agent.call("memory_whoami")["principal_id"] == "agent"
        assert "memory_status" in {tool.name for tool in agent.tools()}
