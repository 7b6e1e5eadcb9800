"""The context of twenty memories over HTTP: 100,000 memories and 100,000 changesets over 1,000 memories and 100 changesets.

One client, a request after the other, the median wait of many, both servers in turns; warm, no query, no manifest. The long history is
that of `histories` (a sixth merges), copied by the store's own backup, and widened to 100,000 memories. In the quick run it is shorter;
`n` says how long.
"""

from __future__ import annotations

from bench import shape
from bench.figures import Figure, middle, progress
from bench.fixtures import Fixtures
from bench.histories import history

_MEMORIES = 100_000


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figure of this benchmark."""
    key = "http_context_100k_over_1k"
    changesets = fixtures.scale.changesets
    with (
        fixtures.empty("http_ours") as long,
        fixtures.empty("http_ours") as short,
        fixtures.empty("http_load") as load,
    ):
        history(fixtures, "ours").process.ask("copy_to", folder=str(long.folder))
        progress(f"widens a copy of the history to {_MEMORIES:,} memories")
        long.ask("widen", first=shape.MEMORIES, count=_MEMORIES)
        with fixtures.empty("ours") as maker:
            maker.ask("build_history", changesets=100)
            maker.ask("copy_to", folder=str(short.folder))
        servers = [process.ask("serve") for process in (long, short)]
        runs = []
        for _ in range(9 if quick else 15):
            at_long, at_short = (load.ask("contexts", server=server, count=200) for server in servers)
            runs.append(
                {
                    "ratio": at_long["p50_ms"] / at_short["p50_ms"],
                    **{f"long_{name}": at_long[name] for name in ("p50_ms", "p99_ms")},
                    **{f"short_{name}": at_short[name] for name in ("p50_ms", "p99_ms")},
                }
            )
    value = middle(item["ratio"] for item in runs)
    p50_ms = middle(item["long_p50_ms"] for item in runs)
    progress(f"{key}: {value:.3g} (p50 {p50_ms:.2f} ms)")
    note = f"p50 {p50_ms:.2f} ms with {_MEMORIES:,} memories and {changesets:,} changesets"
    return [Figure(key, value, changesets, runs, note=note)]
