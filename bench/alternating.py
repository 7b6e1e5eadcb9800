"""Participants in turns, in one run, so that a disk or a machine that changes its pace hits all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from bench.figures import Figure, middle, progress, unmeasured
from bench.fixtures import Absent, Failed, Fixtures, Process
from bench.registry import SIZES

Json = dict[str, Any]
Turn = Callable[[], Json]
SETTLE_S = 0.4
"""After a turn that wrote: our store's checkpoint thread works every 250 ms, and must not do so in their turn."""
WALL, CPU = "seconds", "cpu_seconds"
"""What is durable is measured on the wall. What only reads, warm, in one process: by its processor time, which other work does not change."""


def alternate(rounds: int, ours: Turn, theirs: Turn, clock: str = WALL) -> list[Json]:
    """Gives each round's seconds for one, and theirs over ours; who goes first changes from round to round."""
    runs = []
    for place in range(rounds):
        turns = [("ours", ours), ("theirs", theirs)]
        told = {}
        for name, turn in turns if place % 2 == 0 else turns[::-1]:
            told[name] = turn()
            if clock == WALL:
                time.sleep(SETTLE_S)
        run = {f"{name}_s": each(told[name], clock) for name, _ in turns}
        run["ratio"] = _short(run["theirs_s"] / run["ours_s"])
        if clock == CPU:
            run |= {f"{name}_wall_s": each(told[name]) for name, _ in turns}
        runs.append(run)
    return runs


def each(told: Json, clock: str = WALL) -> float:
    """Gives the seconds for one of what was counted."""
    return _short(told[clock] / told["count"])


def versus(
    fixtures: Fixtures,
    key: str,
    peer: str,
    n: int,
    measure: Callable[[Process], tuple[list[Json], str | None]],
) -> Figure:
    """Gives the median of theirs over ours in seconds, above 1 when ours is faster; `measure` runs them and may say more."""
    progress(key)
    try:
        with fixtures.copy(peer, n) as theirs:
            runs, note = measure(theirs)
            version = theirs.ask("version")
    except (Absent, Failed) as error:
        return unmeasured(key, str(error), peer)
    found = middle(run["ratio"] for run in runs)
    said = " against ".join(told(middle(run[name] for run in runs)) for name in ("ours_s", "theirs_s"))
    said += " of processor time" if "ours_wall_s" in runs[0] else ""
    progress(f"{key}: {found:.3g} ({said})")
    return Figure(key, found, n, runs, peer, version, f"{said}; {note}" if note else said)


def over_sizes(
    fixtures: Fixtures,
    name: str,
    rounds: int,
    prepare: Callable[[Process], Any],
    turn: Callable[[Process], Json],
    clock: str = WALL,
) -> tuple[list[Figure], list[Json]]:
    """Gives ours at each size in milliseconds, measured in turns, and each round's greatest size over the least."""
    sizes = list(fixtures.sizes.items())
    progress(f"{name} at {', '.join(label for label, _ in sizes)}")
    with fixtures.copies(*(("ours", n) for _, n in sizes)) as processes:
        for process in processes:
            prepare(process)
        found = [[each(turn(process), clock) for process in processes] for _ in range(rounds)]
    runs = [{"seconds": row, "ratio": _short(row[-1] / row[0])} for row in found]
    by_label = {label: [row[at] for row in found] for at, (label, _) in enumerate(sizes)}
    return [_at(fixtures, name, label, by_label) for label in SIZES], runs


def _at(fixtures: Fixtures, name: str, label: str, by_label: Mapping[str, list[float]]) -> Figure:
    key = f"{name}_{label}_ms"
    if label not in by_label:
        return unmeasured(key, "only in the full run")
    runs = [_short(1e3 * seconds) for seconds in by_label[label]]
    return Figure(key, middle(runs), fixtures.sizes[label], runs)


def told(seconds: float) -> str:
    """Gives a time for people."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} us"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _short(value: float) -> float:
    return float(f"{value:.4g}")
