"""SIGKILL before and after each statement of propose, review, merge, restore, on both engines; then reconcile, one final state.

A real process is killed at the n-th point, n = 1, 2, …; the fast suite takes every tenth, `make test-all` all.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gate_world import MAIN, PROJECT, GateWorld
from postgres_server import Schemas
from statement_kill import killed_at

from memory_git.charon.backup import restore
from memory_git.charon.gate import Gate, GateSettings
from memory_git.charon.recovery import write_marker
from memory_git.domain.errors import Clash, Unauthenticated, Unavailable
from memory_git.storage.charon_schema import CHARON_SCHEMA
from memory_git.storage.lethe_schema import SCHEMA

ENGINES = ("sqlite", "postgresql")
MOST = 1_000
STEPS = [
    pytest.param(10, id="every tenth"),
    pytest.param(1, id="all", marks=[pytest.mark.deep, pytest.mark.timeout(1800)]),
]


@pytest.fixture(params=ENGINES)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    if request.param == "sqlite":
        return {}
    schemas: Schemas = request.getfixturevalue("schemas")
    return {
        "database_url": schemas.new(CHARON_SCHEMA),
        "lethe_database_url": schemas.new(SCHEMA),
    }


class Cases:
    """One world of which a child is killed again and again; between the kills its gate is closed here."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.world = GateWorld(folder, **settings)
        self.world.gate.close()

    def opened(self) -> GateWorld:
        self.world.gate = self.world._open()
        return self.world

    def mended(self) -> GateWorld:
        """Opens the gate five minutes after a kill, when no authorization can be used any more, and reconciles."""
        self.world.later(minutes=5)
        world = self.opened()
        report = world.gate.reconcile(world.operator, repair=True)
        assert report["ok"], report
        again = world.gate.reconcile(world.operator)
        assert again["ok"] and again["repaired"] == []
        self.world.later(minutes=-5)
        return world

    def close(self) -> None:
        assert self.world.lethe.verify(PROJECT)["ok"]
        assert self.world.gate.ledger_verify(self.world.operator)["ok"]
        self.world.gate.close()


Prepare = Callable[[GateWorld, int], str]
Act = Callable[[GateWorld, str, int], Any]
Check = Callable[[GateWorld, str, int], None]


def run(cases: Cases, step: int, prepare: Prepare, act: Act, check: Check) -> None:
    """Kills the act at each point that the step comes to; after each kill reconciles, repeats the act, and checks."""
    for fatal in range(1, MOST, step):
        world = cases.opened()
        name = prepare(world, fatal)
        world.gate.close()
        killed = killed_at(fatal, cases.opened, lambda world, name=name, n=fatal: act(world, name, n))
        world = cases.mended()
        check(world, name, fatal)
        world.gate.close()
        if not killed:
            break
    else:
        pytest.fail("the act never completed")
    cases.opened()
    cases.close()


def work(world: GateWorld, number: int) -> str:
    """Makes a branch of its own with one memory; gives the ref."""
    ref = f"refs/agents/one/w{number}"
    op = {
        "op_type": "add_memory",
        "payload": {"memory_id": f"m/{number}", "content": f"text number {number}"},
    }
    world.gate.create_branch(world.caller("one"), PROJECT, ref)
    world.commit("one", [op], ref=ref)
    return ref


def of_head(world: GateWorld, head: str) -> list[dict[str, Any]]:
    listed = world.gate.proposals(world.caller("bob"), PROJECT, limit=200)["proposals"]
    return [item for item in listed if item["head_changeset_id"] == head]


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_proposal_killed_at_any_statement_is_made_once(
    tmp_path: Path, settings: dict[str, Any], step: int
) -> None:
    def act(world: GateWorld, ref: str, number: int) -> dict[str, Any]:
        return world.propose("one", source_ref=ref, idempotency_key=f"k{number}")

    def check(world: GateWorld, ref: str, number: int) -> None:
        made = act(world, ref, number)
        assert made["status"] == "pending"
        assert [item["proposal_id"] for item in of_head(world, world.head(ref))] == [made["proposal_id"]]
        world.gate.cancel(world.caller("one"), made["proposal_id"])

    run(Cases(tmp_path / "data", settings), step, work, act, check)


