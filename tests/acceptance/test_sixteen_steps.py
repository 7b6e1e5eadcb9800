"""The sixteen steps of chapter 11 over real processes, in both shapes, on both engines, and the ending: killed in the middle of a write, then verified."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from postgres_world import postgres_databases

from memory_git.cli.story.steps import STEPS
from memory_git.cli.story.tale import Tale, play
from memory_git.cli.story.world import AGENTS, PROJECT, World, opened
from memory_git.domain.errors import Refused
from memory_git.interchange.sample import sample_path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(
    params=[
        pytest.param(("split", "sqlite"), id="split-sqlite"),
        pytest.param(("embedded", "sqlite"), id="embedded-sqlite"),
        pytest.param(("split", "postgresql"), id="split-postgresql"),
        pytest.param(("embedded", "postgresql"), id="embedded-postgresql", marks=pytest.mark.deep),
    ]
)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    mode, engine = request.param
    if engine == "sqlite":
        with opened(tmp_path / "world", mode) as world:
            yield world
        return
    server = request.getfixturevalue("postgres")
    with postgres_databases(server) as databases, opened(tmp_path / "world", mode, databases) as world:
        yield world


def test_all_sixteen_steps_hold_and_a_kill_in_the_middle_of_writing_loses_nothing(world: World) -> None:
    tale = Tale(world, sample_path())
    played = list(play(tale, STEPS))
    assert [(step.number, step.detail) for step in played if not step.ok] == []
    assert len(played) == 16
    _killed_while_writing(tale)


def _killed_while_writing(tale: Tale) -> None:
    """Kills every process with SIGKILL while both agents commit; what was acknowledged is there, and everything verifies."""
    world = tale.world
    acknowledged: list[str] = []
    enough = threading.Event()
    writers = [
        threading.Thread(target=_commit_until_cut, args=(tale, name, acknowledged, enough)) for name in AGENTS
    ]
    for writer in writers:
        writer.start()
    assert enough.wait(timeout=60), "the writers got nowhere"
    world.kill()
    for writer in writers:
        writer.join(timeout=60)
    tale.forget_actors()
    world.start()
    for changeset_id in acknowledged:
        assert tale.store.get_changeset(changeset_id)["changeset_id"] == changeset_id
    operator = world.operator
    assert operator.run("lethe", "verify-chain", PROJECT)["faults"] == []
    assert operator.run("charon", "ledger", "verify")["ok"]
    assert operator.run("charon", "reconcile", "--repair")["ok"]
    assert operator.run("charon", "reconcile")["ok"]


def _commit_until_cut(tale: Tale, name: str, acknowledged: list[str], enough: threading.Event) -> None:
    person = tale.world.person(name)
    ref = f"refs/sessions/{name}/cut"
    head = person.post(f"/projects/{PROJECT}/refs", {"ref_name": ref})["head_changeset_id"]
    for number in range(100_000):
        op = {"op_type": "add_memory", "payload": {"content": f"{name} writes {number}."}}
        body = {
            "ref": ref,
            "expected_head": head,
            "message": "write",
            "ops": [op],
            "idempotency_key": f"cut-{number}",
        }
        try:
            head = person.post(f"/projects/{PROJECT}/changesets", body)["changeset"]["changeset_id"]
        except (Refused, httpx.HTTPError):  # the server was killed
            return
        acknowledged.append(head)
        if len(acknowledged) > 40:
            enough.set()
