"""SIGKILL in the middle of writing: what was acknowledged is there, and nothing half done is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memory_git.storage.sqlite import Connection, Database, Schema

SCHEMA = Schema(
    "lethe",
    (
        "CREATE TABLE pair (who INTEGER, number INTEGER, side INTEGER, PRIMARY KEY (who, number, side)) STRICT",
    ),
)
WRITERS = 8
CHILD = """
import pathlib, sys, threading
sys.path.insert(0, sys.argv[1])
from test_sqlite_kill import SCHEMA, WRITERS, Database, write_pair
database = Database.open(pathlib.Path(sys.argv[2]), SCHEMA)
start = int(sys.argv[3])

def work(who):
    number = start
    while True:
        database.write(lambda c: write_pair(c, who, number))
        sys.stdout.write(f"{who} {number}\\n")
        sys.stdout.flush()
        number += 1

for who in range(WRITERS):
    threading.Thread(target=work, args=(who,)).start()
"""
SELF_KILL = """
import os, pathlib, signal, sys
sys.path.insert(0, sys.argv[1])
from test_sqlite_kill import SCHEMA, Database, write_pair
database = Database.open(pathlib.Path(sys.argv[2]), SCHEMA)
database.write(lambda c: write_pair(c, 0, 0))
die = lambda: os.kill(os.getpid(), signal.SIGKILL)
def work(c):
    if sys.argv[3] == "in the work":
        c.execute("INSERT INTO pair VALUES (1, 1, 0)")
        die()
    write_pair(c, 1, 1)
    c.after_commit(die)
database.write(work)
"""


def write_pair(connection: Connection, who: int, number: int) -> None:
    for side in (0, 1):
        connection.execute("INSERT INTO pair VALUES (?, ?, ?)", (who, number, side))


def run(code: str, path: Path, last: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", code, str(Path(__file__).parent), str(path), last]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def killed_after(path: Path, start: int, lines: int) -> set[tuple[int, int]]:
    """Gives what a child had acknowledged when it was killed at that many lines, and while it went on."""
    with run(CHILD, path, str(start)) as child:
        read = [child.stdout.readline() for _ in range(lines)]
        child.kill()
        read += child.stdout.readlines()
    whole = [line.split() for line in read if line.endswith("\n")]
    return {(int(who), int(number)) for who, number in whole}


@pytest.mark.slow
def test_every_acknowledged_row_survives_sigkill_round_after_round(tmp_path: Path) -> None:
    path = tmp_path / "lethe.db"
    acknowledged: set[tuple[int, int]] = set()
    for turn, lines in enumerate((1, 40, 333, 1500)):
        acknowledged |= killed_after(path, turn * 1_000_000, lines)
        database = Database.open(path, SCHEMA)
        with database.read() as connection:
            found = connection.rows("SELECT who, number, count(*) FROM pair GROUP BY who, number")
            assert connection.value("PRAGMA integrity_check") == "ok"
        assert {count for _, _, count in found} == {2}
        assert acknowledged <= {(who, number) for who, number, _ in found}
        database.close()
    assert len(acknowledged) >= 1874


@pytest.mark.parametrize(
    ("moment", "expected"), [("in the work", [(0, 0)]), ("after the commit", [(0, 0), (1, 1)])]
)
def test_a_kill_at_a_moment_leaves_the_whole_or_nothing(
    tmp_path: Path, moment: str, expected: list[tuple[int, int]]
) -> None:
    with run(SELF_KILL, tmp_path / "lethe.db", moment) as child:
        assert child.wait(30) == -9
    database = Database.open(tmp_path / "lethe.db", SCHEMA)
    with database.read() as connection:
        found = connection.rows("SELECT who, number FROM pair GROUP BY who, number HAVING count(*) = 2")
    database.close()
    assert found == expected
