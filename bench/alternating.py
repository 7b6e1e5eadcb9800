"""Two participants in turns, in one run: ours, theirs, theirs, ours, … so that a disk or machine that changes its pace hits both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.figures import Figure, middle, progress

Json = dict[str, Any]
Turn = Callable[[], Json]


def alternate(rounds: int, ours: Turn, theirs: Turn) -> list[Json]:
    """Gives each round's answers, {"ours", "theirs"}, as seconds for one (`each`); who goes first changes from round to round."""
    runs = []
    for place in range(rounds):
        turns = [("ours", ours), ("theirs", theirs)]
        told = {name: each(turn()) for name, turn in (turns if place % 2 == 0 else turns[::-1])}
        runs.append(
            {
                "ours_s": told["ours"],
                "theirs_s": told["theirs"],
                "ratio": _short(told["theirs"] / told["ours"]),
            }
        )
    return runs


def each(told: Json) -> float:
    """Gives the seconds for one of what was counted."""
    return _short(told["seconds"] / told["count"])


def ratio(
    key: str,
    n: int,
    runs: list[Json],
    peer: str,
    peer_version: str,
    note: str | None = None,
    *,
    turned: bool = False,
) -> Figure:
    """Gives the median of the rounds' ratios, theirs over ours in seconds: above 1 ours is faster; `turned` gives ours over theirs."""
    found = middle(run["ratio"] for run in runs)
    progress(f"{key}: {1 / found if turned else found:.3g}")
    ours, theirs = (middle(run[name] for run in runs) for name in ("ours_s", "theirs_s"))
    said = f"{told(ours)} against {told(theirs)}"
    return Figure(
        key, 1 / found if turned else found, n, runs, peer, peer_version, f"{said}; {note}" if note else said
    )


def told(seconds: float) -> str:
    """Gives a time for people."""
    return (
        f"{seconds * 1e6:.3g} us"
        if seconds < 1e-3
        else f"{seconds * 1e3:.3g} ms"
        if seconds < 1
        else f"{seconds:.3g} s"
    )


def _short(value: float) -> float:
    return float(f"{value:.4g}")
