"""SIGKILL at a statement of an import of the original's database: done again, it is whole, and nothing is there twice (5-lethe)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from original_db import OriginalDb, add, correct

from memory_git.interchange.original.importing import Wanted, import_original
from memory_git.lethe.store import LetheStore

BRANCH = "refs/agents/ann/main"
CHILD = """
import os, pathlib, signal, sys
import apsw
from memory_git.interchange.original.importing import Wanted, import_original
from memory_git.lethe.store import LetheStore

file, folder, fatal = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
statements = 0

def count(_):
    global statements
    statements += 1
    if statements == fatal:
        os.kill(os.getpid(), signal.SIGKILL)

apsw.connection_hooks.append(lambda connection: connection.trace_v2(apsw.SQLITE_TRACE_STMT, count))
store = LetheStore.open(folder / "lethe.db", merge_keys=None)
import_original(file, store, Wanted(), lambda *_: None)
print(statements)
"""


def sample(path: Path) -> Path:
    db = OriginalDb(path)
    db.event("from before", tags="a")
    root = db.root()
    base = db.changeset(BRANCH, [root], [add("m/one", "tabs"), add("m/two", "x")])
    sides = [
        db.changeset(f"refs/topics/{name}", [base], [correct("m/one", content=name)], author=name)
        for name in ("left", "right")
    ]
    note = {"op_type": "attach_evidence", "payload": {"summary": "merge", "left_branch": "l"}}
    made = db.changeset("refs/shared/main", sides, [note])
    db.ref(BRANCH, base)
    db.advance(root, made, "merge_commit")
    db.manifest(made, "m/one")
    db.event("after")
    return db.close()


def import_killed_at(file: Path, folder: Path, fatal: int) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    words = [sys.executable, "-c", CHILD, str(file), str(folder), str(fatal)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.slow
def test_an_import_that_is_killed_at_any_statement_is_whole_when_it_is_done_again(tmp_path: Path) -> None:
    file = sample(tmp_path / "old.db")
    whole = import_killed_at(file, tmp_path / "whole", 0)
    assert whole.returncode == 0, whole.stderr
    count = int(whole.stdout)
    assert count > 100
    for fatal in range(1, count, max(count // 16, 1)):
        folder = tmp_path / f"killed-at-{fatal}"
        assert import_killed_at(file, folder, fatal).returncode == -9
        store = LetheStore.open(folder / "lethe.db", merge_keys=None)
        import_original(file, store, Wanted(), lambda *_: None)
        assert store.verify("atlas")["faults"] == []
        events = [item["event_id"] for item in store.list_events("atlas", limit=100)]
        assert (len(events), len(set(events))) == (6, 6)
        head = store.resolve_ref("atlas", "refs/shared/main")["head_changeset_id"]
        assert store.memory("atlas", head, "m/one")["record"]["content"] == "right"
        (again,) = import_original(file, store, Wanted(), lambda *_: None).projects
        assert sum(again.taken.values()) == 0
        store.close()
