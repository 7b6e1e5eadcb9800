"""Room in the WAL file ahead of what is written: made when there is much to write, harmless when the process is killed in it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import apsw

from memory_git.storage.sqlite import Database, Schema
from memory_git.storage.wal_room import LEAST_BYTES

SCHEMA = Schema("lethe", ("CREATE TABLE kept (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;",))
PAGE = 4096
FRAME = PAGE + 24


def keep(database: Database, number: int, size: int = 20 * PAGE) -> None:
    database.write(
        lambda connection: connection.execute("INSERT INTO kept VALUES (?, zeroblob(?))", (number, size))
    )


def count(path: Path) -> int:
    database = Database.open(path, SCHEMA)
    try:
        with database.read() as connection:
            assert connection.value("PRAGMA integrity_check") == "ok"
            return int(connection.value("SELECT count(*) FROM kept"))
    finally:
        database.close()


def used_bytes(path: Path) -> int:
    """Gives how much of the WAL file SQLite says is written."""
    driver = apsw.Connection(str(path))
    frames, _ = driver.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    driver.close()
    return 32 + frames * FRAME


def test_who_writes_little_has_a_wal_no_longer_than_what_was_written(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "lethe.db", SCHEMA)
    keep(database, 1)
    assert 0 < (tmp_path / "lethe.db-wal").stat().st_size < LEAST_BYTES
    database.close()


def test_who_writes_much_finds_room_that_was_made_before(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "lethe.db", SCHEMA)
    for number in range(40):
        keep(database, number)
    wal = tmp_path / "lethe.db-wal"
    assert wal.stat().st_size > used_bytes(tmp_path / "lethe.db") + 10 * FRAME
    with wal.open("rb") as file:
        file.seek(-PAGE, os.SEEK_END)
        assert file.read() == bytes(PAGE)
    database.close()
    assert count(tmp_path / "lethe.db") == 40


KILLED = """
import os, pathlib, signal, sys
sys.path.insert(0, sys.argv[1])
from test_wal_room import SCHEMA, Database, keep
database = Database.open(pathlib.Path(sys.argv[2]), SCHEMA)
for number in range(30):
    keep(database, number)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_killed_with_room_left_has_lost_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lethe.db"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(Path(__file__).parent), str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert (tmp_path / "lethe.db-wal").stat().st_size > LEAST_BYTES
    assert count(path) == 30


LIMITED = """
import pathlib, resource, sys
sys.path.insert(0, sys.argv[1])
from test_wal_room import SCHEMA, Database, keep
database = Database.open(pathlib.Path(sys.argv[2]), SCHEMA)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_600_000, resource.RLIM_INFINITY))
for number in range(16):
    keep(database, number)
print((pathlib.Path(sys.argv[2] + "-wal")).stat().st_size)
database.close()
"""


def test_where_there_is_no_room_writing_goes_on_in_a_file_as_long_as_it_was(tmp_path: Path) -> None:
    """The file may grow to 1.6 MB, and making room at 1 MB would double it."""
    path = tmp_path / "lethe.db"
    said = subprocess.run(
        [sys.executable, "-c", LIMITED, str(Path(__file__).parent), str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert LEAST_BYTES < int(said.stdout) < 1_600_000
    assert count(path) == 16


def test_a_wal_that_was_cut_is_given_room_anew(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "lethe.db", SCHEMA)
    wal = tmp_path / "lethe.db-wal"
    for number in range(40):
        keep(database, number)
    database.scrub()
    assert wal.stat().st_size < LEAST_BYTES
    for number in range(40, 80):
        keep(database, number)
    assert wal.stat().st_size > used_bytes(tmp_path / "lethe.db") + 10 * FRAME
    database.close()
    assert count(tmp_path / "lethe.db") == 80


def test_a_process_that_writes_once_into_a_long_wal_makes_no_room(tmp_path: Path) -> None:
    long_lived = Database.open(tmp_path / "lethe.db", SCHEMA)
    for number in range(20):
        keep(long_lived, number)
    before = (tmp_path / "lethe.db-wal").stat().st_size
    once = Database.open(tmp_path / "lethe.db", SCHEMA)
    keep(once, 100)
    once.close()
    assert (tmp_path / "lethe.db-wal").stat().st_size == before
    long_lived.close()
