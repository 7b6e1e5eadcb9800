"""Eight processes that commit to branches of their own and are killed at random: what was acknowledged is there, and nobody was refused.

`lost_acknowledged`: changesets that a writer was told are durable and that its branch does not hold afterwards.
`spurious_refusals`: refusals of writers whose branch and memories nobody else touches.
Each process has four threads (`bench.writers own`). About every second one is killed with SIGKILL and started again, until enough
is acknowledged; then all are killed, and the store is opened, verified and read.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from bench.figures import Figure, progress
from bench.fixtures import Fixtures
from bench.ours import PROJECT
from bench.processes import ROOT
from memory_git.lethe.store import LetheStore

_PROCESSES, _LANES = 8, 4
_QUICK, _FULL = 6_000, 52_000
_BETWEEN_KILLS_S = 0.8
_LONGEST_S = 600.0


class _Writers:
    """Some processes of `bench.writers own`, and what they were told."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self.acknowledged: list[tuple[str, str]] = []
        self.refused: Counter[str] = Counter()
        self.killed = 0
        self._readers: list[threading.Thread] = []
        self._children = [self._start(who) for who in range(_PROCESSES)]

    def _start(self, who: int) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-m", "bench.writers", "own", str(self._folder), str(who), str(_LANES)],
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
    store = LetheStore.open(folder / "lethe.db", merge_keys=None)
    store.init_project(PROJECT)
    store.close()
    writers = _write(folder, _QUICK if quick else _FULL)
    lost, faults = _missing(folder, writers.acknowledged)
    assert not faults, f"verify finds faults: {faults[:3]}"
    said = {"acknowledged": len(writers.acknowledged), "killed": writers.killed, "engine": "sqlite"}
    note = f"{said['acknowledged']:,} acknowledged, {said['killed']} processes killed, SQLite"
    progress(f"lost_acknowledged {len(lost)}, refused {dict(writers.refused)} ({note})")
    count = len(writers.acknowledged)
    return [
        Figure("lost_acknowledged", len(lost), count, [{**said, "lost": lost[:20]}], note=note),
        Figure(
            "spurious_refusals",
            writers.refused.total(),
            count,
            [{**said, "refused": dict(writers.refused)}],
            note=note,
        ),
    ]


def _write(folder: Path, wanted: int) -> _Writers:
    """Lets the writers write until enough is acknowledged, killing one after the other."""
    draw = random.Random(8)
    writers = _Writers(folder)
    until = time.monotonic() + _LONGEST_S
    try:
        while len(writers.acknowledged) < wanted and time.monotonic() < until:
            time.sleep(_BETWEEN_KILLS_S * draw.uniform(0.5, 1.5))
            writers.kill_one(draw.randrange(_PROCESSES))
    finally:
        writers.end()
    return writers


def _missing(folder: Path, acknowledged: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Gives what was acknowledged and is not there, and what verify finds."""
    store = LetheStore.open(folder / "lethe.db", merge_keys=None)
    held = {row["ref_name"]: _log(store, row["ref_name"]) for row in store.list_refs(PROJECT)}
    faults = [
        f"{fault['kind']} {fault['object_id']}: {fault['why']}" for fault in store.verify(PROJECT)["faults"]
    ]
    store.close()
    return [name for name, ref in acknowledged if name not in held.get(ref, set())], faults


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
