"""The long history, built once a run and shared by the benchmarks that need one; its process stays until the run ends."""

from __future__ import annotations

import atexit
from dataclasses import dataclass

from bench.figures import progress
from bench.fixtures import Fixtures
from bench.processes import Process


@dataclass(frozen=True, slots=True)
class Long:
    """A participant that has a long history, how long it is, and the places of its branches' heads."""

    process: Process
    changesets: int
    tips: dict[str, int]


_kept: dict[str, Long] = {}


def history(fixtures: Fixtures, name: str) -> Long:
    """Gives a participant with the history of `shape`, made at first use."""
    if name not in _kept:
        count = fixtures.scale.changesets
        folder = fixtures.scratch / f"{name}-history"
        folder.mkdir()
        process = Process(name, folder)
        atexit.register(process.end)
        progress(f"builds a history of {count:,} changesets with {name}")
        told = process.ask("build_history", changesets=count)
        progress(f"built {told['count']:,} changesets in {told['seconds']:.0f} s")
        _kept[name] = Long(process, count, told["tips"])
    return _kept[name]
