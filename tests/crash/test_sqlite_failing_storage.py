"""A full disk, a failing sync, a damaged page: refused, never guessed, and nothing acknowledged is lost."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from memory_git.domain.errors import Unavailable
from memory_git.storage.sqlite import Connection, Database, Schema, SqliteSettings

SCHEMA = Schema("lethe", ("CREATE TABLE kept (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT",))
ONLY_COMMITS = SqliteSettings(autocheckpoint_pages=1_000_000)


class FailingDisk(apsw.VFS):
    """SQLite's own file layer, whose syncs of chosen files fail on demand, as a dying disk's do."""

    def __init__(self) -> None:
        super().__init__("failing-disk", "unix", makedefault=True)
        self.failing = ""
        self.synced: list[str] = []

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return FailingFile(self, name, flags)


class FailingFile(apsw.VFSFile):
    def __init__(self, disk: FailingDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self.disk = disk
        self.name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)

    def xSync(self, flags: int) -> None:
        if self.disk.failing and self.name.endswith(self.disk.failing):
            error = apsw.IOError("the sync failed")
            error.extendedresult = apsw.SQLITE_IOERR_FSYNC
            raise error
        super().xSync(flags)


@pytest.fixture
def disk() -> Iterator[FailingDisk]:
    failing = FailingDisk()
    yield failing
    failing.unregister()
    apsw.set_default_vfs("unix")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = tmp_path / "small"
    mount.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mount)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("a small disk takes the right to mount")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def keep(connection: Connection, number: int, body: str = "x") -> None:
    connection.execute("INSERT INTO kept VALUES (?, ?)", (number, body))


def kept(database: Database) -> list[int]:
    with database.read() as connection:
        return [row[0] for row in connection.rows("SELECT id FROM kept ORDER BY id")]


def refusal(database: Database, number: int, body: str = "x") -> Unavailable:
    with pytest.raises(Unavailable) as caught:
        database.write(lambda connection: keep(connection, number, body))
    return caught.value


def test_a_failing_sync_of_a_commit_refuses_it_and_ends_the_writing(
    tmp_path: Path, disk: FailingDisk
) -> None:
    database = Database.open(tmp_path / "lethe.db", SCHEMA, ONLY_COMMITS)
    database.write(lambda connection: keep(connection, 1))
    disk.failing = "-wal"
    assert refusal(database, 2).code == "storage_failed"
    disk.failing = ""
    assert refusal(database, 3).code == "storage_failed"
    with pytest.raises(Unavailable):
        database.check()
    assert kept(database) == [1]
    database.close()
    again = Database.open(tmp_path / "lethe.db", SCHEMA)
    assert set(kept(again)) in ({1}, {1, 2})
    again.write(lambda connection: keep(connection, 4))
    assert 4 in kept(again)
    again.close()


def test_a_failing_sync_refuses_every_request_of_the_batch(tmp_path: Path, disk: FailingDisk) -> None:
    database = Database.open(tmp_path / "lethe.db", SCHEMA, ONLY_COMMITS)
    begun, go_on, codes = threading.Event(), threading.Event(), []

    def slow(connection: Connection) -> None:
        keep(connection, 0)
        begun.set()
        go_on.wait(30)

    def write(work: object) -> None:
        try:
            database.write(work)  # type: ignore[arg-type]
        except Unavailable as error:
            codes.append((error.code, id(error)))

    disk.failing = "-wal"
    works = [slow, *(lambda connection, n=n: keep(connection, n) for n in range(1, 9))]
    threads = [threading.Thread(target=write, args=(work,)) for work in works]
    threads[0].start()
    begun.wait(30)
    for thread in threads[1:]:
        thread.start()
    while database.waiting < 8:
        pass
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert [code for code, _ in codes] == ["storage_failed"] * 9
    assert kept(database) == []
    database.close()


def test_a_failing_sync_of_a_checkpoint_ends_the_writing_and_keeps_the_wal(
    tmp_path: Path, disk: FailingDisk
) -> None:
    database = Database.open(tmp_path / "lethe.db", SCHEMA)
    disk.failing = "lethe.db"
    number = 0
    with pytest.raises(Unavailable) as caught:
        while True:
            database.write(lambda connection, number=number: keep(connection, number))
            number += 1
    assert caught.value.code == "storage_failed"
    database.close()
    assert (tmp_path / "lethe.db-wal").stat().st_size > 0
    disk.failing = ""
    again = Database.open(tmp_path / "lethe.db", SCHEMA)
    assert kept(again) == list(range(number))
    again.close()


def test_a_sync_that_fails_at_the_start_refuses_to_open(tmp_path: Path, disk: FailingDisk) -> None:
    disk.failing = "lethe.db.new"
    with pytest.raises(Unavailable) as caught:
        Database.open(tmp_path / "lethe.db", SCHEMA)
    assert caught.value.code == "storage_failed"
    assert not (tmp_path / "lethe.db").exists()


def test_a_full_disk_refuses_and_writing_goes_on_when_there_is_room(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(b"f" * 1_200_000)
    database = Database.open(small_disk / "lethe.db", SCHEMA)
    acknowledged = []
    error = None
    for number in range(1000):
        try:
            database.write(lambda connection, number=number: keep(connection, number, "b" * 5000))
        except Unavailable as found:
            error = found
            break
        acknowledged.append(number)
    assert error is not None
    assert error.code == "storage_full"
    assert error.facts["retry_after_s"] > 0
    assert kept(database) == acknowledged
    database.check()
    filler.unlink()
    database.write(lambda connection: keep(connection, 5000, "b" * 5000))
    database.close()
    again = Database.open(small_disk / "lethe.db", SCHEMA)
    assert kept(again) == [*acknowledged, 5000]
    again.close()


def test_one_request_too_large_for_the_disk_leaves_room_for_the_next(small_disk: Path) -> None:
    database = Database.open(small_disk / "lethe.db", SCHEMA)
    assert refusal(database, 1, "b" * 5_000_000).code == "storage_full"
    database.write(lambda connection: keep(connection, 2))
    assert kept(database) == [2]
    database.close()


def test_a_damaged_page_met_while_writing_ends_the_writing_even_if_the_work_swallows_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lethe.db"
    database = Database.open(path, SCHEMA)
    database.write(lambda connection: [keep(connection, number, "b" * 900) for number in range(300)])
    database.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xa5" * (len(whole) - 8192))
    shutil.copy(path, tmp_path / "as-found.db")
    damaged = Database.open(path, SCHEMA)

    def swallow(connection: Connection) -> None:
        try:
            connection.rows("SELECT body FROM kept")
        except Unavailable:
            keep(connection, 1000)

    with pytest.raises(Unavailable) as caught:
        damaged.write(swallow)
    assert caught.value.code == "storage_failed"
    assert refusal(damaged, 1001).code == "storage_failed"
    damaged.close()
    assert path.read_bytes() == (tmp_path / "as-found.db").read_bytes()
