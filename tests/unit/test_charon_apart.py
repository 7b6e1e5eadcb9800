"""The gate before a Lethe of its own process and key: the same story over HTTP, and what happens when the store is away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from gate_world import PROJECT, GateWorld

from memory_git.charon.keys import Keys
from memory_git.domain.errors import Clash, NotAllowed, Unavailable
from memory_git.http.lethe_app import create_lethe_app
from memory_git.http.serving import running
from memory_git.lethe.store import LetheStore


class Apart:
    """A served store and a gate before it."""

    def __init__(self, folder: Path) -> None:
        self.keys = Keys(folder / "gate" / "keys")
        self.store = LetheStore.open(folder / "lethe.db", merge_keys=self.keys.merge)
        self.server = ExitStack()
        app = create_lethe_app(self.store, api_key=self.keys.lethe_api)
        where = self.server.enter_context(running(app, on_stop=self.store.feed.close))
        self.world = GateWorld(folder / "gate", lethe_url=where.url)

    def close(self) -> None:
        self.world.close()
        self.server.close()
        self.store.close()


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Apart]:
    made = Apart(tmp_path)
    yield made
    made.close()


def test_the_whole_road_is_the_same_with_the_store_apart(apart: Apart) -> None:
    world = apart.world
    world.add("one", "m/1", "We deploy on Fridays", kind="decision", scope="ops", fact_key="day")
    world.add("two", "m/2", "We never deploy on Fridays", kind="decision", scope="ops", fact_key="day")
    world.accept("one")
    proposal_id = world.propose("two")["proposal_id"]
    world.approve(proposal_id)
    with pytest.raises(Clash) as refused:
        world.merge(proposal_id)
    conflict_id = refused.value.facts["conflicts"][0]["conflict_id"]
    with pytest.raises(NotAllowed):
        world.gate.resolve_conflict(world.caller("two"), PROJECT, conflict_id, "both", "mine")
    world.gate.resolve_conflict(world.caller("cy"), PROJECT, conflict_id, "both", "one is for staging")
    assert world.merge(proposal_id)["strategy"] == "merge_commit"
    rejected = world.add("one", "m/3", "not so")["changeset"]["changeset_id"]
    other = world.propose("one", selected_ops=[{"changeset_id": rejected, "ordinal": 0}])["proposal_id"]
    assert world.gate.review(world.caller("bob"), other, "reject", comment="no")["status"] == "rejected"
    assert world.gate.reconcile(world.operator)["ok"]
    assert apart.store.verify(PROJECT)["ok"]


def test_a_store_that_is_away_is_told_and_nothing_is_half_done(apart: Apart) -> None:
    world = apart.world
    world.add("one", "m/1", "text")
    proposal_id = world.propose("one")["proposal_id"]
    world.approve(proposal_id)
    apart.server.close()
    for call in (
        lambda: world.merge(proposal_id),
        lambda: world.add("one", "m/2", "more"),
        lambda: world.gate.status(world.caller("one"), PROJECT),
        world.gate.ready,
    ):
        with pytest.raises(Unavailable):
            call()
    assert world.gate.whoami(world.caller("one"))["principal_id"] == "one"
    assert world.gate.ledger_verify(world.operator)["ok"]
    assert apart.store.list_advances(PROJECT) == []
