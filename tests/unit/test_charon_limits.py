"""Rates and quotas of the gate: one principal or one project that does too much is refused, the others go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from gate_world import PROJECT, GateWorld

from memory_git.charon.gate import Gate
from memory_git.charon.limits import LimitSettings
from memory_git.domain.errors import TooMany
from memory_git.http.charon_app import create_charon_app
from memory_git.http.serving import running


def limited(folder: Path, **limits: int) -> GateWorld:
    return GateWorld(folder / "limited", limits=LimitSettings(**limits))


def refusal(call: Callable[[], object]) -> TooMany:
    with pytest.raises(TooMany) as refused:
        call()
    return refused.value


def test_the_changes_of_a_principal_end_for_the_day_and_others_go_on(tmp_path: Path) -> None:
    world = limited(tmp_path, changes_per_day=2)
    for place in range(2):
        world.add("one", f"m/{place}", "text")
    head = world.head("refs/agents/one/main")
    told = refusal(lambda: world.add("one", "m/2", "text"))
    assert (told.code, told.facts["limited"], told.facts["per_day"]) == ("quota_spent", "principal", 2)
    assert 0 < told.facts["retry_after_s"] <= 24 * 3600
    assert world.head("refs/agents/one/main") == head
    world.add("two", "n/1", "text")
    world.gate.log(world.caller("one"), PROJECT)
    world.later(days=1)
    world.add("one", "m/2", "text")
    world.close()


def test_the_changes_of_a_project_are_counted_over_all_and_a_restart_forgets_nothing(tmp_path: Path) -> None:
    world = limited(tmp_path, project_changes_per_day=3)
    for name in ("one", "two", "one"):
        world.commit(name, [{"op_type": "add_memory", "payload": {"content": f"of {name}"}}])
    assert refusal(lambda: world.add("two", "n/9", "text")).facts["limited"] == "project"
    world.restart()
    assert refusal(lambda: world.add("one", "m/9", "text")).facts["limited"] == "project"
    world.close()


def test_two_gates_on_one_database_count_together(tmp_path: Path) -> None:
    world = limited(tmp_path, changes_per_day=4)
    other = Gate.open(world.settings, world.now)
    for place in range(2):
        world.add("one", f"m/{place}", "text")
        op = {"op_type": "add_memory", "payload": {"content": "text"}}
        caller = other.authenticate(world.tokens["one"], "http")
        other.commit(caller, PROJECT, message="w", ops=[op], read_head=True)
    for gate in (world.gate, other):
        gate._house.ledger.flush()
        gate._house.limits.note()
    world.restart()
    assert refusal(lambda: world.add("one", "m/9", "text")).code == "quota_spent"
    other.close()
    world.close()


def test_the_owner_of_the_data_directory_is_not_counted(tmp_path: Path) -> None:
    world = limited(tmp_path, requests_per_s=1, changes_per_day=1, project_changes_per_day=1)
    for _ in range(3):
        world.gate.grant(world.operator, "two", PROJECT)
        world.gate.principals(world.operator)
    world.close()


def test_too_many_calls_are_429_with_retry_after_over_http_and_others_are_answered(tmp_path: Path) -> None:
    world = limited(tmp_path, requests_per_s=5)
    with running(create_charon_app(world.gate), on_stop=world.gate.feed.close) as where:

        def asks(name: str) -> httpx.Response:
            headers = {"Authorization": f"Bearer {world.tokens[name]}"}
            return httpx.get(f"{where.url}/api/v1/projects/{PROJECT}/policy", headers=headers)

        answers = [asks("one") for _ in range(30)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused and refused[0].json()["code"] == "too_many_requests"
        assert int(refused[0].headers["retry-after"]) >= 1
        assert asks("two").status_code == 200
    world.close()


def test_a_project_has_a_rate_of_its_own(tmp_path: Path) -> None:
    world = limited(tmp_path, project_requests_per_s=2)
    names = ("one", "two", "bob", "one", "two", "bob")
    refused = 0
    for name in names:
        try:
            world.gate.project_policy(world.caller(name), PROJECT)
        except TooMany as told:
            assert told.facts["limited"] == "project"
            refused += 1
    assert refused
    world.gate.principals(world.operator)
    world.close()
