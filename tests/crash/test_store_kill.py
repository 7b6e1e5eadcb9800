"""SIGKILL while the store commits and merges: every acknowledged changeset is there, and `verify` finds nothing (11-acceptance, the end)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from store_world import PROJECT, StoreWorld

SUPPORT = Path(__file__).parent.parent / "support"
CHILD = """
import os, pathlib, signal, sys, threading
sys.path.insert(0, sys.argv[1])
import apsw
from store_world import StoreWorld, add, correct, edge

turn, fatal = sys.argv[3], int(sys.argv[4])
statements = 0

def count(_):
    global statements
    statements += 1
    if statements == fatal:
        os.kill(os.getpid(), signal.SIGKILL)

def watch(connection):
    connection.trace_v2(apsw.SQLITE_TRACE_STMT, count)

world = StoreWorld(pathlib.Path(sys.argv[2]))
lock = threading.Lock()
if fatal:
    world.store.close()
    apsw.connection_hooks.append(watch)
    world.store = world._open()

def say(*words):
    with lock:
        sys.stdout.write(" ".join(words) + "\\n")
        sys.stdout.flush()

def work(who):
    ref = f"refs/agents/a{who}/t{turn}"
    head = world.head()
    first = f"{turn}/{who}/first"
    head = world.commit(ref, head, add(first, "the first"), author=f"a{who}")
    number = 0
    while True:
        name, side = f"{turn}/{who}/{number}", f"refs/topics/side{who}.{turn}.{number}"
        head = world.commit(ref, head, add(name, f"text of {name}"), author=f"a{who}")
        say("changeset", head, ref)
        other = world.commit(side, head, correct(name, title="t"), author=f"a{who}")
        say("changeset", other, side)
        head = world.commit(ref, head, correct(name, tags=["x"]), edge(name, first), author=f"a{who}")
        say("changeset", head, ref)
        head = world.commit(ref, [head, other], author=f"a{who}")
        say("changeset", head, ref)
        if who == 0:
            world.merge(head)
            say("merged", head)
        number += 1
        if fatal and number == 2:
            os._exit(0)

threads = [threading.Thread(target=work, args=(who,)) for who in range(1 if fatal else 3)]
for thread in threads:
    thread.start()
"""


def run(folder: Path, turn: str, fatal: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", CHILD, str(SUPPORT), str(folder), turn, str(fatal)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def check(folder: Path, lines: list[str]) -> int:
    """Checks the store against what was acknowledged, and gives how many changesets that were."""
    said = [line.split() for line in lines if line.endswith("\n")]
    world = StoreWorld(folder)
    try:
        assert world.faults() == []
        for word, name, *ref in said:
            assert world.store.get_changeset(name)["changeset_id"] == name
            within = world.head(ref[0] if ref else "refs/shared/main")
            assert world.store.is_ancestor(PROJECT, name, within), (word, name)
        merged = {name for word, name, *_ in said if word == "merged"}
        assert merged <= {row["to_head"] for row in world.store.list_advances(PROJECT)}
        heads = {row["ref_name"]: row["head_changeset_id"] for row in world.store.list_refs(PROJECT)}
        for ref, head in heads.items():
            assert world.store.ref_log(PROJECT, ref)[-1]["to_head"] == head
            assert world.store.memories(PROJECT, head)["total"] >= 0
    finally:
        world.close()
    return len(said)


@pytest.mark.slow
def test_everything_acknowledged_survives_sigkill_round_after_round(tmp_path: Path) -> None:
    acknowledged = 0
    for turn, count in enumerate((1, 17, 60, 150)):
        with run(tmp_path, str(turn), 0) as child:
            assert child.stdout is not None
            lines = [child.stdout.readline() for _ in range(count)]
            child.kill()
            lines += child.stdout.readlines()
        acknowledged += check(tmp_path, lines)
    assert acknowledged >= 228


def killed_at(folder: Path, statement: int) -> bool:
    """Kills a child at its n-th statement and checks the store; False when the child came to its end."""
    with run(folder, f"n{statement}", statement) as child:
        assert child.stdout is not None
        lines = child.stdout.readlines()
        code = child.wait(60)
    check(folder, lines)
    assert code in (-9, 0)
    return code == -9


@pytest.mark.slow
@pytest.mark.parametrize("statement", [1, 2, 9, 23, 38, 57, 71, 96])
def test_a_kill_at_a_statement_leaves_the_whole_or_nothing(tmp_path: Path, statement: int) -> None:
    assert killed_at(tmp_path, statement)


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_kill_at_any_statement_until_the_work_is_done(tmp_path: Path) -> None:
    statement = 1
    folder = tmp_path / "1"
    folder.mkdir()
    while killed_at(folder, statement):
        statement += 1
        folder = tmp_path / str(statement)
        folder.mkdir()
    assert statement > 100
