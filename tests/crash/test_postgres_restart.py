"""The database server stops, crashes and comes back under load: nothing acknowledged is lost, nothing is written twice (5-lethe, writing).

Each test has a server of its own, for it stops it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from postgres_server import Server, new_server, new_standby
from store_world import KEYS, PROJECT, StoreWorld, add

from memory_git.domain.errors import Unavailable
from memory_git.lethe.store import LetheStore
from memory_git.storage import postgres as engine
from memory_git.storage.lethe_schema import SCHEMA
from memory_git.storage.postgres_migrate import migrate
from memory_git.storage.postgres_url import DatabaseUrl

WRITERS = 4
pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[Server]:
    made = new_server()
    yield made
    made.close()


@pytest.fixture
def world(server: Server) -> Iterator[StoreWorld]:
    migrate(DatabaseUrl.parse(server.url, SCHEMA.name), SCHEMA)
    made = StoreWorld(server.url)
    yield made
    made.close()


class Load:
    """Threads that commit, each on a ref of its own, and ask again under the same key when they were told to."""

    def __init__(self, world: StoreWorld) -> None:
        self.world = world
        self.acknowledged: list[list[str]] = [[] for _ in range(WRITERS)]
        self.refusals: list[str] = []
        self.failures: list[BaseException] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._guarded, args=(who,)) for who in range(WRITERS)]
        for thread in self._threads:
            thread.start()

    def wait_for_more(self, count: int) -> None:
        """Returns once each writer was answered so many times more."""
        before = [len(made) for made in self.acknowledged]
        until = time.monotonic() + 60
        while any(len(made) < least + count for made, least in zip(self.acknowledged, before, strict=True)):
            assert not self.failures, self.failures
            assert time.monotonic() < until, "the writers got nowhere"
            self._stop.wait(0.01)

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        assert self.failures == []

    def _guarded(self, who: int) -> None:
        try:
            self._commit(who)
        except BaseException as error:
            self.failures.append(error)

    def _commit(self, who: int) -> None:
        head, number = self.world.root, 0
        while not self._stop.is_set():
            op = add(f"{who}/{number}", f"writer {who} says {number}")
            request = self.world.request(f"refs/topics/t{who}", [head], op, idempotency_key=f"{who}-{number}")
            try:
                made, _ = self.world.store.create_changeset(request)
            except Unavailable as refusal:
                self.refusals.append(refusal.code)
                continue
            head, number = made["changeset_id"], number + 1
            self.acknowledged[who].append(head)


def _require_whole(world: StoreWorld, load: Load) -> None:
    """Requires that a ref holds what was acknowledged, in that order and once, and perhaps one more that was cut off unanswered."""
    for who, made in enumerate(load.acknowledged):
        log = world.store.ref_log(PROJECT, f"refs/topics/t{who}")
        heads = [move["to_head"] for move in log]
        assert heads[: len(made)] == made
        assert len(heads) <= len(made) + 1
    assert world.faults() == []


@pytest.mark.parametrize("mode", ["immediate", "fast"])
def test_a_server_that_restarts_under_load_loses_nothing_that_was_acknowledged(
    server: Server, world: StoreWorld, mode: str
) -> None:
    load = Load(world)
    for _ in range(4):
        load.wait_for_more(5)
        server.stop(mode)
        server.start()
    load.wait_for_more(5)
    load.end()
    assert set(load.refusals) <= {"database_unreachable", "outcome_unknown", "busy"}
    _require_whole(world, load)


def test_every_connection_cut_by_the_server_is_made_anew_and_the_work_runs_again(
    server: Server, world: StoreWorld
) -> None:
    load = Load(world)
    with psycopg.connect(server.url, autocommit=True) as connection:
        for _ in range(20):
            load.wait_for_more(1)
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND application_name = 'memory-git'"
            )
    load.end()
    assert load.refusals == []
    _require_whole(world, load)


def test_a_server_that_stays_away_is_a_clear_503_and_work_goes_on_when_it_is_back(
    server: Server, world: StoreWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "RECONNECT_S", 0.3)
    head = world.commit("refs/topics/t", world.root, add("a", "one"))
    server.stop("fast")
    for refused in (
        lambda: world.commit("refs/topics/t", head, add("b", "two")),
        lambda: world.store.resolve_ref(PROJECT, "refs/topics/t"),
        world.store.ready,
    ):
        with pytest.raises(Unavailable) as caught:
            refused()
        assert (caught.value.code, caught.value.facts) == ("database_unreachable", {"retry_after_s": 1})
    with pytest.raises(Unavailable, match="can't be reached"):
        LetheStore.open(server.url, merge_keys=KEYS)
    server.start()
    assert world.head("refs/topics/t") == head
    assert world.commit("refs/topics/t", head, add("b", "two")) == world.head("refs/topics/t")


def test_a_standby_that_takes_over_has_everything_that_was_acknowledged(server: Server) -> None:
    standby = new_standby(server)
    try:
        migrate(DatabaseUrl.parse(server.url, SCHEMA.name), SCHEMA)
        world = StoreWorld(f"postgresql://memory@127.0.0.1:{server.port},127.0.0.1:{standby.port}/postgres")
        load = Load(world)
        load.wait_for_more(10)
        server.stop("immediate")
        standby.promote()
        load.wait_for_more(10)
        load.end()
        assert set(load.refusals) <= {"database_unreachable", "outcome_unknown", "busy"}
        _require_whole(world, load)
        world.close()
    finally:
        standby.close()


@pytest.mark.parametrize(
    "setting",
    ["synchronous_commit = off", "synchronous_commit = local", "full_page_writes = off", "fsync = off"],
)
def test_a_server_that_could_lose_a_commit_is_refused(setting: str) -> None:
    name, value = setting.split(" = ")
    server = new_server(**{name: value})
    try:
        migrate(DatabaseUrl.parse(server.url, SCHEMA.name), SCHEMA)
        with pytest.raises(Unavailable) as caught:
            LetheStore.open(server.url, merge_keys=KEYS)
        assert (caught.value.code, setting in caught.value.message) == ("weak_durability", True)
    finally:
        server.close()
