"""Sixteen writers on one branch, each trying again at once when it is refused: the least share over the fair share of what landed.

As sixteen threads of one process, four of each of four processes, and sixteen processes (`bench.writers contend`), on SQLite and on
PostgreSQL; the figure is the worst.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bench.alternating import Json
from bench.figures import Figure, progress
from bench.fixtures import Fixtures
from bench.ours import PROJECT
from bench.processes import ROOT
from bench.writers import CONTENDED
from memory_git.lethe.store import LetheStore
from memory_git.storage.lethe_schema import SCHEMA
from memory_git.storage.postgres_migrate import migrate
from memory_git.storage.postgres_url import DatabaseUrl

sys.path.insert(0, str(ROOT / "tests" / "support"))

from postgres_server import new_server  # type: ignore[import-not-found]

_WRITERS = 16
_PROCESSES = (1, 4, 16)


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figure of this benchmark."""
    seconds = 3 if quick else 15
    runs = []
    for processes in _PROCESSES:
        folder = fixtures.scratch / f"contention-{processes}"
        folder.mkdir()
        runs.append({"engine": "sqlite", **_contend(folder, processes, seconds)})
    server = new_server()
    try:
        for processes in _PROCESSES:
            url = f"{server.url}?schema=contention_{processes}"
            migrate(DatabaseUrl.parse(url, SCHEMA.name), SCHEMA)
            runs.append({"engine": "postgresql", **_contend(url, processes, seconds)})
    finally:
        server.close()
    worst = min(item["least_share"] for item in runs)
    note = ", ".join(
        f"{item['engine']} {item['processes']} processes {item['least_share']:.2f}" for item in runs
    )
    progress(f"contended_least_share {worst:.3g} ({note})")
    return [Figure("contended_least_share", worst, _WRITERS, runs, note=note)]


def _contend(place: Path | str, processes: int, seconds: int) -> Json:
    """Gives what landed when the writers are spread over so many processes."""
    store = LetheStore.open(place / "lethe.db" if isinstance(place, Path) else place, merge_keys=None)
    root = store.init_project(PROJECT)["changeset"]["changeset_id"]
    store.create_branch(PROJECT, CONTENDED, root, "bench")
    store.close()
    lanes = _WRITERS // processes
    children = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "bench.writers",
                "contend",
                str(place),
                str(who),
                str(lanes),
                str(seconds),
            ],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for who in range(processes)
    ]
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    landed: dict[str, int] = {}
    for child in children:
        landed |= json.loads(child.communicate()[0])
        assert child.returncode == 0, "a writer failed"
    shares = sorted(landed.values())
    return {
        "processes": processes,
        "landed": shares,
        "least_share": shares[0] / (sum(shares) / _WRITERS),
    }
