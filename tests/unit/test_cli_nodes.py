"""`lethe nodes`: what it says, what it does, and how it ends (2-architecture, the state tree; ADR 12)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from store_world import BRANCH, PROJECT, StoreWorld, add, correct

from memory_git.cli import lethe
from memory_git.cli.program import run

Told = Callable[..., str]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StoreWorld]:
    """Gives a store with a history of forty changesets, open as a server would have it."""
    made = StoreWorld(tmp_path)
    head = made.commit(BRANCH, made.root, *(add(f"m/{n}", f"Fact {n}.") for n in range(40)))
    for n in range(40):
        head = made.commit(BRANCH, head, correct(f"m/{n}", f"Fact {n}, corrected."))
    yield made
    made.close()


@pytest.fixture
def told(
    world: StoreWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Told:
    """Runs a command line on that store, and gives what it printed on the stream that tells."""
    for name in [name for name in os.environ if name.startswith(("LETHE_", "CHARON_", "MEMORY_GIT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LETHE_DATA_DIR", str(tmp_path))

    def line(*words: str, ends: int = 0) -> str:
        code = run(lethe.program, words)
        out, err = capsys.readouterr()
        assert code == ends, out + err
        return str(err if ends else out)

    return line


def document(told: Told, *words: str) -> Any:
    return json.loads(told(*words, "--json"))


def test_without_yes_nothing_goes(told: Told, world: StoreWorld) -> None:
    text = told("nodes", "drop")
    assert "can go" in text
    assert f"lethe nodes drop {PROJECT} --yes" in text
    assert document(told, "nodes", "drop")["dropped"] is False
    assert world.store.plan_collection(PROJECT)["changesets"] == 40


def test_what_was_dropped_reads_the_same_and_comes_back(told: Told, world: StoreWorld) -> None:
    log = document(told, "memory", "log", "--ref", BRANCH, "--limit", "50")
    old = log["changesets"][30]["changeset_id"]
    before = document(told, "memory", "show", "m/3", "--head", old)
    found = document(told, "nodes", "drop", PROJECT, "--yes", "--compact")
    assert (found["dropped"], found["changesets"]) == (True, 40)
    assert document(told, "memory", "show", "m/3", "--head", old) == before
    checked = document(told, "verify-chain")
    assert (checked["ok"], checked["checked"]["dropped state"]) == (True, 40)
    assert document(told, "nodes", "rebuild", old)["changesets"] == 1
    assert "39 changesets" in told("nodes", "rebuild", "--all")
    assert "dropped state" not in document(told, "verify-chain")["checked"]


def test_a_damaged_history_is_named_by_its_changeset(told: Told, world: StoreWorld) -> None:
    told("nodes", "drop", "--yes")
    connection = apsw.Connection(str(world.path))
    connection.execute(
        "UPDATE version SET record_digest = zeroblob(32) WHERE id = (SELECT max(id) - 5 FROM version)"
    )
    damaged = connection.execute(
        "SELECT changeset_id FROM changeset ORDER BY id DESC LIMIT 1 OFFSET 5"
    ).fetchone()[0]
    connection.close()
    assert damaged in told("nodes", "rebuild", "--all", ends=1)


@pytest.mark.parametrize(
    "words", [("nodes", "rebuild"), ("nodes", "rebuild", "--all", BRANCH)], ids=["neither", "both"]
)
def test_a_rebuild_is_of_one_or_of_all(told: Told, words: tuple[str, ...]) -> None:
    assert "--all" in told(*words, ends=2)


def test_a_server_is_not_asked(told: Told, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LETHE_API_URL", "http://127.0.0.1:9")
    assert "local_only" in told("nodes", "drop", ends=3)
    assert "can go" in told("nodes", "drop", "--data-dir", str(tmp_path))