@pytest.mark.slow
@pytest.mark.parametrize("verdict", ["approve", "reject"])
@pytest.mark.parametrize("step", STEPS)
def test_a_review_killed_at_any_statement_is_recorded_once_or_not_at_all(
    tmp_path: Path, settings: dict[str, Any], step: int, verdict: str
) -> None:
    def prepare(world: GateWorld, number: int) -> str:
        return str(world.propose("one", source_ref=work(world, number))["proposal_id"])

    def act(world: GateWorld, name: str, number: int) -> dict[str, Any]:
        return world.gate.review(world.caller("bob"), name, verdict, comment="so it is")

    def check(world: GateWorld, name: str, number: int) -> None:
        seen = world.gate.proposal(world.caller("bob"), name)
        stood = [review["verdict"] for review in seen["reviews"]]
        assert stood in ([], [verdict])
        if not stood:
            assert seen["status"] == "pending"
            seen = act(world, name, number)
        if verdict == "reject":
            assert seen["status"] == "rejected"
            assert world.head(seen["kept_ref"]) == seen["attestation_changeset_id"]
            with pytest.raises(Clash, match="rejected"):
                act(world, name, number)
        else:
            assert seen["verdict"]["mergeable"]
            world.gate.cancel(world.caller("one"), name)

    run(Cases(tmp_path / "data", settings), step, prepare, act, check)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_merge_killed_at_any_statement_lands_once(
    tmp_path: Path, settings: dict[str, Any], step: int
) -> None:
    def prepare(world: GateWorld, number: int) -> str:
        name = str(world.propose("one", source_ref=work(world, number))["proposal_id"])
        other = work(world, number + MOST)
        moved = str(world.propose("one", source_ref=other)["proposal_id"])
        for item in (name, moved):
            world.approve(item)
        world.merge(moved)
        return name

    def act(world: GateWorld, name: str, number: int) -> dict[str, Any]:
        return world.merge(name, idempotency_key=f"k{number}")

    def check(world: GateWorld, name: str, number: int) -> None:
        seen = world.gate.proposal(world.caller("bob"), name)
        assert seen["status"] in ("approved", "merged")
        landed = [item for item in world.lethe.list_advances(PROJECT) if item["proposal_id"] == name]
        assert len(landed) == (seen["status"] == "merged")
        done = act(world, name, number)
        assert done["status"] == "merged"
        landed = [item for item in world.lethe.list_advances(PROJECT) if item["proposal_id"] == name]
        assert [item["to_head"] for item in landed] == [done["merged_changeset_id"]]
        assert world.content(f"m/{number}") == f"text number {number}"
        assert world.content(f"m/{number + MOST}") == f"text number {number + MOST}"

    run(Cases(tmp_path / "data", settings), step, prepare, act, check)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_restore_killed_at_any_statement_ends_in_the_state_of_the_backup(tmp_path: Path, step: int) -> None:
    world = GateWorld(tmp_path / "data")
    world.add("one", "m/1", "kept")
    world.accept("one")
    world.gate.backup(world.operator, tmp_path / "out", with_keys=True)
    head = world.head()
    world.gate.disable_principal(world.operator, "two")
    world.add("one", "m/2", "later than the backup")
    world.accept("one")
    world.gate.close()
    to = tmp_path / "new"

    def act(_: object) -> None:
        restore(tmp_path / "out", to, tmp_path / "data" / "anchor")
        reconciled(to)

    for fatal in range(1, MOST, step):
        shutil.rmtree(to, ignore_errors=True)
        killed = killed_at(fatal, lambda: None, act)
        try:
            if not (to / "recovery-readonly").exists() and not (to / "charon.db").exists():
                act(None)
            reconciled(to)
        except Unavailable as refusal:
            assert killed and refusal.code == "database_absent", refusal.code
            shutil.rmtree(to)
            act(None)
        require_restored(world, to, head)
        if not killed:
            return
    pytest.fail("the restore never completed")


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_restore_in_place_killed_at_any_statement_starts_one_epoch(
    tmp_path: Path, settings: dict[str, Any], step: int
) -> None:
    cases = Cases(tmp_path / "data", settings)

    def act(_: object) -> None:
        world = cases.opened()
        world.gate.reconcile(world.operator, repair=True)
        world.gate.close()

    for epochs, fatal in enumerate(range(1, MOST, step), start=1):
        cookie = cases.opened().gate.open_session(cases.world.caller("bob"))
        cases.world.gate.close()
        write_marker(tmp_path / "data", None)

        killed = killed_at(fatal, lambda: None, act)
        world = cases.mended()
        with pytest.raises(Unauthenticated):
            world.gate.session_caller(cookie)
        world.gate.close()
        lines = (tmp_path / "data" / "anchor" / "journal.jsonl").read_text().splitlines()
        assert sum("restore_id" in json.dumps(json.loads(line)) for line in lines) == epochs
        if not killed:
            break
    else:
        pytest.fail("the restore never completed")
    cases.opened()
    cases.close()


def reconciled(folder: Path) -> None:
    gate = Gate.open(GateSettings(data_dir=folder, reconciling=True))
    try:
        gate.reconcile(gate.as_operator(), repair=True)
        report = gate.reconcile(gate.as_operator())
        assert report["ok"], report
    finally:
        gate.close()


def require_restored(world: GateWorld, folder: Path, head: str) -> None:
    gate = Gate.open(GateSettings(data_dir=folder))
    try:
        lethe = gate._house.lethe
        assert lethe.resolve_ref(PROJECT, MAIN)["head_changeset_id"] == head
        assert (
            gate.status(gate.authenticate(world.tokens["one"], "http"), PROJECT)["recovery_readonly"] is False
        )
        with pytest.raises(Unauthenticated):
            gate.authenticate(world.tokens["two"], "http")
        assert lethe.verify(PROJECT)["ok"]
        assert gate.ledger_verify(gate.as_operator())["ok"]
    finally:
        gate.close()
    assert not (folder / "recovery-readonly").exists()
