"""The SQLite engine as its callers see it: writes, reads, savepoints, actions, backup, scrub, recovery."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_git.domain.errors import Clash, Invalid, NotFound, Unavailable
from memory_git.storage.errors import ConstraintBroken
from memory_git.storage.sqlite import Connection, Database, Schema

SCHEMA = Schema(
    "lethe",
    (
        "CREATE TABLE kept (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;"
        "CREATE TABLE child (id INTEGER PRIMARY KEY, kept INTEGER REFERENCES kept (id) DEFERRABLE INITIALLY DEFERRED)"
        " STRICT;",
    ),
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database.open(tmp_path / "home" / "lethe.db", SCHEMA)
    yield opened
    opened.close()


def keep(connection: Connection, number: int, body: str = "x") -> int:
    connection.execute("INSERT INTO kept (id, body) VALUES (?, ?)", (number, body))
    return number


def kept(database: Database) -> list[int]:
    with database.read() as connection:
        return [row[0] for row in connection.rows("SELECT id FROM kept ORDER BY id")]


def test_a_write_returns_what_its_work_returns_and_is_read_at_once(database: Database) -> None:
    assert database.write(lambda connection: keep(connection, 7)) == 7
    assert kept(database) == [7]


def test_an_exception_undoes_its_work_alone_and_reaches_its_caller(database: Database) -> None:
    def refused(connection: Connection) -> None:
        keep(connection, 1)
        raise NotFound("absent", "no such memory")

    with pytest.raises(NotFound):
        database.write(refused)
    database.write(lambda connection: keep(connection, 2))
    assert kept(database) == [2]


def test_a_parameter_that_is_no_text_is_refused_and_undoes_its_work_alone(database: Database) -> None:
    def many(connection: Connection) -> None:
        connection.execute_many("INSERT INTO kept (id, body) VALUES (?, ?)", [(1, "x"), (2, "\udcff")])

    def one(connection: Connection) -> None:
        keep(connection, 3, "\ud800")

    for work in (many, one):
        with pytest.raises(Invalid) as refusal:
            database.write(work)
        assert refusal.value.code == "not_text"
    with database.read() as connection, pytest.raises(Invalid):
        connection.value("SELECT id FROM kept WHERE body = ?", ("\udcff",))
    database.write(lambda connection: keep(connection, 4))
    assert kept(database) == [4]


def test_rows_row_value_changes_and_many_agree_with_the_table(database: Database) -> None:
    def work(connection: Connection) -> int:
        connection.execute_many("INSERT INTO kept VALUES (?, ?)", ((n, f"b{n}") for n in range(5)))
        connection.execute("UPDATE kept SET body = 'new' WHERE id >= ?", (3,))
        return connection.changes()

    assert database.write(work) == 2
    with database.read() as connection:
        assert connection.rows("SELECT id, body FROM kept WHERE id > 2") == [(3, "new"), (4, "new")]
        assert connection.row("SELECT body FROM kept WHERE id = ?", (0,)) == ("b0",)
        assert connection.row("SELECT body FROM kept WHERE id = 99") is None
        assert connection.value("SELECT count(*) FROM kept") == 5
        assert connection.value("SELECT body FROM kept WHERE id = 99") is None


def test_an_inner_savepoint_rolls_back_to_itself_with_its_actions(database: Database) -> None:
    done: list[str] = []

    def work(connection: Connection) -> None:
        keep(connection, 1)
        connection.after_commit(lambda: done.append("outer"))
        with pytest.raises(ZeroDivisionError), connection.savepoint():
            keep(connection, 2)
            connection.after_commit(lambda: done.append("inner"))
            with connection.savepoint():
                keep(connection, 3)
            raise ZeroDivisionError
        with connection.savepoint():
            keep(connection, 4)

    database.write(work)
    assert kept(database) == [1, 4]
    assert done == ["outer"]


INSERT = "INSERT INTO kept (id, body) VALUES (?, ?)"


def test_rows_kept_back_are_written_with_their_work_or_when_they_are_asked_for(database: Database) -> None:
    def works(connection: Connection) -> list[int]:
        connection.execute_later(INSERT, [(1, "x"), (2, "x")])
        connection.execute_later(INSERT, [])
        before = connection.value("SELECT count(*) FROM kept")
        connection.settle()
        after = connection.value("SELECT count(*) FROM kept")
        connection.execute_later(INSERT, [(3, "x")])
        return [before, after]

    assert database.write(works) == [0, 2]
    assert kept(database) == [1, 2, 3]


def test_rows_kept_back_in_a_savepoint_that_is_undone_are_dropped_and_earlier_ones_are_not(
    database: Database,
) -> None:
    def works(connection: Connection) -> None:
        connection.execute_later(INSERT, [(1, "x")])
        for settles in (False, True):
            with pytest.raises(NotFound), connection.savepoint():
                connection.execute_later(INSERT, [(2, "x")])
                if settles:
                    connection.settle()  # writes the first row too, and the rollback takes it away again
                raise NotFound("absent", "no such memory")
        connection.execute_later(INSERT, [(3, "x")])

    database.write(works)
    assert kept(database) == [1, 3]


def test_rows_kept_back_that_break_a_rule_lose_their_whole_batch_and_say_so(database: Database) -> None:
    database.write(lambda connection: keep(connection, 1))
    with pytest.raises(Unavailable):
        database.write(lambda connection: connection.execute_later(INSERT, [(1, "again")]))
    database.write(lambda connection: connection.execute_later(INSERT, [(2, "x")]))
    assert kept(database) == [1, 2]


def test_an_action_runs_after_the_commit_and_before_the_answer(database: Database) -> None:
    seen: list[list[int]] = []

    def work(connection: Connection) -> None:
        keep(connection, 1)
        connection.after_commit(lambda: seen.append(kept(database)))
        assert kept(database) == []

    database.write(work)
    assert seen == [[1]]


def test_the_actions_of_an_undone_work_are_dropped(database: Database) -> None:
    done: list[int] = []

    def work(connection: Connection) -> None:
        connection.after_commit(lambda: done.append(1))
        raise KeyError

    with pytest.raises(KeyError):
        database.write(work)
    database.write(lambda connection: keep(connection, 1))
    assert done == []


def test_an_action_that_raises_changes_no_answer(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[int] = []

    def work(connection: Connection) -> int:
        connection.after_commit(seen.pop)
        return keep(connection, 1)

    assert database.write(work) == 1
    assert database.write(lambda connection: keep(connection, 2)) == 2
    assert "IndexError" in caplog.text


def test_a_write_inside_a_write_is_refused_instead_of_waiting_for_itself(database: Database) -> None:
    with pytest.raises(RuntimeError, match="inside a write"):
        database.write(lambda _: database.write(lambda connection: keep(connection, 1)))
    assert database.write(lambda connection: keep(connection, 2)) == 2


def test_a_work_that_ends_the_transaction_is_refused_and_the_writer_goes_on(database: Database) -> None:
    with pytest.raises(Unavailable) as caught:
        database.write(lambda connection: (keep(connection, 1), connection.execute("ROLLBACK")))
    assert caught.value.code == "busy"
    database.write(lambda connection: keep(connection, 2))
    assert kept(database) == [2]


def test_a_constraint_reaches_the_caller_and_can_be_caught_inside(database: Database) -> None:
    def twice(connection: Connection) -> str:
        keep(connection, 1)
        try:
            keep(connection, 1)
        except ConstraintBroken:
            return "known"
        return "new"

    assert database.write(twice) == "known"
    with pytest.raises(ConstraintBroken):
        database.write(lambda connection: keep(connection, 1))


def test_an_open_deferred_foreign_key_fails_its_own_work_only(database: Database) -> None:
    with pytest.raises(ConstraintBroken):
        database.write(lambda connection: connection.execute("INSERT INTO child VALUES (1, 404)"))
    database.write(lambda connection: keep(connection, 1))
    assert kept(database) == [1]


def test_a_read_keeps_its_snapshot_and_a_read_inside_it_has_a_newer_one(database: Database) -> None:
    with database.read() as outer:
        database.write(lambda connection: keep(connection, 1))
        with database.read() as inner:
            assert outer.value("SELECT count(*) FROM kept") == 0
            assert inner.value("SELECT count(*) FROM kept") == 1
        assert outer.value("SELECT count(*) FROM kept") == 0


def test_a_read_can_neither_write_nor_leave_an_action(database: Database) -> None:
    with database.read() as connection:
        with pytest.raises(Unavailable) as caught:
            keep(connection, 1)
        assert caught.value.code == "recovery_readonly"
        with pytest.raises(RuntimeError):
            connection.after_commit(lambda: None)


def test_a_misspelt_column_in_double_quotes_is_an_error_and_no_text(database: Database) -> None:
    with database.read() as connection, pytest.raises(Exception, match="no such column"):
        connection.rows('SELECT "boddy" FROM kept')


def test_files_are_for_their_owner_alone(database: Database) -> None:
    database.write(lambda connection: keep(connection, 1))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in database.path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"lethe.db", "lethe.db-wal", "lethe.db-shm"} <= modes.keys()
    assert stat.S_IMODE(database.path.parent.stat().st_mode) == 0o700


def test_a_clean_close_leaves_everything_in_the_one_file(database: Database, tmp_path: Path) -> None:
    database.write(lambda connection: keep(connection, 1))
    database.close()
    assert not database.path.with_name("lethe.db-wal").exists()
    moved = tmp_path / "elsewhere.db"
    database.path.rename(moved)
    again = Database.open(moved, SCHEMA)
    assert kept(again) == [1]
    again.close()


def test_after_close_every_call_is_refused(database: Database) -> None:
    database.close()
    database.close()
    with pytest.raises(Unavailable), database.read():
        pass
    for call in (database.check, lambda: database.write(lambda connection: None)):
        with pytest.raises(Unavailable) as caught:
            call()
        assert caught.value.code == "closed"


def test_close_answers_the_writes_that_wait(database: Database) -> None:
    begun, go_on = threading.Event(), threading.Event()
    answers: list[int] = []

    def slow(connection: Connection) -> int:
        begun.set()
        go_on.wait(10)
        return keep(connection, 0)

    threads = [threading.Thread(target=lambda: answers.append(database.write(slow)))]
    threads[0].start()
    begun.wait(10)
    closing = threading.Thread(target=database.close)
    closing.start()
    go_on.set()
    for thread in (*threads, closing):
        thread.join(10)
    assert answers == [0]


def test_a_full_queue_refuses_with_when_to_come_back(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_git.storage.writer.QUEUE_REQUESTS", 2)
    begun, go_on = threading.Event(), threading.Event()
    refused: list[Unavailable] = []

    def slow(connection: Connection) -> None:
        begun.set()
        go_on.wait(10)

    def write(number: int) -> None:
        try:
            database.write(lambda connection: keep(connection, number))
        except Unavailable as error:
            refused.append(error)
            go_on.set()

    first = threading.Thread(target=lambda: database.write(slow))
    first.start()
    begun.wait(10)
    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in (first, *threads):
        thread.join(10)
    assert [(error.code, error.facts["retry_after_s"]) for error in refused] == [("busy", 1)]
    assert len(kept(database)) == 2


def test_a_backup_taken_while_writing_is_whole_and_opens_like_the_original(
    database: Database, tmp_path: Path
) -> None:
    database.write(lambda connection: [keep(connection, number) for number in range(500)])
    target = tmp_path / "out" / "copy.db"
    database.write(lambda connection: (keep(connection, 500), database.backup(target)))
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    copy = Database.open(target, SCHEMA, read_only=True)
    assert kept(copy) == list(range(500))
    copy.close()
    with pytest.raises(Clash):
        database.backup(target)


def test_scrub_leaves_no_erased_word_in_the_raw_files(database: Database) -> None:
    word = "planted-" + "q" * 40
    database.write(lambda connection: [keep(connection, number, word * 50) for number in range(200)])
    database.write(lambda connection: connection.execute("DELETE FROM kept WHERE id > 0"))
    database.write(lambda connection: connection.execute("UPDATE kept SET body = ''"))
    database.scrub()
    raw = b"".join(file.read_bytes() for file in database.path.parent.iterdir())
    assert word.encode() not in raw
    database.write(lambda connection: keep(connection, 999))
    assert kept(database) == [0, 999]


def test_read_only_reads_everything_and_changes_no_byte(database: Database) -> None:
    database.write(lambda connection: keep(connection, 1))
    database.close()
    before = database.path.read_bytes()
    recovery = Database.open(database.path, SCHEMA, read_only=True)
    recovery.check()
    assert kept(recovery) == [1]
    for call in (recovery.scrub, lambda: recovery.write(lambda connection: keep(connection, 2))):
        with pytest.raises(Unavailable) as caught:
            call()
        assert caught.value.code == "recovery_readonly"
    recovery.close()
    assert database.path.read_bytes() == before


def test_read_only_reads_what_a_crash_left_in_the_wal_and_leaves_it_there(
    database: Database, tmp_path: Path
) -> None:
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    database.write(lambda connection: keep(connection, 1))
    for name in ("lethe.db", "lethe.db-wal"):
        (crashed / name).write_bytes(database.path.with_name(name).read_bytes())
    before = {file: file.read_bytes() for file in crashed.iterdir()}
    recovery = Database.open(crashed / "lethe.db", SCHEMA, read_only=True)
    assert kept(recovery) == [1]
    recovery.close()
    assert {file: file.read_bytes() for file in before} == before


def test_a_file_replaced_under_a_running_store_stops_the_writing(database: Database) -> None:
    database.write(lambda connection: keep(connection, 1))
    database.path.replace(database.path.with_name("moved.db"))
    with pytest.raises(Unavailable) as caught:
        database.write(lambda connection: keep(connection, 2))
    assert caught.value.code == "storage_failed"
    with pytest.raises(Unavailable):
        database.check()


@pytest.mark.slow
def test_the_wal_stays_bounded_under_writing_that_never_pauses(database: Database) -> None:
    database.write(lambda connection: keep(connection, 1))
    for number in range(400):
        body = chr(ord("a") + number % 26) * 1_000_000
        database.write(lambda connection, body=body: connection.execute("UPDATE kept SET body = ?", (body,)))
    assert database.path.with_name("lethe.db-wal").stat().st_size < 250_000_000
