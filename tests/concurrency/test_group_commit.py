"""Group commit under many threads and processes: nothing acknowledged is lost, nobody starves, no one harms another."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from memory_git.domain.errors import Clash, Unavailable
from memory_git.storage import writer
from memory_git.storage.lock import WriterLock
from memory_git.storage.sqlite import Connection, Database, Schema, SqliteSettings

SCHEMA = Schema(
    "lethe",
    ("CREATE TABLE row (who INTEGER, number INTEGER, PRIMARY KEY (who, number)) STRICT;"
     "CREATE TABLE head (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT",),
)  # fmt: skip

PROCESS = """
import sys, pathlib
sys.path.insert(0, sys.argv[1])
from test_group_commit import SCHEMA, Database
database = Database.open(pathlib.Path(sys.argv[2]), SCHEMA)
who, count = int(sys.argv[3]), int(sys.argv[4])
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    database.write(lambda c: c.execute("INSERT INTO row VALUES (?, ?)", (who, number)))
    print(number, flush=True)
database.close()
"""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database.open(tmp_path / "lethe.db", SCHEMA)
    yield opened
    opened.close()


def insert(who: int, number: int) -> Callable[[Connection], None]:
    return lambda connection: connection.execute("INSERT INTO row VALUES (?, ?)", (who, number))


def rows(database: Database) -> list[tuple[int, int]]:
    with database.read() as connection:
        return connection.rows("SELECT who, number FROM row ORDER BY who, number")


def in_threads(count: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(who,)) for who in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def held(database: Database) -> tuple[threading.Thread, threading.Event]:
    """Keeps the writer inside one work, so that what comes meanwhile makes one batch."""
    begun, go_on = threading.Event(), threading.Event()

    def wait(_: Connection) -> None:
        begun.set()
        go_on.wait(30)

    thread = threading.Thread(target=lambda: database.write(wait))
    thread.start()
    begun.wait(30)
    return thread, go_on


def test_what_32_threads_write_is_all_there(database: Database) -> None:
    def work(who: int) -> None:
        for number in range(50):
            database.write(insert(who, number))

    in_threads(32, work)
    assert rows(database) == [(who, number) for who in range(32) for number in range(50)]


def test_one_refusal_in_a_batch_harms_no_other(database: Database) -> None:
    refused: list[int] = []

    def work(who: int) -> None:
        def move(connection: Connection) -> None:
            insert(who, 0)(connection)
            if who % 3 == 0:
                raise Clash("ref_moved", "the head moved", current_head=str(who))

        try:
            database.write(move)
        except Clash as clash:
            assert clash.facts == {"current_head": str(who)}
            refused.append(who)

    first, go_on = held(database)
    threads = [threading.Thread(target=work, args=(who,)) for who in range(30)]
    for thread in threads:
        thread.start()
    go_on.set()
    for thread in (first, *threads):
        thread.join(30)
    assert sorted(refused) == list(range(0, 30, 3))
    assert [who for who, _ in rows(database)] == [who for who in range(30) if who % 3]


def test_rows_kept_back_by_many_works_of_a_batch_are_those_of_the_works_that_stand(
    database: Database,
) -> None:
    """Every third work is refused, half of those after it wrote what the others had kept back."""

    def one(number: int) -> Callable[[Connection], None]:
        def work(connection: Connection) -> None:
            connection.execute_later("INSERT INTO row VALUES (?, ?)", [(0, number)])
            if number % 6 == 0:
                connection.settle()
            if number % 3 == 0:
                raise Clash("ref_moved", "somebody else was first")

        return work

    def run(who: int) -> None:
        for number in range(who * 60, who * 60 + 60):
            if number % 3:
                database.write(one(number))
            else:
                with pytest.raises(Clash):
                    database.write(one(number))

    in_threads(8, run)
    assert rows(database) == [(0, number) for number in range(480) if number % 3]


def test_who_was_refused_is_answered_before_who_was_not(database: Database) -> None:
    """Else who wins a contended ref is the first to know its new head, and wins again."""
    told: list[int] = []

    def work(number: int) -> Callable[[Connection], None]:
        def move(connection: Connection) -> None:
            insert(number, 0)(connection)
            if number % 2:
                raise Clash("ref_moved", "somebody else was first")

        return move

    first, go_on = held(database)
    answers = [
        database.write_soon(work(number), lambda number=number: told.append(number)) for number in range(6)
    ]
    go_on.set()
    first.join(30)
    for number, answer in enumerate(answers):
        if number % 2:
            with pytest.raises(Clash):
                answer()
        else:
            answer()
    assert told == [1, 3, 5, 0, 2, 4]


def test_a_compare_and_swap_has_exactly_one_winner_a_round(database: Database) -> None:
    database.write(lambda c: c.execute("INSERT INTO head VALUES ('main', 0)"))
    won: list[int] = []

    def work(_: int) -> None:
        for expected in range(40):

            def swap(connection: Connection, expected: int = expected) -> int:
                connection.execute("UPDATE head SET value = value + 1 WHERE value = ?", (expected,))
                return connection.changes()

            if database.write(swap):
                won.append(expected)

    in_threads(8, work)
    assert sorted(won) == list(range(40))


def test_requests_that_wait_share_one_commit(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "BATCH_S", 30.0)
    commits: list[int] = []
    seen_together: list[int] = []

    def work(who: int) -> None:
        def note(connection: Connection) -> None:
            insert(who, 0)(connection)
            connection.after_commit(lambda: commits.append(who))
            connection.after_commit(lambda: seen_together.append(len(rows(database))))

        database.write(note)

    first, go_on = held(database)
    threads = [threading.Thread(target=work, args=(who,)) for who in range(20)]
    for thread in threads:
        thread.start()
    while database.waiting < 20:
        pass
    go_on.set()
    for thread in (first, *threads):
        thread.join(30)
    assert sorted(commits) == list(range(20))
    assert set(seen_together) == {20}


@pytest.mark.slow
def test_processes_lose_nothing_and_none_starves(tmp_path: Path) -> None:
    path, count = tmp_path / "lethe.db", 200
    arguments = [sys.executable, "-c", PROCESS, str(Path(__file__).parent), str(path)]
    pipe = subprocess.PIPE
    children = [
        subprocess.Popen([*arguments, str(who), str(count)], stdin=pipe, stdout=pipe, text=True)
        for who in range(3)
    ]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    order: list[int] = []

    def follow(who: int) -> None:
        child = children[who]
        child.stdin.write("go\n")
        child.stdin.flush()
        for _ in child.stdout:
            order.append(who)

    in_threads(3, follow)
    assert [child.wait(30) for child in children] == [0, 0, 0]
    for child in children:
        child.stdin.close()
        child.stdout.close()
    database = Database.open(path, SCHEMA)
    assert rows(database) == [(who, number) for who in range(3) for number in range(count)]
    database.close()
    when_the_first_was_done = Counter(order[: min(_last(order, who) for who in range(3))])
    assert min(when_the_first_was_done[who] for who in range(3)) > count / 3


def _last(order: list[int], who: int) -> int:
    return len(order) - order[::-1].index(who)


def test_a_lock_that_another_process_keeps_is_waited_for_a_bounded_time_only(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "lethe.db", SCHEMA, SqliteSettings(busy_timeout_ms=50))
    other = WriterLock(database.path)
    assert other.acquire(1)
    with pytest.raises(Unavailable) as caught:
        database.write(insert(1, 1))
    assert caught.value.code == "busy"
    assert caught.value.facts["retry_after_s"] >= 1
    other.release()
    database.write(insert(1, 2))
    assert rows(database) == [(1, 2)]
    other.close()
    database.close()


def test_who_gave_up_waiting_keeps_the_lock_from_nobody(tmp_path: Path) -> None:
    first, second, third = (WriterLock(tmp_path / "lethe.db") for _ in range(3))
    assert first.acquire(1)
    assert not second.acquire(0.02)
    first.release()
    assert third.acquire(10)
    third.release()
    for lock in (first, second, third):
        lock.close()


def wait_until_someone_is_next(path: Path) -> None:
    with path.with_name(path.name + ".turn").open() as turn:
        while True:
            try:
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            fcntl.flock(turn, fcntl.LOCK_UN)


def test_who_has_just_written_waits_behind_who_waits(tmp_path: Path) -> None:
    path = tmp_path / "lethe.db"
    first, second = WriterLock(path), WriterLock(path)
    order: list[str] = []
    assert first.acquire(1)

    def take_second() -> None:
        assert second.acquire(10)
        order.append("second")
        second.release()

    waiting = threading.Thread(target=take_second)
    waiting.start()
    wait_until_someone_is_next(path)
    first.release()
    assert first.acquire(10)
    order.append("first")
    first.release()
    waiting.join(10)
    assert order == ["second", "first"]
    first.close()
    second.close()


def test_another_program_that_holds_the_database_makes_it_busy_not_broken(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "lethe.db", SCHEMA, SqliteSettings(busy_timeout_ms=50))
    other = apsw.Connection(str(database.path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable) as caught:
        database.write(insert(1, 1))
    assert caught.value.code == "busy"
    other.execute("COMMIT")
    other.close()
    database.write(insert(1, 1))
    database.close()
