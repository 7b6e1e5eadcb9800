"""Eight processes that commit to branches of their own and are killed at random: what was acknowledged is there, and nobody was refused.

`lost_acknowledged`: changesets that a writer was told are durable and that its branch does not hold afterwards.
`spurious_refusals`: refusals of writers whose branch and memories nobody else touches.
Each process has four threads (`bench.writers own`). About every second one is killed with SIGKILL and started again, until enough
is acknowledged; then all are killed, and the store is opened, verified and read. On SQLite, and on PostgreSQL, whose server crashes
and comes back now and then: what it refuses meanwhile by name is not spurious.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from bench.alternating import Json
from bench.figures import Figure, progress
from bench.fixtures import Fixtures
from bench.ours import PROJECT
from bench.processes import ROOT
from bench.writers import AWAY
from memory_git.lethe.store import LetheStore
from memory_git.storage.lethe_schema import SCHEMA
from memory_git.storage.postgres_migrate import migrate
from memory_git.storage.postgres_url import DatabaseUrl

sys.path.insert(0, str(ROOT / "tests" / "support"))

from postgres_server import Server, new_server  # type: ignore[import-not-found]

_PROCESSES, _LANES = 8, 4
_QUICK = {"sqlite": 4_000, "postgresql": 2_000}
_FULL = {"sqlite": 40_000, "postgresql": 13_000}
_CRASH_EVERY = 5
_BETWEEN_KILLS_S = 0.8
_LONGEST_S = 600.0


class _Writers:
    """Some processes of `bench.writers own`, and what they were told."""

    def __init__(self, place: Path | str) -> None:
        self._place = place
        self._lock = threading.Lock()
        self.acknowledged: list[tuple[str, str]] = []
        self.refused: Counter[str] = Counter()
        self.killed = 0
        self._readers: list[threading.Thread] = []
        self._children = [self._start(who) for who in range(_PROCESSES)]

    def _start(self, who: int) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-m", "bench.writers", "own", str(self._place), str(who), str(_LANES)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        reader = threading.Thread(target=self._read, args=(child,))
        reader.start()
        self._readers.append(reader)
        return child

    def _read(self, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None
        for line in child.stdout:
            if not line.endswith("\n"):
                continue  # cut by the kill
            word, name, *ref = line.split()
            with self._lock:
                if word == "acknowledged":
                    self.acknowledged.append((name, ref[0]))
                else:
                    self.refused[name] += 1
        child.stdout.close()

    def kill_one(self, who: int) -> None:
        """Kills a process where it stands and starts it again."""
        self._end(who)
        self._children[who] = self._start(who)

    def end(self) -> None:
        """Kills all, and reads what they said to its end."""
        for who in range(_PROCESSES):
            self._end(who)
        for reader in self._readers:
            reader.join()

    def _end(self, who: int) -> None:
        self._children[who].kill()
        self._children[who].wait()
        self.killed += 1


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    folder = fixtures.scratch / "durability"
    folder.mkdir()
    wanted = _QUICK if quick else _FULL
    runs = [_trial("sqlite", folder, wanted["sqlite"], None)]
    server = new_server()
    try:
        url = f"{server.url}?schema=durability"
        migrate(DatabaseUrl.parse(url, SCHEMA.name), SCHEMA)
        runs.append(_trial("postgresql", url, wanted["postgresql"], server))
    finally:
        server.close()
    count, lost, spurious = (
        sum(item[name] for item in runs) for name in ("acknowledged", "lost", "spurious")
    )
    note = "; ".join(
        f"{item['engine']}: {item['acknowledged']:,} acknowledged, {item['killed']} processes killed, {item['crashes']} server crashes"
        for item in runs
    )
    progress(f"lost_acknowledged {lost}, spurious_refusals {spurious} ({note})")
    return [
        Figure("lost_acknowledged", lost, count, runs, note=note),
        Figure("spurious_refusals", spurious, count, runs, note=note),
    ]


def _trial(engine: str, place: Path | str, wanted: int, server: Server | None) -> Json:
    """Lets the writers write on one engine, and tells what was lost."""
    store = _opened(place)
    store.init_project(PROJECT)
    store.close()
    writers, crashes = _write(place, wanted, server)
    lost, faults = _missing(place, writers.acknowledged)
    assert not faults, f"verify finds faults: {faults[:3]}"
    spurious = {code: count for code, count in writers.refused.items() if not (server and code in AWAY)}
    return {
        "engine": engine,
        "acknowledged": len(writers.acknowledged),
        "killed": writers.killed,
        "crashes": crashes,
        "lost": len(lost),
        "lost_names": lost[:20],
        "spurious": sum(spurious.values()),
        "refused": dict(writers.refused),
    }


def _write(place: Path | str, wanted: int, server: Server | None) -> tuple[_Writers, int]:
    """Lets the writers write until enough is acknowledged, killing one after the other, and the server at times."""
    draw = random.Random(8)
    writers = _Writers(place)
    until = time.monotonic() + _LONGEST_S
    kills = crashes = 0
    try:
        while len(writers.acknowledged) < wanted and time.monotonic() < until:
            time.sleep(_BETWEEN_KILLS_S * draw.uniform(0.5, 1.5))
            writers.kill_one(draw.randrange(_PROCESSES))
            kills += 1
            if server is not None and kills % _CRASH_EVERY == 2:
                server.stop("immediate")
                server.start()
                crashes += 1
    finally:
        writers.end()
    return writers, crashes


def _missing(place: Path | str, acknowledged: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Gives what was acknowledged and is not there, and what verify finds."""
    store = _opened(place)
    held = {row["ref_name"]: _log(store, row["ref_name"]) for row in store.list_refs(PROJECT)}
    faults = [
        f"{fault['kind']} {fault['object_id']}: {fault['why']}" for fault in store.verify(PROJECT)["faults"]
    ]
    store.close()
    return [name for name, ref in acknowledged if name not in held.get(ref, set())], faults


def _opened(place: Path | str) -> LetheStore:
    return LetheStore.open(place / "lethe.db" if isinstance(place, Path) else place, merge_keys=None)


def _log(store: LetheStore, ref: str) -> set[str]:
    """Gives every changeset that a branch holds."""
    found: set[str] = set()
    before = None
    while True:
        page = store.log(PROJECT, ref, limit=200, before=before)
        found |= {item["changeset_id"] for item in page["changesets"]}
        before = page.get("next")
        if before is None:
            return found
