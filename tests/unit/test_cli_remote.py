"""The commands of `charon` with CHARON_URL and CHARON_TOKEN: the same answers as on the data directory, as far as the token goes."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gate_world import MAIN, PROJECT, GateWorld
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from memory_git.charon.gate import Gate
from memory_git.cli import charon
from memory_git.cli.program import run
from memory_git.client.remote import RemoteGate
from memory_git.domain.errors import Invalid, Refused, Unavailable
from memory_git.http.charon_app import create_charon_app
from memory_git.http.serving import running


@dataclass
class Desk:
    """A terminal: commands run in this process, as a client of a server or on its data directory."""

    world: GateWorld
    url: str
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def ask(self, *words: str, of: str | None = None) -> tuple[int, Any]:
        """Runs a command with --json, as the principal `of` through the server, else on the data directory."""
        self.monkeypatch.setenv("CHARON_DATA_DIR", str(self.world.folder))
        if of is None:
            self.monkeypatch.delenv("CHARON_URL", raising=False)
        else:
            self.monkeypatch.setenv("CHARON_URL", self.url)
            self.monkeypatch.setenv("CHARON_TOKEN", self.world.tokens[of])
        code = run(charon.program, [*words, "--json"])
        out, err = self.capsys.readouterr()
        assert err == ""
        return code, json.loads(out)

    def both(self, *words: str, of: str) -> tuple[Any, Any]:
        """Gives what a command says through the server and on the data directory, of one principal."""
        through = self.ask(*words, of=of)
        return through, self.ask(*words, "--as", of)


@pytest.fixture
def desk(
    world: GateWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Desk]:
    for name in [name for name in os.environ if name.startswith(("LETHE_", "CHARON_", "MEMORY_GIT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(world.folder.parent / "config"))
    with running(create_charon_app(world.gate), on_stop=world.gate.feed.close) as where:
        yield Desk(world, where.url, monkeypatch, capsys)


def test_work_is_proposed_reviewed_and_merged_through_a_server(desk: Desk) -> None:
    desk.world.add("one", "deploy", "Deploys go out on Tuesdays.")
    code, made = desk.ask("proposal", "create", "-m", "The deploy day", of="one")
    assert (code, made["originator"], made["status"]) == (0, "one", "pending")
    proposal_id = made["proposal_id"]
    assert desk.ask("proposal", "review", proposal_id, "--verdict", "approve", of="one")[0] == 5
    code, seen = desk.ask("proposal", "review", proposal_id, "--verdict", "approve", of="bob")
    assert (code, seen["status"]) == (0, "approved")
    code, merged = desk.ask("proposal", "merge", proposal_id, of="bob")
    assert (code, merged["status"]) == (0, "merged")
    assert desk.world.content("deploy") == "Deploys go out on Tuesdays."
    code, revert = desk.ask("proposal", "revert", merged["merged_head"], "-m", "No longer", of="two")
    assert (code, revert["kind"]) == (0, "revert")
    assert desk.ask("proposal", "cancel", revert["proposal_id"], of="two")[1]["status"] == "canceled"


def test_a_stale_proposal_is_rebased_through_a_server(desk: Desk) -> None:
    desk.world.add("one", "first", "The first thing.")
    desk.world.add("two", "second", "Another thing.")
    stale = desk.ask("proposal", "create", "-m", "Two", of="two")[1]["proposal_id"]
    desk.world.accept("one")
    code, rebased = desk.ask("proposal", "rebase", stale, of="two")
    assert (code, rebased["stale"], rebased["verdict"]["mergeable"]) == (0, False, False)


def test_conflicts_are_listed_and_settled_through_a_server(desk: Desk) -> None:
    for name, day in (("one", "Tuesdays"), ("two", "Fridays")):
        desk.world.add(name, f"day-{name}", f"Deploys go out on {day}.", kind="fact", fact_key="deploy/day")
    desk.world.accept("one")
    desk.ask("proposal", "create", "-m", "Fridays", of="two")
    code, listed = desk.ask("conflict", "list", "--status", "open", of="bob")
    assert (code, {item["status"] for item in listed["conflicts"]}) == (0, {"open"})
    found = listed["conflicts"][0]["conflict_id"]
    code, settled = desk.ask(
        "conflict", "resolve", found, "--outcome", "both", "--note", "Two teams", of="cy"
    )
    assert (code, settled["status"], settled["resolved_by"]) == (0, "resolved", "cy")


def test_an_import_is_committed_through_a_server_and_a_second_time_changes_nothing(
    desk: Desk, tmp_path: Path
) -> None:
    source = tmp_path / "memory.jsonl"
    entity = {"type": "entity", "name": "Atlas", "entityType": "project", "observations": ["Is a map."]}
    source.write_text(json.dumps(entity) + "\n")
    code, first = desk.ask("import", str(source), of="one")
    assert (code, first["ref"], len(first["changesets"])) == (0, "refs/agents/one/import", 1)
    assert desk.ask("import", str(source), of="one")[1]["changesets"] == []


def test_an_administrator_administers_through_a_server(desk: Desk) -> None:
    assert desk.ask("principal", "add", "three", "--kind", "agent", of="ann")[0] == 0
    assert desk.ask("grant", "add", "three", "--project", PROJECT, of="ann")[1]["project"] == PROJECT
    minted = desk.ask("obol", "mint", "three", "--project", PROJECT, of="ann")[1]
    desk.world.tokens["three"] = minted["token"]
    assert desk.ask("proposal", "list", of="three") == (0, {"proposals": []})
    assert desk.ask("obol", "revoke", minted["obol_id"], of="ann")[1]["revoked_at"]
    assert desk.ask("proposal", "list", of="three")[0] == 5
    assert desk.ask("principal", "disable", "three", of="ann")[1]["disabled"] is True
    assert desk.ask("principal", "disable", "three", "--undo", of="ann")[1]["disabled"] is False
    assert desk.ask("grant", "revoke", "three", "--project", PROJECT, of="ann")[1]["revoked"] is True
    code, policy = desk.ask("project", "policy", PROJECT, "--set", "approvals_needed=2", of="ann")
    assert (code, policy["approvals_needed"]) == (0, 2)
    assert desk.ask("project", "init", "second", of="ann")[1]["ref"]["ref_name"] == MAIN
    assert desk.ask("project", "list", of="ann")[1]["projects"] == [PROJECT, "second"]


@pytest.mark.parametrize(
    "words",
    [
        ["principal", "list"],
        ["obol", "list"],
        ["grant", "list", "--project", PROJECT],
        ["ledger", "verify", "--project", PROJECT],
    ],
    ids=" ".join,
)
def test_an_administrators_reading_is_the_same_on_both_ways(desk: Desk, words: list[str]) -> None:
    through, local = desk.ask(*words, of="ann"), desk.ask(*words)
    assert (through[0], local[0]) == (0, 0)
    for found in through[1].get("obols", []) + local[1].get("obols", []):
        found.pop("last_used_at")  # the token that asks is itself in the list
    if words[0] == "ledger":
        assert (through[1]["ok"], local[1]["ok"]) == (True, True)
    else:
        assert through == local


@pytest.mark.parametrize(
    "words",
    [["proposal", "list"], ["conflict", "list"], ["project", "policy", PROJECT]],
    ids=" ".join,
)
def test_a_members_reading_is_the_same_on_both_ways(desk: Desk, words: list[str]) -> None:
    desk.world.add("one", "deploy", "Deploys go out on Tuesdays.")
    desk.world.propose("one")
    through, local = desk.both(*words, of="bob")
    assert through == local
    assert through[0] == 0


@pytest.mark.parametrize(
    "words",
    [["principal", "list"], ["ledger", "tail"], ["obol", "mint", "two"], ["project", "init", "third"]],
    ids=" ".join,
)
def test_who_may_not_administer_is_refused_by_the_server(desk: Desk, words: list[str]) -> None:
    code, problem = desk.ask(*words, of="one")
    assert (code, problem["code"]) == (5, "denied")


def test_a_refusal_arrives_with_its_code_and_its_facts(desk: Desk) -> None:
    code, problem = desk.ask("proposal", "show", "018f0000-0000-7000-8000-000000000000", of="one")
    assert (code, problem["code"]) == (3, "not_found")
    code, problem = desk.ask("project", "policy", PROJECT, "--set", "approvals_needed=0", of="ann")
    assert (code, problem["code"], problem["faults"][0]["field"]) == (3, "bad_policy", "approvals_needed")
    desk.world.add("one", "deploy", "Deploys go out on Tuesdays.")
    proposal_id = desk.world.propose("one")["proposal_id"]
    code, problem = desk.ask("proposal", "merge", proposal_id, of="bob")
    assert (code, problem["status"]) == (4, 409)


def test_another_principal_than_the_tokens_is_refused_here(desk: Desk) -> None:
    code, problem = desk.ask("proposal", "list", "--as", "bob", of="one")
    assert (code, problem["code"]) == (5, "denied")


def test_a_data_directory_that_is_named_comes_before_the_server(desk: Desk) -> None:
    desk.monkeypatch.setenv("CHARON_URL", "http://127.0.0.1:1")
    desk.monkeypatch.setenv("CHARON_TOKEN", desk.world.tokens["one"])
    assert run(charon.program, ["principal", "list", "--json", "--data-dir", str(desk.world.folder)]) == 0
    assert len(json.loads(desk.capsys.readouterr().out)["principals"]) == 5


@pytest.mark.parametrize(
    "words", [["ledger", "export"], ["reconcile"], ["backup", "--out", "copy"]], ids=" ".join
)
def test_what_needs_the_data_directory_is_refused(desk: Desk, words: list[str]) -> None:
    code, problem = desk.ask(*words, of="ann")
    assert (code, problem["code"]) == (3, "local_only")


def test_an_address_without_a_token_is_refused_before_anything_is_sent(desk: Desk) -> None:
    desk.monkeypatch.setenv("CHARON_URL", desk.url)
    assert run(charon.program, ["proposal", "list", "--json"]) == 5
    assert json.loads(desk.capsys.readouterr().out)["code"] == "token_needed"


@pytest.mark.parametrize(
    "url", ["http://memory.example", "ftp://127.0.0.1", "127.0.0.1:18484", "http://[", ""]
)
def test_a_token_never_leaves_this_machine_in_clear(url: str) -> None:
    with pytest.raises(Invalid) as refused:
        RemoteGate(url, "obol")
    assert refused.value.code == "bad_charon_url"


def test_nobody_there_is_told() -> None:
    gate = RemoteGate("http://127.0.0.1:1", "obol")
    with pytest.raises(Unavailable) as refused:
        gate.as_operator()
    assert refused.value.code == "charon_unreachable"
    gate.close()


def test_an_answer_that_is_not_charons_is_told_with_its_status() -> None:
    async def elsewhere(request: Request) -> Response:
        match request.url.path.rpartition("/")[2]:
            case "whoami":
                return PlainTextResponse("a proxy is sorry", 502)
            case "projects":
                return JSONResponse([1, 2], 200)
            case _:
                return JSONResponse({"sorry": True}, 500)

    with running(Starlette(routes=[Route("/{path:path}", elsewhere)])) as where:
        gate = RemoteGate(where.url, "obol")
        verbs = (gate.as_operator, lambda: gate.list_projects(None), lambda: gate.obols(None))  # type: ignore[arg-type]
        for verb in verbs:
            with pytest.raises(Refused) as refused:
                verb()
            assert refused.value.code == "charon_failed"
        gate.close()


def test_each_verb_is_one_of_the_gates_with_the_same_parameters() -> None:
    verbs = {
        name: verb
        for name, verb in inspect.getmembers(RemoteGate, inspect.isfunction)
        if not name.startswith("_")
    }
    for name, verb in verbs.items():
        takes = [item.strip("_") for item in inspect.signature(verb).parameters]
        gives = list(inspect.signature(getattr(Gate, name)).parameters)
        if inspect.Parameter.VAR_KEYWORD in {
            item.kind for item in inspect.signature(verb).parameters.values()
        }:
            takes.pop()  # the rest travels by name, as the gate names it
            gives = gives[: len(takes)]
        if name.startswith("as_"):
            gives.remove("surface")
        assert takes == gives, name
