"""Two processes with a gate each over one database, on both engines: one open proposal a head, no proposal with two ends, one whole ledger."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from gate_world import PROJECT, GateWorld
from postgres_server import Schemas

from memory_git.charon.gate import Caller, Gate
from memory_git.domain.errors import Refused
from memory_git.storage import charon_proposals
from memory_git.storage.charon_schema import CHARON_SCHEMA
from memory_git.storage.lethe_schema import SCHEMA

ROUNDS = 15
PLANTED = "plantedword"
_fork = multiprocessing.get_context("fork")
Act = Callable[[Gate, dict[str, Caller], str, int], Any]


def propose(gate: Gate, who: dict[str, Caller], ref: str, place: int) -> Any:
    return gate.propose(who["one"], PROJECT, message=f"please {PLANTED}", source_ref=ref)["proposal_id"]


def merge(gate: Gate, who: dict[str, Caller], name: str, place: int) -> Any:
    return gate.merge(who[("bob", "cy")[place]], name)["status"]


def merge_or_cancel(gate: Gate, who: dict[str, Caller], name: str, place: int) -> Any:
    return (gate.merge(who["bob"], name) if place else gate.cancel(who["one"], name))["status"]


def merge_or_reject(gate: Gate, who: dict[str, Caller], name: str, place: int) -> Any:
    if place:
        return gate.merge(who["bob"], name)["status"]
    return gate.review(who["cy"], name, "reject", comment=f"no {PLANTED}")["status"]


def review(gate: Gate, who: dict[str, Caller], name: str, place: int) -> Any:
    return gate.review(who[("bob", "cy")[place]], name, "approve", comment=PLANTED)["status"]


ACTS: dict[str, Act] = {
    "propose": propose,
    "merge": merge,
    "merge_or_cancel": merge_or_cancel,
    "merge_or_reject": merge_or_reject,
    "review": review,
}


def slowly(read: Callable[..., Any]) -> Callable[..., Any]:
    """Widens the moment between what is read and what is written after it, in which another process might come in."""

    def reading(connection: Any, *words: Any) -> Any:
        found = read(connection, *words)
        if connection._writes:
            time.sleep(0.03)
        return found

    return reading


def serve(settings: Any, tokens: dict[str, str], place: int, barrier: Barrier, pipe: Connection) -> None:
    """Is one process: acts when told, together with the other one, and looks long before it leaps."""
    for name in ("open_of_head", "is_under_way", "reviews"):
        setattr(charon_proposals, name, slowly(getattr(charon_proposals, name)))
    gate = Gate.open(settings)
    who = {name: gate.authenticate(token, "http") for name, token in tokens.items()}
    while (told := pipe.recv()) is not None:
        act, name = told
        barrier.wait()
        try:
            pipe.send(ACTS[act](gate, who, name, place))
        except Refused as refusal:
            pipe.send(f"refused {refusal.code}")
    gate.close()


class Two:
    """The two processes, and a gate of this one that looks on."""

    def __init__(self, folder: Path, urls: dict[str, str]) -> None:
        self.world = GateWorld(folder, **urls)
        self.world.gate.close()
        barrier = _fork.Barrier(2)
        pairs = [_fork.Pipe() for _ in range(2)]
        self.pipes = [pair[0] for pair in pairs]
        arguments = (self.world.settings, self.world.tokens)
        self.processes = [
            _fork.Process(target=serve, args=(*arguments, place, barrier, pair[1]))
            for place, pair in enumerate(pairs)
        ]
        for process in self.processes:
            process.start()
        self.world.gate = self.world._open()

    def together(self, act: str, name: str) -> list[Any]:
        for pipe in self.pipes:
            pipe.send((act, name))
        return [pipe.recv() for pipe in self.pipes]

    def prepared(self, number: int, *, proposed: bool = True, approved: bool = False) -> str:
        ref = f"refs/agents/one/w{number}"
        world = self.world
        world.gate.create_branch(world.caller("one"), PROJECT, ref)
        payload = {"memory_id": f"m/{number}", "content": f"{PLANTED} {number}"}
        world.commit("one", [{"op_type": "add_memory", "payload": payload}], ref=ref)
        if not proposed:
            return ref
        name = str(world.propose("one", source_ref=ref)["proposal_id"])
        if approved:
            world.approve(name)
        return name

    def end(self) -> None:
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.processes:
            process.join(30)
            assert process.exitcode == 0
        world = self.world
        assert world.gate.reconcile(world.operator, repair=True)["ok"]
        assert world.gate.ledger_verify(world.operator)["ok"]
        world.gate.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Two:
    urls = {}
    if request.param == "postgresql":
        schemas: Schemas = request.getfixturevalue("schemas")
        urls = {"database_url": schemas.new(CHARON_SCHEMA), "lethe_database_url": schemas.new(SCHEMA)}
    return Two(tmp_path / "data", urls)


def test_one_head_is_proposed_once_by_two_processes(two: Two) -> None:
    for number in range(ROUNDS):
        ref = two.prepared(number, proposed=False)
        said = two.together("propose", ref)
        listed = two.world.gate.proposals(two.world.caller("bob"), PROJECT, status="open", limit=200)
        head = two.world.head(ref)
        made = [item["proposal_id"] for item in listed["proposals"] if item["head_changeset_id"] == head]
        assert len(made) == 1
        assert set(said) <= {made[0], "refused already_proposed"}
        assert made[0] in said
    two.end()


@pytest.mark.parametrize("act", ["merge_or_cancel", "merge_or_reject", "merge"])
def test_a_proposal_that_two_processes_end_at_once_ends_in_one_way(two: Two, act: str) -> None:
    for number in range(ROUNDS):
        name = two.prepared(number, approved=True)
        said = two.together(act, name)
        world = two.world
        seen = world.gate.proposal(world.caller("bob"), name)
        landed = [item for item in world.lethe.list_advances(PROJECT) if item["proposal_id"] == name]
        assert len(landed) == (seen["status"] == "merged"), (said, seen["status"])
        assert [word for word in said if not word.startswith("refused")] == [seen["status"]], said
    two.end()


def test_reviews_of_two_processes_are_both_there(two: Two) -> None:
    for number in range(ROUNDS):
        name = two.prepared(number)
        assert set(two.together("review", name)) == {"approved"}
        reviews = two.world.gate.proposal(two.world.caller("bob"), name)["reviews"]
        assert sorted(item["reviewer"] for item in reviews) == ["bob", "cy"]
    two.end()


def test_the_ledger_of_two_processes_is_one_chain_with_an_intent_before_each_change_and_no_content(
    two: Two, tmp_path: Path
) -> None:
    for number in range(ROUNDS):
        two.together("merge_or_reject", two.prepared(number, approved=True))
    world = two.world
    two.end()
    world.gate = world._open()
    exported = list(world.gate.ledger_export(world.operator, PROJECT))
    assert [row["seq"] for row in exported] == list(range(1, len(exported) + 1))
    assert all(row["previous"] == before["link"] for before, row in itertools.pairwise(exported))
    intents = {row["seq"] for row in exported if row["kind"] == "intent"}
    outcomes = [row["intent_seq"] for row in exported if row["kind"] == "outcome"]
    assert len(outcomes) == len(set(outcomes))
    assert set(outcomes) == intents
    assert all(row["intent_seq"] < row["seq"] for row in exported if row["kind"] == "outcome")
    assert PLANTED not in json.dumps(exported)
    assert PLANTED not in "".join(path.read_text() for path in (tmp_path / "data" / "anchor").iterdir())
    world.gate.close()
