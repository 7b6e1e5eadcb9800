"""Work in steps has one outcome, whether a thread waits for it or a loop; a commit by the quick road is the commit that it was."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from gate_world import PROJECT, GateWorld

from memory_git.charon.steps import Step, Steps, at_once, now_told
from memory_git.charon.turnstile import Turnstile
from memory_git.domain.errors import Clash, Refused, Unavailable
from memory_git.http.quick import stepped

BOTH: list[Callable[[Steps[Any]], Any]] = [at_once, lambda steps: asyncio.run(stepped(steps))]
ways = pytest.mark.parametrize("run", BOTH, ids=["a thread waits", "a loop waits"])


def waited(answer: Any) -> Step[Any]:
    return Step(lambda: answer, now_told(lambda: answer))


def failing(error: Exception) -> Step[Any]:
    def fail() -> Any:
        raise error

    def soon(told: Callable[[], None]) -> Callable[[], Any]:
        told()
        return fail

    return Step(fail, soon)


@ways
def test_each_step_is_sent_its_answer_and_the_last_word_is_the_outcome(
    run: Callable[[Steps[Any]], Any],
) -> None:
    def work() -> Steps[list[int]]:
        return [(yield waited(1)), (yield waited(2))]

    assert run(work()) == [1, 2]


@ways
def test_a_failed_step_is_raised_inside_and_may_be_outlived(run: Callable[[Steps[Any]], Any]) -> None:
    def work() -> Steps[str]:
        try:
            yield failing(Refused("no", "no"))
        except Refused as refusal:
            return f"outlived {refusal.code}, {(yield waited('went on'))}"
        return "nothing failed"

    def lost() -> Steps[str]:
        yield failing(Refused("no", "no"))
        return "nothing failed"

    assert run(work()) == "outlived no, went on"
    with pytest.raises(Refused):
        run(lost())


@ways
def test_a_closed_turnstile_is_waited_for(run: Callable[[Steps[Any]], Any]) -> None:
    turnstile = Turnstile()
    opened, entered = threading.Event(), threading.Event()

    def enter() -> None:
        def work() -> Steps[None]:
            if not turnstile.enter_if_open():
                yield turnstile.entering()
            turnstile.leave()

        run(work())
        entered.set()

    with turnstile.closed():
        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.wait(0.2)
        opened.set()
    thread.join(10)
    assert entered.is_set()
    with turnstile.closed():
        pass


def work(memory_id: str, **more: Any) -> dict[str, Any]:
    op = {"op_type": "add_memory", "payload": {"memory_id": memory_id, "content": "says it"}}
    return {"message": "work", "ops": [op], "read_head": True, **more}


@ways
def test_a_commit_leaves_the_same_rows_in_the_ledger(
    world: GateWorld, run: Callable[[Steps[Any]], Any]
) -> None:
    caller = world.caller("one")
    made = run(world.gate.commit_steps(caller, PROJECT, **work("a")))
    assert made["ref"]["head_changeset_id"] == made["changeset"]["changeset_id"]
    with pytest.raises(Clash):
        run(
            world.gate.commit_steps(
                caller,
                PROJECT,
                **work("b", read_head=False, expected_head=made["changeset"]["parent_ids"][0]),
            )
        )
    rows = [row for row in world.gate.ledger_tail(world.operator, PROJECT, 20) if row["route"] == "commit"]
    assert [(row["kind"], row["outcome"]) for row in rows] == [
        ("intent", None),
        ("outcome", "done"),
        ("intent", None),
        ("outcome", "refused: ref_moved"),
    ]
    assert rows[1]["ids"]["changeset_id"] == made["changeset"]["changeset_id"]
    assert world.gate.ledger_verify(world.operator)["ok"]


@ways
def test_an_intent_that_cannot_be_written_changes_nothing(
    world: GateWorld, run: Callable[[Steps[Any]], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise Unavailable("storage_failed", "the disk is full")

    caller = world.caller("one")
    database = world.gate._house.database
    monkeypatch.setattr(type(database), "write", full)
    monkeypatch.setattr(type(database), "write_soon", full)
    with pytest.raises(Unavailable):
        run(world.gate.commit_steps(caller, PROJECT, **work("a")))
    monkeypatch.undo()
    assert world.gate.status(caller, PROJECT)["working_head"] is None
    assert run(world.gate.commit_steps(caller, PROJECT, **work("a")))["replayed"] is False
