"""Threads and processes on one store: disjoint refs are never refused, on one ref exactly one wins a round, nothing is lost (12-lessons)."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from store_world import PROJECT, StoreWorld, add, correct

from memory_git.domain.errors import Clash

SUPPORT = Path(__file__).parent.parent / "support"
ONE = "refs/topics/contested"
PROCESS = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from memory_git.domain.errors import Clash
from store_world import PROJECT, StoreWorld, add, correct

world = StoreWorld(sys.argv[2] if "://" in sys.argv[2] else pathlib.Path(sys.argv[2]))
who, rounds, ref = sys.argv[3], int(sys.argv[4]), sys.argv[5]
print("ready", flush=True)
for _ in range(rounds):
    head = sys.stdin.readline().strip()
    own = head or world.head(ref)
    try:
        made = world.commit(ref, own, add(f"{who}/{own}", "text"), author=who)
        other = world.loose(own, add(f"{who}/{own}/side", "text"), author=who)
        merged = world.commit(ref, [made, other], correct(f"{who}/{own}", tags=["x"]), author=who)
        print("won", merged, flush=True)
    except Clash as clash:
        print(clash.code, clash.facts.get("current_head"), flush=True)
world.close()
"""


@pytest.fixture
def world(place: Path | str) -> Iterator[StoreWorld]:
    made = StoreWorld(_home(place))
    yield made
    assert made.faults() == []
    made.close()


def _home(place: Path | str) -> Path | str:
    return place.parent if isinstance(place, Path) else place


def in_threads(count: int, work: Callable[[int], None]) -> None:
    failed: list[BaseException] = []

    def guarded(who: int) -> None:
        try:
            work(who)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(who,)) for who in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert failed == []


def test_writers_of_disjoint_refs_are_never_refused_and_lose_nothing(world: StoreWorld) -> None:
    made: dict[int, list[str]] = {}

    def work(who: int) -> None:
        head, heads = world.root, []
        for number in range(20):
            head = world.commit(f"refs/topics/t{who}", head, add(f"{who}/{number}", "text"), author=f"p{who}")
            heads.append(head)
            assert f"{who}/{number}" in world.records(head)
        made[who] = heads

    in_threads(8, work)
    for who, heads in made.items():
        log = world.store.log(PROJECT, f"refs/topics/t{who}", limit=200)["changesets"]
        assert [item["changeset_id"] for item in log] == [*heads[::-1], world.root]
        assert set(world.records(heads[-1])) == {f"{who}/{number}" for number in range(20)}


def test_on_one_ref_exactly_one_wins_each_round_and_the_others_are_told_by_whom(world: StoreWorld) -> None:
    world.store.create_branch(PROJECT, ONE, world.root, "p")
    head = world.root
    for turn in range(10):
        barrier = threading.Barrier(6)
        told: list[tuple[str, str]] = []

        def attempt(
            who: int, head: str = head, turn: int = turn, barrier: threading.Barrier = barrier,
            told: list[tuple[str, str]] = told,
        ) -> None:  # fmt: skip
            barrier.wait(30)
            try:
                told.append(("won", world.commit(ONE, head, add(f"{turn}/{who}", "x"), author=f"p{who}")))
            except Clash as clash:
                told.append((clash.code, clash.facts["current_head"]))

        in_threads(6, attempt)
        assert Counter(word for word, _ in told) == {"won": 1, "ref_moved": 5}
        (winner,) = {name for _, name in told}
        head = winner
    assert len(world.store.ref_log(PROJECT, ONE)) == 11
    assert len(world.records(head)) == 10


def test_the_same_request_from_many_threads_makes_one_changeset(world: StoreWorld) -> None:
    request = world.request("refs/topics/t", [world.root], add("a", "one"))
    answers: list[tuple[str, bool]] = []

    def attempt(_: int) -> None:
        made, replayed = world.store.create_changeset(request)
        answers.append((made["changeset_id"], replayed))

    in_threads(8, attempt)
    assert Counter(replayed for _, replayed in answers) == {True: 7, False: 1}
    assert len({name for name, _ in answers}) == 1


def test_two_who_correct_the_same_memory_on_their_own_branches_both_keep_their_work(
    world: StoreWorld,
) -> None:
    base = world.commit("refs/topics/base", world.root, add("a", "old"))
    heads: dict[int, str] = {}

    def work(who: int) -> None:
        heads[who] = world.commit(f"refs/topics/t{who}", base, correct("a", f"new {who}"), author=f"p{who}")

    in_threads(6, work)
    assert {world.records(head)["a"]["content"] for head in heads.values()} == {f"new {n}" for n in range(6)}


class Processes:
    """Some child processes with a store each, on one database."""

    def __init__(self, place: Path | str, refs: list[str], rounds: int) -> None:
        self.children = [
            subprocess.Popen(
                [sys.executable, "-c", PROCESS, str(SUPPORT), str(place), f"p{who}", str(rounds), ref],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for who, ref in enumerate(refs)
        ]
        for child in self.children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"

    def round(self, head: str = "") -> list[list[str]]:
        """Lets each try once from a head, or from the head that it finds, and gives what each was told."""
        for child in self.children:
            assert child.stdin is not None
            child.stdin.write(f"{head}\n")
            child.stdin.flush()
        return [child.stdout.readline().split() for child in self.children if child.stdout is not None]

    def end(self) -> None:
        for child in self.children:
            assert child.wait(60) == 0
            for pipe in (child.stdin, child.stdout):
                assert pipe is not None
                pipe.close()


@pytest.mark.slow
def test_processes_on_one_ref_have_one_winner_a_round(world: StoreWorld, place: Path | str) -> None:
    world.store.create_branch(PROJECT, ONE, world.root, "p")
    children = Processes(_home(place), [ONE] * 3, rounds=8)
    head = world.root
    for _ in range(8):
        told = children.round(head)
        won = [name for word, name in told if word == "won"]
        assert [word for word, _ in told if word != "won"] == ["ref_moved"] * 2
        assert len(won) == 1
        head = world.head(ONE)
        assert head == won[0]
        assert world.store.is_ancestor(PROJECT, world.root, head)
    children.end()
    assert len(world.store.ref_log(PROJECT, ONE)) == 1 + 2 * 8


@pytest.mark.slow
def test_processes_on_refs_of_their_own_are_never_refused_and_see_each_others_work(
    world: StoreWorld, place: Path | str
) -> None:
    refs = [f"refs/topics/t{who}" for who in range(3)]
    for ref in refs:
        world.store.create_branch(PROJECT, ref, world.root, "p")
    children = Processes(_home(place), refs, rounds=8)
    for _ in range(8):
        told = children.round()
        assert [word for word, _ in told] == ["won"] * 3
        for ref, (_, name) in zip(refs, told, strict=True):
            assert world.head(ref) == name
        mixed = world.loose([told[0][1], told[1][1]])
        assert len(world.records(mixed)) > 0
    children.end()
    heads = [world.head(ref) for ref in refs]
    assert [len(world.records(head)) for head in heads] == [16, 16, 16]
