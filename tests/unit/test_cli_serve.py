"""`charon serve` and `lethe serve` as real processes: the first start, the second, the end, and what they refuse."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from cli_process import PATIENCE_S, Programs

from memory_git.charon.gate import Gate
from memory_git.cli.charon_commands.first_start import first_start
from memory_git.mcp.client import AgentClient

pytestmark = pytest.mark.slow
TOOLS_LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
MCP_HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path / "data")


@pytest.fixture
def used(programs: Programs) -> Programs:
    """A data directory on which a first start has been."""
    gate = Gate.open(programs.data)
    first_start(gate, "default")
    gate.close()
    return programs


def refusal(programs: Programs, *words: str) -> dict[str, object]:
    """Runs a command that is refused; gives its problem document, with `exit`."""
    done = programs.run(*words, "--json")
    assert done.stderr == ""
    return {**json.loads(done.stdout), "exit": done.returncode}


# --- the first start and the second


def test_the_first_start_makes_what_two_agents_and_a_reviewer_need(programs: Programs) -> None:
    with programs.serving("charon") as served:
        assert served.get("/readyz").json()["status"] == "ok"
        me = served.get("/api/v1/whoami", served.told["token"]).json()
        assert (me["principal_id"], me["kind"], me["default_project"]) == ("agent", "agent", "default")
        assert [grant["project"] for grant in me["grants"]] == ["default"]
        people = json.loads(programs.run("charon", "principal", "list", "--json").stdout)["principals"]
        assert {item["principal_id"]: item["profile"] for item in people} == {
            "agent": "propose",
            "owner": "write",
        }
        assert served.get("/api/v1/projects/default/status", served.told["token"]).json()["total_active"] == 0


def test_it_is_ready_within_two_seconds_and_speaks_mcp_within_four(used: Programs) -> None:
    minted = json.loads(used.run("charon", "obol", "mint", "agent", "--json").stdout)
    with used.serving("charon") as served:
        ready_s = served.seconds_until_ok("GET", "/readyz")
        headers = {**MCP_HEADERS, "Authorization": f"Bearer {minted['token']}"}
        mcp_s = served.seconds_until_ok("POST", "/mcp", json=TOOLS_LIST, headers=headers)
    load = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))  # the figures hold for a machine at rest
    assert ready_s < 2 * load
    assert mcp_s < 4 * load


def test_every_secret_is_the_users_own(programs: Programs) -> None:
    with programs.serving("charon"):
        keys = sorted((programs.data / "keys").iterdir())
        assert [path.name for path in keys] == ["ledger", "lethe-api", "merge", "oauth", "token"]
        assert {stat.S_IMODE(path.stat().st_mode) for path in keys} == {0o600}
        assert stat.S_IMODE((programs.data / "keys").stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in programs.data.glob("*.db")} == {0o600}


def test_the_sign_in_link_opens_the_page_once(programs: Programs) -> None:
    with programs.serving("charon") as served, httpx.Client(base_url=served.address) as browser:
        url = served.told["sign_in_url"]
        assert browser.get(url).status_code == 200
        code = url.partition("code=")[2]
        assert browser.post("/sign-in", data={"code": code}).status_code == 303
        page = browser.get("/projects")
        assert (page.status_code, "default" in page.text) == (200, True)
        assert httpx.post(f"{served.address}/sign-in", data={"code": code}).status_code == 401


def test_the_second_start_has_the_same_data_and_a_fresh_link_but_no_token(programs: Programs) -> None:
    with programs.serving("charon") as served:
        first = served.told
    with programs.serving("charon") as served:
        second = served.told
        assert "token" not in second
        assert second["sign_in_url"].partition("code=")[2] != first["sign_in_url"].partition("code=")[2]
        assert served.get("/api/v1/whoami", first["token"]).json()["principal_id"] == "agent"
        assert "obol_..." in json.dumps(second["mcp"])


def test_the_pasted_configuration_connects_an_agent_over_stdio_and_over_http(programs: Programs) -> None:
    with programs.serving("charon") as served:
        stdio = served.told["mcp"]["stdio"]["mcpServers"]["memory-git"]
        with AgentClient.stdio([stdio["command"], *stdio["args"]], stdio["env"]) as agent:
            assert agent.call("memory_status", {})["project"] == "default"
        http = served.told["mcp"]["http"]["mcpServers"]["memory-git"]
        served.seconds_until_ok("POST", "/mcp", json=TOOLS_LIST, headers={**MCP_HEADERS, **http["headers"]})
        with AgentClient.http(http["url"], served.told["token"]) as agent:
            assert agent.call("memory_status", {})["project"] == "default"


def test_a_first_start_that_broke_off_is_finished_by_the_next(tmp_path: Path) -> None:
    gate = Gate.open(tmp_path / "data")
    operator = gate.as_operator()
    gate.init_project(operator, "default")
    gate.add_principal(operator, "owner", "human", "Owner", "write")
    token = first_start(gate, "default")
    assert token is not None
    assert gate.authenticate(token, "http").principal_id == "agent"
    assert {item["principal_id"] for item in gate.grants(operator)} == {"agent", "owner"}
    assert first_start(gate, "default") is None
    gate.close()


def test_a_gate_that_has_people_of_its_own_gets_nobody_more(tmp_path: Path) -> None:
    gate = Gate.open(tmp_path / "data")
    gate.add_principal(gate.as_operator(), "reviewer", "human")
    assert first_start(gate, "default") is None
    assert [item["principal_id"] for item in gate.principals(gate.as_operator())] == ["reviewer"]
    gate.close()


def test_the_first_start_takes_the_project_that_is_there(tmp_path: Path) -> None:
    gate = Gate.open(tmp_path / "data")
    gate.init_project(gate.as_operator(), "atlas")
    token = first_start(gate, None)
    assert token is not None
    assert gate.authenticate(token, "http").default_project == "atlas"
    gate.close()


# --- the end


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_it_ends_cleanly_even_while_the_mcp_face_is_being_imported(
    programs: Programs, ending: signal.Signals
) -> None:
    with programs.serving("charon") as served:
        assert served.end(ending) == 0
        assert served.process.stderr is not None
        assert served.process.stderr.read() == ""
    assert sorted(path.name for path in programs.data.glob("*-wal")) == []


def test_it_ends_cleanly_while_a_client_listens_to_the_live_feed(programs: Programs) -> None:
    with programs.serving("charon") as served:
        headers = {"Authorization": f"Bearer {served.told['token']}"}
        with httpx.stream(
            "GET", f"{served.address}/api/v1/live", headers=headers, timeout=PATIENCE_S
        ) as live:
            assert live.status_code == 200
            assert served.end(signal.SIGTERM) == 0


# --- two processes


def test_commands_work_on_the_data_while_it_is_served(programs: Programs) -> None:
    with programs.serving("charon") as served:
        minted = json.loads(programs.run("charon", "obol", "mint", "agent", "--json").stdout)
        assert served.get("/api/v1/whoami", minted["token"]).status_code == 200
        assert programs.run("charon", "obol", "revoke", minted["obol_id"]).returncode == 0
        assert served.get("/api/v1/whoami", minted["token"]).status_code == 401


def test_lethe_serves_apart_and_charon_stands_before_it(programs: Programs) -> None:
    with programs.serving("lethe") as lethe:
        assert lethe.get("/api/readyz").status_code == 200
        assert lethe.get("/api/memory/projects").status_code == 401
        assert lethe.told["key_from"] == str(programs.data / "keys" / "lethe-api")
        apart = Programs(programs.data, {"CHARON_UPSTREAM": lethe.address})
        with apart.serving("charon") as charon:
            assert charon.get("/readyz").json()["lethe"]["status"] == "ok"
            assert charon.told["mcp"]["stdio"]["mcpServers"]["memory-git"]["env"]["CHARON_UPSTREAM"]
        listed = Programs(programs.data, {"LETHE_API_URL": lethe.address})
        assert json.loads(listed.run("lethe", "memory", "status", "--json").stdout)["project"] == "default"
    assert lethe.process.returncode == 0


@pytest.fixture
def no_store() -> Iterator[dict[str, str]]:
    """The environment of a gate whose store does not answer."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        yield {"CHARON_UPSTREAM": f"http://127.0.0.1:{closed.getsockname()[1]}"}


