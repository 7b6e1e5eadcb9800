"""What is opened, created, migrated, and what is refused before anything is served."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from memory_git.domain.errors import Refused, Unavailable
from memory_git.storage.settings import SqliteSettings, connect, require_sqlite
from memory_git.storage.sqlite import Database, Schema

STEPS = (
    "CREATE TABLE a (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT",
    "CREATE TABLE b (id INTEGER PRIMARY KEY, a INTEGER NOT NULL REFERENCES a (id)) STRICT; INSERT INTO b SELECT id, id FROM a",
    "CREATE TABLE a2 (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT; INSERT INTO a2 SELECT id, body FROM a;"
    "DROP TABLE a; ALTER TABLE a2 RENAME TO a",
)
LETHE = Schema("lethe", STEPS)


def code_of(path: Path, schema: Schema = LETHE, *, read_only: bool = False) -> str:
    with pytest.raises(Unavailable) as caught:
        Database.open(path, schema, read_only=read_only)
    return caught.value.code


def made(path: Path, schema: Schema = LETHE, rows: int = 0) -> Path:
    database = Database.open(path, schema)
    database.write(
        lambda c: c.execute_many("INSERT INTO a VALUES (?, ?)", ((n, "t" * 900) for n in range(rows)))
    )
    database.close()
    return path


@pytest.mark.parametrize("earlier", [0, 1, 2, 3])
def test_every_earlier_schema_with_rows_in_it_is_migrated(tmp_path: Path, earlier: int) -> None:
    path = tmp_path / "lethe.db"
    made(path, Schema("lethe", STEPS[:earlier]), 0 if earlier == 0 else 20) if earlier else None
    database = Database.open(path, LETHE)
    database.check()
    with database.read() as connection:
        assert connection.value("PRAGMA user_version") == 3
        assert connection.value("SELECT count(text) FROM a") == (20 if earlier else 0)
        assert connection.value("PRAGMA foreign_keys") == 1
    database.close()


def test_a_migration_that_fails_leaves_the_schema_before_it(tmp_path: Path) -> None:
    path = made(tmp_path / "lethe.db", Schema("lethe", STEPS[:1]), 3)
    broken = Schema(
        "lethe", (STEPS[0], "CREATE TABLE half (id INTEGER) STRICT; INSERT INTO nowhere VALUES (1)")
    )
    with pytest.raises(apsw.SQLError):
        Database.open(path, broken)
    database = Database.open(path, Schema("lethe", STEPS[:1]))
    with database.read() as connection:
        assert connection.rows("SELECT name FROM sqlite_schema") == [("a",)]
        assert connection.value("SELECT count(*) FROM a") == 3
    database.close()


def test_a_migration_that_leaves_a_foreign_key_open_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path / "lethe.db", Schema("lethe", STEPS[:2]), 3)
    database = Database.open(path, Schema("lethe", STEPS[:2]))
    database.write(lambda c: c.execute("INSERT INTO b VALUES (1, 1)"))
    database.close()
    assert code_of(path, Schema("lethe", (*STEPS[:2], "DELETE FROM a"))) == "migration_failed"


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path / "lethe.db")
    older = Schema("lethe", STEPS[:2])
    assert code_of(path, older) == "schema_newer"
    assert code_of(path, older, read_only=True) == "schema_newer"


def test_a_running_store_whose_schema_another_program_migrates_is_not_ready(tmp_path: Path) -> None:
    path = made(tmp_path / "lethe.db", Schema("lethe", STEPS[:1]))
    running = Database.open(path, Schema("lethe", STEPS[:1]))
    made(path)
    with pytest.raises(Unavailable) as caught:
        running.check()
    assert caught.value.code == "schema_newer"
    running.close()


def test_read_only_refuses_an_older_schema_instead_of_migrating(tmp_path: Path) -> None:
    path = made(tmp_path / "lethe.db", Schema("lethe", STEPS[:1]))
    assert code_of(path, read_only=True) == "schema_older"


def test_read_only_refuses_an_absent_file_and_makes_none(tmp_path: Path) -> None:
    assert code_of(tmp_path / "lethe.db", read_only=True) == "database_absent"
    assert list(tmp_path.iterdir()) == []


def test_another_programs_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    charon = made(tmp_path / "charon.db", Schema("charon", STEPS))
    foreign = tmp_path / "foreign.db"
    connection = apsw.Connection(str(foreign))
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    before = foreign.read_bytes()
    assert code_of(charon) == "wrong_database"
    assert code_of(foreign, read_only=True) == "wrong_database"
    assert foreign.read_bytes() == before
    assert code_of(foreign) == "wrong_database"


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("empty", lambda whole: b""),
        ("cut within the header", lambda whole: whole[:60]),
        ("cut within a page", lambda whole: whole[:10_000]),
        ("cut at a page", lambda whole: whole[: 4096 * 5]),
        ("text", lambda whole: b"not a database, just some words that are long enough" * 100),
        ("a header of noise", lambda whole: whole[:16] + b"\xff" * 84 + whole[100:]),
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_damaged_file_is_refused_with_what_to_do(
    tmp_path: Path, kind: str, change, read_only: bool
) -> None:  # type: ignore[no-untyped-def]
    path = made(tmp_path / "lethe.db", Schema("lethe", STEPS[:1]), 100)
    damaged = change(path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(Unavailable) as caught:
        Database.open(path, Schema("lethe", STEPS[:1]), read_only=read_only)
    assert caught.value.code == "database_unreadable"
    assert "restore it from a backup" in caught.value.message
    assert path.read_bytes() == damaged


def test_a_wal_without_its_database_is_refused_instead_of_started_anew(tmp_path: Path) -> None:
    (tmp_path / "lethe.db-wal").write_bytes(b"7" * 5000)
    assert code_of(tmp_path / "lethe.db") == "database_unreadable"
    assert (tmp_path / "lethe.db-wal").stat().st_size == 5000


def test_what_a_crash_left_of_a_creation_does_not_hinder_the_next(tmp_path: Path) -> None:
    for name in ("lethe.db.new", "lethe.db.new-wal", "lethe.db.new-journal"):
        (tmp_path / name).write_bytes(b"half a database")
    made(tmp_path / "lethe.db", Schema("lethe", STEPS[:1]), 5)
    assert not list(tmp_path.glob("*.new*"))


def test_a_place_that_is_a_directory_or_in_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lethe.db").mkdir()
    (tmp_path / "file").write_text("x")
    assert code_of(tmp_path / "lethe.db") == "database_unreadable"
    assert code_of(tmp_path / "file" / "lethe.db") == "database_unreadable"


@pytest.mark.parametrize("weak", ["OFF", "NORMAL", "", "2"])
def test_a_weaker_synchronous_is_refused(weak: str) -> None:
    with pytest.raises(Refused) as caught:
        SqliteSettings(synchronous=weak)
    assert caught.value.code == "weak_durability"


@pytest.mark.parametrize(
    "settings", [{"busy_timeout_ms": 0}, {"busy_timeout_ms": -1}, {"autocheckpoint_pages": -1}]
)
def test_a_senseless_number_is_refused(settings: dict[str, int]) -> None:
    with pytest.raises(Refused) as caught:
        SqliteSettings(**settings)
    assert caught.value.code == "weak_durability"


@pytest.mark.parametrize(
    "asked", [SqliteSettings(), SqliteSettings("EXTRA", 1234, 1000), SqliteSettings("full")]
)
def test_every_connection_has_the_settings_that_were_asked_for(tmp_path: Path, asked: SqliteSettings) -> None:
    database = Database.open(tmp_path / "lethe.db", LETHE, asked)
    names = (
        "journal_mode",
        "synchronous",
        "foreign_keys",
        "busy_timeout",
        "secure_delete",
        "wal_autocheckpoint",
    )
    expected = [
        "wal",
        3 if asked.synchronous == "EXTRA" else 2,
        1,
        asked.busy_timeout_ms,
        1,
        asked.autocheckpoint_pages,
    ]
    assert database.write(lambda c: [c.value(f"PRAGMA {name}") for name in names]) == expected
    with database.read() as connection:
        assert [connection.value(f"PRAGMA {name}") for name in names] == expected
    database.close()


def test_storage_that_cannot_hold_a_wal_is_refused() -> None:
    with pytest.raises(Unavailable, match="journal_mode") as caught:
        connect(":memory:", SqliteSettings(), read_only=False, cache_kib=64)
    assert caught.value.code == "weak_durability"


@pytest.mark.parametrize("old", ["3.40.1", "3.51.2", "3.7.17"])
def test_a_sqlite_with_the_wal_reset_fault_is_refused(old: str) -> None:
    with pytest.raises(Unavailable) as caught:
        require_sqlite(old)
    assert caught.value.code == "sqlite_too_old"


@pytest.mark.parametrize("good", ["3.51.3", "3.54.1", "4.0"])
def test_a_sqlite_without_it_is_taken(good: str) -> None:
    require_sqlite(good)
