"""A database of the original taken in on each engine: the same report, whole, repeatable, and a preview that writes nothing (5-lethe)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from original_db import OriginalDb, add, correct

from memory_git.interchange.original.importing import Wanted, import_original, preview_original
from memory_git.lethe.store import LetheStore

BRANCH = "refs/agents/ann/main"


@pytest.fixture
def store(place: Path | str) -> Iterator[LetheStore]:
    store = LetheStore.open(place, merge_keys=None)
    yield store
    store.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Gives a database with a baseline, a merge that needs resolving, an advance, a manifest, a conflict and an assembly."""
    db = OriginalDb(tmp_path / "old.db")
    db.event("from before", tags="a")
    root = db.root()
    base = db.changeset(BRANCH, [root], [add("m/one", "tabs", tags=["a"]), add("m/two", "x")])
    sides = [
        db.changeset(f"refs/topics/{name}", [base], [correct("m/one", content=name)], author=name)
        for name in ("left", "right")
    ]
    note = {"op_type": "attach_evidence", "payload": {"summary": "merge", "left_branch": "l"}}
    made = db.changeset("refs/shared/main", sides, [note, correct("m/two", "m/three", content="y")])
    for name, head in ((BRANCH, base), ("refs/topics/left", sides[0]), ("refs/topics/right", sides[1])):
        db.ref(name, head)
    db.advance(root, made, "merge_commit")
    db.manifest(made, "m/one")
    db.put(
        "memory_conflicts",
        conflict_id="c",
        project_id="atlas",
        left_changeset_id=sides[0],
        right_changeset_id=sides[1],
        conflict_type="concurrent_change",
        status="open",
        created_at=db.time(),
    )
    db.put(
        "context_assemblies",
        assembly_id="asm",
        session_id="session-1",
        project_id="atlas",
        created_at=db.time(),
        memory_head_changeset_id=made,
    )
    return db.close()


def test_what_was_taken_is_whole_and_a_second_time_changes_nothing(store: LetheStore, file: Path) -> None:
    (foreseen,) = preview_original(file, store, Wanted(), lambda *_: None).projects
    assert store.list_projects() == []
    assert store.list_events("atlas") == []
    (taken,) = import_original(file, store, Wanted(), lambda *_: None).projects
    assert taken.to_json() == foreseen.to_json()
    assert {kind: count for kind, count in taken.taken.items() if count} == {
        "events": 1,
        "changesets": 5,
        "refs": 4,
        "manifests": 1,
        "conflicts": 1,
        "authorizations": 1,
        "advances": 1,
        "assemblies": 1,
        "beside": 4,
    }
    assert store.verify("atlas")["faults"] == []
    head = store.resolve_ref("atlas", "refs/shared/main")["head_changeset_id"]
    assert store.memory("atlas", head, "m/one")["record"]["content"] == "right"
    for again in (
        preview_original(file, store, Wanted(), lambda *_: None),
        import_original(file, store, Wanted(), lambda *_: None),
    ):
        assert sum(again.projects[0].taken.values()) == 0
        assert again.projects[0].there == taken.taken
    assert store.verify("atlas")["faults"] == []


def test_work_goes_on_where_the_import_left_it(store: LetheStore, file: Path) -> None:
    import_original(file, store, Wanted(), lambda *_: None)
    head = store.resolve_ref("atlas", BRANCH)["head_changeset_id"]
    request = {
        "project_id": "atlas",
        "ref_name": BRANCH,
        "parent_ids": [head],
        "author_principal": "ann",
        "message": "on",
        "idempotency_key": "on",
        "ops": [correct("m/one", content="spaces")],
        "expected_head": head,
        "advance_ref": True,
    }
    made, _ = store.create_changeset(request)
    assert store.memory("atlas", made["changeset_id"], "m/one")["record"]["content"] == "spaces"
    assert store.verify("atlas")["faults"] == []
