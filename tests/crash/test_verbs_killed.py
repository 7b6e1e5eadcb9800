"""SIGKILL at the n-th statement of each verb of the store, n = 1, 2, …: it happened whole or not at all, and may be asked again."""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from store_world import KEYS, PROJECT, StoreWorld
from verb_kills import SECRET, VERBS

from memory_git.domain.errors import Clash, NotFound, Refused
from memory_git.lethe.protocol import Lethe
from memory_git.lethe.store import LetheStore

SUPPORT = Path(__file__).parent.parent / "support"
READS = {
    "authors", "backup", "detect_conflicts", "diff", "get_assembly", "get_changeset", "get_event", "get_manifest", "health",
    "is_ancestor", "list_advances", "list_assemblies", "list_conflicts", "list_events", "list_projects", "list_redactions",
    "list_refs", "log", "memories", "memory", "memory_history", "merge_base", "plan_cherry_pick", "plan_merge", "plan_rebase",
    "plan_revert", "prepare_changeset", "ready", "records", "ref_log", "reproduce", "resolve_ref", "search", "verify",
}  # fmt: skip
"""What writes nothing to the database; a backup writes a file of its own."""
REPEATABLE = {
    "init_project", "create_branch", "create_changeset", "persist_conflicts", "retire_conflicts", "append_event", "give_feedback",
    "collect_nodes", "rebuild_nodes",
}  # fmt: skip
"""What may be asked again after it was done, and then changes nothing."""
MADE_AGAIN = {"create_manifest", "context", "record_assembly"}
"""What makes another one each time."""


def test_every_verb_that_writes_is_killed_here() -> None:
    public = {
        name for name, value in vars(Lethe).items() if inspect.isfunction(value) and not name.startswith("_")
    }
    killed = {name.partition(" ")[0] for name in VERBS}
    assert public - READS == killed - {"collect_nodes", "rebuild_nodes"}
    assert not READS & killed


class Killer:
    """The process that forks the children."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(SUPPORT / "verb_kills.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=SUPPORT,
        )

    def runs(self, folder: Path, verb: str, fatal: int) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{folder}\t{verb}\t{fatal}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    made = Killer()
    yield made
    made.close()


def prepared(folder: Path, verb: str) -> Path:
    """A closed store on which the verb can be called."""
    base = folder / "base"
    base.mkdir()
    world = StoreWorld(base)
    args = VERBS[verb].prepare(world)
    world.close()
    (base / "args.json").write_text(json.dumps(args))
    return base


def copied(base: Path, to: Path) -> Path:
    shutil.copytree(base, to)
    return to


def seen(folder: Path) -> dict[str, Any]:
    """What stands in a store: the rows of every table, and each ref with its state and log."""
    store = LetheStore.open(folder / "lethe.db", merge_keys=KEYS)
    try:
        faults = [fault for project in store.list_projects() for fault in store.verify(project)["faults"]]
        assert faults == []
        refs = {}
        for ref in store.list_refs(PROJECT):
            entries = store.memories(PROJECT, ref["head_changeset_id"], limit=200)["memories"]
            log = store.ref_log(PROJECT, ref["ref_name"])
            assert log[-1]["to_head"] == ref["head_changeset_id"]
            refs[ref["ref_name"]] = (
                [(entry["memory_id"], entry["record"].get("content")) for entry in entries],
                len(log),
            )
        statuses = sorted(
            (item["conflict_id"], item["status"]) for item in store.list_conflicts(PROJECT, limit=100)
        )
        verdicts = [item.get("verdict") for item in store.list_assemblies("s")]
    finally:
        store.close()
    driver = apsw.Connection(str(folder / "lethe.db"), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [
        row[0]
        for row in driver.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        )
    ]
    counts = {
        name: driver.execute(f'SELECT count(*) FROM "{name}"').fetchone()
        for name in tables
        if not name.startswith(("sqlite_", "version_words_", "text_words_"))
    }
    driver.close()
    return {"refs": refs, "conflicts": statuses, "verdicts": verdicts, "counts": counts}


def again(folder: Path, verb: str) -> Refused | None:
    """Calls the verb once more; gives its refusal."""
    store = LetheStore.open(folder / "lethe.db", merge_keys=KEYS)
    try:
        VERBS[verb].call(store, json.loads((folder / "args.json").read_text()))
    except Refused as refusal:
        return refusal
    finally:
        store.close()
    return None


def require_whole_or_nothing(folder: Path, verb: str, before: Any, after: Any) -> None:
    """Checks a store whose process was killed within a verb, and what comes of asking again."""
    found = seen(folder)
    assert found in (before, after)
    was_done = found == after and before != after
    refusal = again(folder, verb)
    if not was_done:
        assert refusal is None
    elif verb not in REPEATABLE | MADE_AGAIN:
        assert isinstance(refusal, Clash | NotFound), refusal
    if verb not in MADE_AGAIN or not was_done:
        assert seen(folder) == after
    if verb == "redact":
        left = [path.name for path in folder.glob("lethe.db*") if SECRET.encode() in path.read_bytes()]
        assert left == []


def kill_through(killer: Killer, folder: Path, verb: str, step: int, first: int) -> int:
    """Kills a verb at every `step`-th of its statements, and gives at how many."""
    base = prepared(folder, verb)
    before = seen(copied(base, folder / "before"))
    whole = copied(base, folder / "after")
    assert killer.runs(whole, verb, 0) == "done"
    after = seen(whole)
    fatal, killed = first, 0
    while True:
        place = copied(base, folder / str(fatal))
        said = killer.runs(place, verb, fatal)
        assert said in ("killed", "done"), said
        if said == "done":
            assert seen(place) == after, "acknowledged, and there"
            return killed
        require_whole_or_nothing(place, verb, before, after)
        shutil.rmtree(place)
        killed += 1
        fatal += step


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_killed_at_every_tenth_statement_is_whole_or_nothing(
    killer: Killer, tmp_path: Path, verb: str
) -> None:
    assert kill_through(killer, tmp_path, verb, 10, 3) > 0


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_killed_at_any_statement_is_whole_or_nothing(
    killer: Killer, tmp_path: Path, verb: str
) -> None:
    assert kill_through(killer, tmp_path, verb, 1, 1) > 2
