"""The gate is cut off before and after every durable step of its own and of the store, n = 1, 2, … until the call completes.

Whatever was reached, reconcile finishes it or rolls it back, and the repeated call ends where an uncut one does.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gate_world import MAIN, PROJECT, GateWorld

from memory_git.domain.errors import Clash, Unavailable

MUTATORS = (
    "create_changeset",
    "create_branch",
    "merge_ref",
    "persist_conflicts",
    "retire_conflicts",
    "resolve_conflict",
)


class Cut(BaseException):
    """The process is gone."""


class Fuse:
    """Lets a number of points pass, then cuts, and lets nothing be written afterwards."""

    def __init__(self, points: int) -> None:
        self.left = points
        self.blown = False

    def point(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            if self.blown:
                raise Unavailable("closed", "cut")
            return
        self.left -= 1
        if self.blown or self.left < 0:
            self.blown = True
            raise Cut

    def around(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def fused(*args: Any, **keywords: Any) -> Any:
            self.point()
            done = real(*args, **keywords)
            self.point()
            return done

        return fused


def cut_after(world: GateWorld, points: int, call: Callable[[], Any]) -> bool:
    """Runs a call with a fuse; says whether it was cut. The gate is opened anew in any case."""
    house = world.gate._house
    fuse = Fuse(points)
    house.database.write = fuse.around(house.database.write)  # type: ignore[method-assign]
    for name in MUTATORS:
        setattr(house.lethe, name, fuse.around(getattr(house.lethe, name)))
    with contextlib.suppress(Cut):
        call()
    fuse.blown = True
    house.ledger.flush = lambda: None  # type: ignore[method-assign]
    world.gate.close()
    world.gate = world._open()
    return fuse.left < 0


def require_whole(world: GateWorld) -> None:
    report = world.gate.reconcile(world.operator, repair=True)
    assert report["ok"], report
    again = world.gate.reconcile(world.operator)
    assert again["ok"] and again["repaired"] == []
    assert world.lethe.verify(PROJECT)["ok"]


@pytest.mark.slow
def test_a_merge_that_is_cut_anywhere_lands_exactly_once(tmp_path: Path) -> None:
    for points in range(200):
        world = GateWorld(tmp_path / str(points))
        world.add("one", "m/1", "first")
        world.add("two", "m/2", "second")
        world.accept("two")
        proposal_id = world.propose("one")["proposal_id"]
        world.approve(proposal_id)
        before = world.head()
        cut = cut_after(world, points, lambda w=world, p=proposal_id: w.merge(p, idempotency_key="k"))
        require_whole(world)
        merged = world.merge(proposal_id, idempotency_key="k")
        assert merged["status"] == "merged" and merged["strategy"] == "merge_commit"
        advances = world.lethe.list_advances(PROJECT)
        assert [item["proposal_id"] for item in advances].count(proposal_id) == 1
        assert world.lethe.get_changeset(world.head())["parent_ids"][0] == before
        assert sorted(world.content(name) for name in ("m/1", "m/2")) == ["first", "second"]
        assert world.gate.ledger_verify(world.operator)["ok"]
        world.close()
        if not cut:
            return
    pytest.fail("the merge never completed")


@pytest.mark.slow
def test_a_proposal_that_is_cut_anywhere_is_made_once(tmp_path: Path) -> None:
    for points in range(200):
        world = GateWorld(tmp_path / str(points))
        world.add("one", "m/a", "We deploy on Fridays", kind="decision", scope="ops", fact_key="day")
        world.add("two", "m/b", "We never deploy on Fridays", kind="decision", scope="ops", fact_key="day")
        world.accept("two")
        cut = cut_after(world, points, lambda w=world: w.propose("one", idempotency_key="k"))
        require_whole(world)
        made = world.propose("one", idempotency_key="k")
        listed = world.gate.proposals(world.caller("bob"), PROJECT, status="open")["proposals"]
        assert [item["proposal_id"] for item in listed] == [made["proposal_id"]]
        assert len([item for item in made["conflicts"] if item["severity"] == "blocking"]) == 1
        world.close()
        if not cut:
            return
    pytest.fail("the proposal was never made")


@pytest.mark.slow
def test_a_rejection_that_is_cut_anywhere_is_attested_once_or_not_made(tmp_path: Path) -> None:
    for points in range(200):
        world = GateWorld(tmp_path / str(points))
        world.add("one", "m/1", "not so")
        proposal_id = world.propose("one")["proposal_id"]

        def reject(world: GateWorld = world, proposal_id: str = proposal_id) -> Any:
            return world.gate.review(world.caller("bob"), proposal_id, "reject", comment="it is not so")

        cut = cut_after(world, points, reject)
        require_whole(world)
        if world.gate.proposal(world.caller("bob"), proposal_id)["status"] == "pending":
            reject()
        with pytest.raises(Clash, match="rejected"):
            reject()
        now = world.gate.proposal(world.caller("bob"), proposal_id)
        assert world.head(f"refs/proposals/{proposal_id}") == now["attestation_changeset_id"]
        assert world.lethe.get_changeset(now["attestation_changeset_id"])["parent_ids"] == [
            now["head_changeset_id"]
        ]
        world.close()
        if not cut:
            return
    pytest.fail("the rejection never completed")


@pytest.mark.slow
def test_a_rebase_that_is_cut_anywhere_can_be_repeated(tmp_path: Path) -> None:
    for points in range(200):
        world = GateWorld(tmp_path / str(points))
        world.add("one", "m/1", "first")
        world.add("two", "m/2", "second")
        proposal_id = world.propose("one")["proposal_id"]
        world.approve(proposal_id)
        world.accept("two")
        cut = cut_after(world, points, lambda w=world, p=proposal_id: w.gate.rebase(w.caller("one"), p))
        require_whole(world)
        world.gate.rebase(world.caller("one"), proposal_id)
        merged = world.merge(proposal_id)
        assert merged["strategy"] == "fast_forward"
        assert world.gate.memories(world.caller("bob"), PROJECT, ref=MAIN)["total"] == 2
        world.close()
        if not cut:
            return
    pytest.fail("the rebase never completed")


@pytest.mark.slow
def test_a_first_commit_that_is_cut_anywhere_can_be_repeated(tmp_path: Path) -> None:
    op = {"op_type": "add_memory", "payload": {"memory_id": "m/1", "content": "text"}}
    for points in range(200):
        world = GateWorld(tmp_path / str(points))

        def commit(world: GateWorld = world) -> Any:
            return world.commit("one", [op], ref="refs/topics/t", idempotency_key="k", read_head=False)

        cut = cut_after(world, points, commit)
        require_whole(world)
        done = commit()
        log = world.gate.log(world.caller("one"), PROJECT, "refs/topics/t")["changesets"]
        assert log[0]["changeset_id"] == done["changeset"]["changeset_id"]
        assert len(log) == 2
        world.close()
        if not cut:
            return
    pytest.fail("the commit never completed")
