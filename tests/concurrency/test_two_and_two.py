"""Two Lethe and two Charon processes over one PostgreSQL database (2-architecture, engines; 10-operations, growing past one machine)."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from cli_process import PATIENCE_S, Programs, Served
from postgres_server import Server

from memory_git.storage import charon_schema, lethe_schema

PROJECT = "demo"
VERSIONS = [len(lethe_schema.SCHEMA.migrations), len(charon_schema.CHARON_SCHEMA.migrations)]
MAIN = "refs/shared/main"
EACH = 12
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@dataclass
class House:
    """The four servers, how they were started, and who calls."""

    programs: Programs
    lethes: list[Served]
    charons: list[Served]
    tokens: dict[str, str]

    def call(self, charon: int, who: str, method: str, path: str, body: Any = None) -> httpx.Response:
        return httpx.request(
            method,
            f"{self.charons[charon].address}/api/v1{path}",
            json=body,
            headers={"Authorization": f"Bearer {self.tokens[who]}"},
            timeout=PATIENCE_S,
        )


@pytest.fixture
def house(tmp_path: Path, postgres: Server) -> Iterator[House]:
    schema = f"two_{tmp_path.name[-12:].lower().replace('-', '_')}"
    keys = {"LETHE_API_KEY": "a-key-of-lethe-in-this-test", "CHARON_MERGE_HMAC_KEY": "m" * 40}
    programs = Programs(
        tmp_path / "data",
        {
            **keys,
            "LETHE_DATABASE_URL": f"{postgres.url}?schema={schema}_l",
            "CHARON_DATABASE_URL": f"{postgres.url}?schema={schema}_c",
        },
    )
    migrated = programs.run("lethe", "migrate", "--json")
    assert [item["now"] for item in json.loads(migrated.stdout)["migrated"]] == VERSIONS, migrated.stderr
    with ExitStack() as stack:
        lethes = [stack.enter_context(programs.serving("lethe")) for _ in range(2)]
        charons, tokens = [], {}
        for lethe in lethes:
            behind = Programs(programs.data, {**programs.extra, "CHARON_UPSTREAM": lethe.address})
            if not charons:
                tokens = _people(behind)
            charons.append(stack.enter_context(behind.serving("charon")))
        yield House(programs, lethes, charons, tokens)


def _people(programs: Programs) -> dict[str, str]:
    """Adds people and agents and gives their tokens."""

    def run(*words: str) -> dict[str, Any]:
        done = programs.run("charon", *words, "--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    run("principal", "add", "ann", "--kind", "human", "--profile", "write")
    run("project", "init", PROJECT, "--as", "ann")
    tokens = {}
    for name, kind, profile in (
        ("one", "agent", "propose"),
        ("two", "agent", "propose"),
        ("bob", "human", "review"),
    ):
        run("principal", "add", name, "--kind", kind, "--profile", profile)
        run("grant", "add", name, "--project", PROJECT)
        tokens[name] = str(run("obol", "mint", name)["token"])
    return tokens


def test_they_are_one_memory(house: House) -> None:
    failed: list[object] = []

    def work(who: str, charon: int) -> None:
        try:
            for number in range(EACH):
                op = {"op_type": "add_memory", "payload": {"content": f"{who} by {charon} says {number}."}}
                body = {
                    "message": "work",
                    "ops": [op],
                    "read_head": True,
                    "ref": f"refs/sessions/{who}/s{charon}",
                }
                answer = house.call(charon, who, "POST", f"/projects/{PROJECT}/changesets", body)
                if answer.status_code != 201:
                    failed.append(answer.json())
        except Exception as error:
            failed.append(error)

    threads = [
        threading.Thread(target=work, args=(who, charon)) for who in ("one", "two") for charon in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failed == []
    for who in ("one", "two"):
        for charon in (0, 1):
            path = f"/projects/{PROJECT}/changesets?ref=refs/sessions/{who}/s{charon}&limit=100"
            answers = [house.call(other, who, "GET", path).json() for other in (0, 1)]
            assert answers[0] == answers[1]
            assert len(answers[0]["changesets"]) == EACH + 1
    for words in (("lethe", "verify-chain", PROJECT), ("charon", "ledger", "verify")):
        done = house.programs.run(*words, "--json")
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_moves_behind_one_process_is_heard_behind_the_other_and_a_killed_one_takes_nothing_along(
    house: House,
) -> None:
    heard = threading.Event()
    listening = threading.Event()

    def listen() -> None:
        headers = {"Authorization": "Bearer a-key-of-lethe-in-this-test"}
        url = f"{house.lethes[1].address}/api/live"
        with httpx.stream("GET", url, headers=headers, timeout=PATIENCE_S) as answer:
            listening.set()
            for line in answer.iter_lines():
                if "refs/sessions/one/live" in line:
                    heard.set()
                    return

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    assert listening.wait(PATIENCE_S)
    op = {"op_type": "add_memory", "payload": {"content": "Heard elsewhere."}}
    body = {"message": "work", "ops": [op], "read_head": True, "ref": "refs/sessions/one/live"}
    made = house.call(0, "one", "POST", f"/projects/{PROJECT}/changesets", body).json()["changeset"]
    assert heard.wait(PATIENCE_S)
    house.charons[0].end(signal.SIGKILL)
    house.lethes[0].end(signal.SIGKILL)
    seen = house.call(1, "one", "GET", f"/projects/{PROJECT}/changesets/{made['changeset_id']}")
    assert seen.json()["state_root"] == made["state_root"]