def test_the_first_start_needs_the_store_and_says_so(programs: Programs, no_store: dict[str, str]) -> None:
    found = refusal(Programs(programs.data, no_store), "charon", "serve", "--http", "127.0.0.1:0")
    assert (found["code"], found["exit"]) == ("lethe_unreachable", 6)


def test_a_later_start_serves_and_waits_for_the_store(used: Programs, no_store: dict[str, str]) -> None:
    with Programs(used.data, no_store).serving("charon") as served:
        assert served.get("/healthz").status_code == 200
        assert (served.get("/readyz").status_code, served.get("/readyz").json()["code"]) == (
            503,
            "lethe_unreachable",
        )


def test_keys_of_the_environment_are_not_printed_and_the_agent_goes_through_the_server(
    programs: Programs,
) -> None:
    secret = "an invented secret of forty-one characters"
    keyed = Programs(programs.data, {"CHARON_MERGE_HMAC_KEYS": f"new={secret}"})
    with keyed.serving("charon") as served:
        assert secret not in json.dumps(served.told)
        environment = served.told["mcp"]["stdio"]["mcpServers"]["memory-git"]["env"]
        assert environment == {"CHARON_TOKEN": served.told["token"], "CHARON_URL": served.address}


# --- what is refused at the start


@pytest.mark.parametrize("program", ["charon", "lethe"])
def test_a_port_in_use_is_refused_with_what_to_do(programs: Programs, program: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        found = refusal(programs, program, "serve", "--http", address)
        told = programs.run(program, "serve", "--http", address)
    assert (found["code"], found["exit"]) == ("port_in_use", 6)
    assert "--http" in str(found["message"])
    assert (told.returncode, told.stdout, "(port_in_use)" in told.stderr) == (6, "", True)


def truncate(data: Path) -> None:
    for name in ("lethe.db", "charon.db"):
        content = (data / name).read_bytes()
        (data / name).write_bytes(content[: len(content) // 2 + 100])


def raise_schema(data: Path) -> None:
    for name in ("lethe.db", "charon.db"):
        connection = sqlite3.connect(data / name)
        connection.execute("PRAGMA user_version = 9999")
        connection.close()


def exchange(data: Path) -> None:
    shutil.copy(data / "lethe.db", data / "other.db")
    (data / "charon.db").rename(data / "lethe.db")
    (data / "other.db").rename(data / "charon.db")


def scribble(data: Path) -> None:
    for name in ("lethe.db", "charon.db"):
        (data / name).write_bytes(b"no database at all\n" * 1000)


@pytest.mark.parametrize("program", ["charon", "lethe"])
@pytest.mark.parametrize(
    ("damage", "code"),
    [
        pytest.param(truncate, "database_unreadable", id="truncated"),
        pytest.param(scribble, "database_unreadable", id="no database"),
        pytest.param(raise_schema, "schema_newer", id="newer schema"),
        pytest.param(exchange, "wrong_database", id="the other database"),
    ],
)
def test_a_damaged_or_foreign_database_is_refused_and_left_as_it_is(
    used: Programs, program: str, damage: Callable[[Path], None], code: str
) -> None:
    damage(used.data)
    before = {path.name: path.read_bytes() for path in used.data.glob("*.db")}
    found = refusal(used, program, "serve", "--http", "127.0.0.1:0")
    assert (found["code"], found["exit"]) == (code, 6)
    assert {path.name: path.read_bytes() for path in used.data.glob("*.db")} == before


@pytest.mark.parametrize(
    ("words", "extra", "code", "status"),
    [
        pytest.param(["--http", "0.0.0.0:0"], {}, "exposed_address", 3, id="exposed"),
        pytest.param(["--http", "nowhere"], {}, "invalid_setting", 3, id="no address"),
        pytest.param([], {"CHARON_PUBLIC_URL": "gopher://x"}, "bad_public_url", 3, id="public url"),
        pytest.param([], {"CHARON_DATABASE_URL": "mysql://x"}, "bad_database_url", 3, id="another engine"),
        pytest.param([], {"LETHE_SQLITE_SYNCHRONOUS": "NORMAL"}, "weak_durability", 6, id="weak"),
        pytest.param([], {"CHARON_MERGE_HMAC_KEY": "short"}, "bad_merge_keys", 3, id="a short key"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(
    programs: Programs, words: list[str], extra: dict[str, str], code: str, status: int
) -> None:
    found = refusal(Programs(programs.data, extra), "charon", "serve", *words)
    assert (found["code"], found["exit"]) == (code, status)


def test_a_key_that_others_can_read_is_refused(used: Programs) -> None:
    (used.data / "keys" / "token").chmod(0o644)
    found = refusal(used, "charon", "serve", "--http", "127.0.0.1:0")
    assert (found["code"], found["exit"]) == ("key_not_private", 6)


def test_behind_a_proxy_it_answers_to_its_public_name_too_and_to_no_other(programs: Programs) -> None:
    proxied = Programs(programs.data, {"CHARON_PUBLIC_URL": "https://memory.example"})
    with proxied.serving("charon") as served:
        assert served.told["sign_in_url"].startswith("https://memory.example/sign-in?code=")
        assert served.told["mcp"]["http"]["mcpServers"]["memory-git"]["url"] == "https://memory.example/mcp"
        status = {
            host: httpx.get(f"{served.told['listens']}/readyz", headers={"Host": host}).status_code
            for host in ("memory.example", "localhost", "evil.example")
        }
        assert status == {"memory.example": 200, "localhost": 200, "evil.example": 403}


def test_in_recovery_it_serves_reads_and_gives_no_link(used: Programs) -> None:
    recovering = Programs(used.data, {"CHARON_RECOVERY_READONLY": "1", "LETHE_RECOVERY_READONLY": "1"})
    with recovering.serving("charon") as served:
        assert served.told["sign_in_url"] is None
        assert served.get("/readyz").json()["recovery_readonly"] is True
