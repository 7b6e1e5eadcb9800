"""Imported history under the gate: it is worked on, merged into and reconciled like any other (5-lethe, 6-charon)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from gate_world import MAIN, PROJECT, GateWorld
from original_db import OriginalDb, add, correct

from memory_git.domain import chain
from memory_git.interchange.original.importing import Wanted, import_original
from memory_git.lethe.refs import move_view
from memory_git.lethe.store import LetheStore
from memory_git.storage.lethe_history import RefMove

BRANCH = "refs/agents/one/main"


@pytest.fixture
def db(tmp_path: Path) -> OriginalDb:
    db = OriginalDb(tmp_path / "old.db", project=PROJECT)
    root = db.root()
    head = db.changeset(BRANCH, [root], [add("m/one", "tabs")], author="one")
    db.ref(BRANCH, head)
    db.advance(root, head)
    return db


def take(db: OriginalDb, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    store = LetheStore.open(folder / "lethe.db", merge_keys=None)
    import_original(db.path, store, Wanted(), lambda *_: None)
    store.close()


@pytest.fixture
def world(tmp_path: Path, db: OriginalDb) -> Iterator[GateWorld]:
    take(db, tmp_path / "data")
    made = GateWorld(tmp_path / "data")
    yield made
    made.close()


def test_imported_memory_is_corrected_reviewed_and_merged_like_any_other(world: GateWorld) -> None:
    assert world.content("m/one") == "tabs"
    world.correct("one", "m/one", content="spaces")
    world.accept("one")
    assert world.content("m/one") == "spaces"
    found = world.lethe.verify(PROJECT)
    assert found["faults"] == []
    assert (found["checked"]["imported move"], found["checked"]["imported advance"]) == (1, 1)


def test_reconcile_finds_nothing_amiss_in_what_was_accepted_elsewhere(world: GateWorld) -> None:
    assert world.gate.reconcile(world.operator)["faults"] == []
    world.correct("one", "m/one", content="spaces")
    world.accept("one")
    assert world.gate.reconcile(world.operator)["faults"] == []


def test_another_import_leaves_a_ref_that_was_merged_into_here_where_it_is(
    world: GateWorld, db: OriginalDb
) -> None:
    world.correct("one", "m/one", content="spaces")
    world.accept("one")
    head = world.head()
    there = db.connection.execute(
        "SELECT head_changeset_id FROM memory_refs WHERE ref_name = ?", (MAIN,)
    ).fetchone()[0]
    more = db.changeset(MAIN, [there], [correct("m/one", content="both")], author="two")
    db.advance(there, more, "cherry_pick")
    world.gate.close()
    take(db, world.folder)
    world.gate = world._open()
    assert world.head() == head
    assert world.lethe.verify(PROJECT)["faults"] == []
    assert world.gate.reconcile(world.operator)["faults"] == []
    world.gate.create_branch(world.caller("two"), PROJECT, "refs/agents/two/there", head=more)
    assert world.content("m/one", "two", ref="refs/agents/two/there") == "both"


def test_a_move_that_only_says_it_was_imported_is_found(world: GateWorld) -> None:
    world.correct("one", "m/one", content="spaces")
    world.accept("one")
    world.correct("one", "m/one", content="forged")
    forged = world.head(BRANCH)
    world.gate.close()
    connection = sqlite3.connect(world.folder / "lethe.db")
    columns = ", ".join(RefMove._fields)
    last = RefMove(
        *connection.execute(
            f"SELECT {columns} FROM ref_log WHERE ref_name = ? ORDER BY seq DESC LIMIT 1", (MAIN,)
        ).fetchone()
    )
    move = last._replace(seq=last.seq + 1, from_head=last.to_head, to_head=forged, reason="import")
    move = move._replace(digest=chain.link(last.digest, move_view(move)))
    marks = ", ".join("?" * len(move))
    connection.execute(f"INSERT INTO ref_log ({columns}) VALUES ({marks})", move)
    connection.execute(
        "UPDATE ref SET head_changeset_id = ?, version = ? WHERE ref_name = ?", (forged, move.seq, MAIN)
    )
    connection.commit()
    connection.close()
    world.gate = world._open()
    faults = world.lethe.verify(PROJECT)["faults"]
    assert [item["why"] for item in faults] == ["no authorization stands behind the move"]
    assert [item["kind"] for item in world.gate.reconcile(world.operator)["faults"]] == ["ref_differs"]
