"""Reading one memory at a head, warm: time at 1M over that at 10k. `LetheStore.memory`: record, digest, relationships, proof."""

from __future__ import annotations

from bench.alternating import each
from bench.figures import Figure, middle, progress
from bench.fixtures import Fixtures

_MEMORIES = 500


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figure of this benchmark."""
    key, most = "checkout_one_1m_over_10k", fixtures.sizes[-1]
    progress(f"{key} at {most:,}")
    with fixtures.copies(("ours", most), ("ours", 10_000)) as (large, small):
        for process in (large, small):
            process.ask("prepare_checkout", count=_MEMORIES)
        runs = []
        for _ in range(9 if quick else 15):
            at_large, at_small = (each(process.ask("checkout", rounds=2)) for process in (large, small))
            runs.append({"large_s": at_large, "small_s": at_small, "ratio": at_large / at_small})
    return [Figure(key, middle(item["ratio"] for item in runs), most, runs, note="seconds for one memory")]
