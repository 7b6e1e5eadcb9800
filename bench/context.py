"""The context of twenty memories at main's head, without a query: time with a long history over that with 100 changesets.

Both hold the same thousand memories (`shape`); 100,000 changesets, a sixth of them merges, stand behind one and 100 behind the other.
`LetheStore.context` warm: asked once before; selection, records checked, the wire form; no manifest. In the quick run the long history
is shorter; `n` says how long.
"""

from __future__ import annotations

from bench.alternating import CPU, each
from bench.figures import Figure, middle, progress
from bench.fixtures import Fixtures
from bench.histories import history


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figure of this benchmark."""
    key = "context_100k_changesets_over_100"
    long = history(fixtures, "ours")
    progress(key)
    with fixtures.empty("ours") as short:
        short.ask("build_history", changesets=100)
        runs = []
        for _ in range(9 if quick else 15):
            at_long, at_short = (
                each(process.ask("context", rounds=20), CPU) for process in (long.process, short)
            )
            runs.append({"long_s": at_long, "short_s": at_short, "ratio": at_long / at_short})
    value = middle(item["ratio"] for item in runs)
    return [Figure(key, value, long.changesets, runs, note="seconds of processor time for one context")]
