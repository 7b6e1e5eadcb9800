"""Sixteen writers on one branch, each trying again at once when it is refused: the least share over the fair share of what landed.

As sixteen threads of one process, four of each of four processes, and sixteen processes (`bench.writers contend`); the figure is the worst.
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

_WRITERS = 16
_PROCESSES = (1, 4, 16)


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figure of this benchmark."""
    runs = [
        _contend(fixtures.scratch / f"contention-{processes}", processes, 5 if quick else 15)
        for processes in _PROCESSES
    ]
    worst = min(item["least_share"] for item in runs)
    note = ", ".join(f"{item['processes']} processes {item['least_share']:.2f}" for item in runs) + "; SQLite"
    progress(f"contended_least_share {worst:.3g} ({note})")
    return [Figure("contended_least_share", worst, _WRITERS, runs, note=note)]


def _contend(folder: Path, processes: int, seconds: int) -> Json:
    """Gives what landed when the writers are spread over so many processes."""
    folder.mkdir()
    store = LetheStore.open(folder / "lethe.db", merge_keys=None)
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
                str(folder),
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
        "engine": "sqlite",
        "processes": processes,
        "landed": shares,
        "least_share": shares[0] / (sum(shares) / _WRITERS),
    }
