"""Importing memories in changesets of 10,000 in the order of their keys, search index on: ops a second of ours over raw inserts (`raw`).

Ours is `LetheStore.create_changeset` per 10,000 ops, each durable, up to the checkpoint at close; making the request objects is outside
the clock, reading and validating them inside. The peak of memory is the kernel's VmHWM of the process that imports, texts being made
included. What is imported last serves the other benchmarks as base. In the quick run there are 100k memories.
"""

from __future__ import annotations

import shutil

from bench.figures import Figure, middle, progress
from bench.fixtures import Fixtures


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    n = fixtures.scale.most
    runs = []
    with fixtures.empty("raw") as raw:
        for turn in range(2 if quick else 1):
            ours = _import(fixtures, n, turn)
            source = str(fixtures.base("ours", n) / "lethe.db")
            theirs = [raw.ask("build", source=source) for _ in range(1 if quick else 2)]
            least = min(told["seconds"] for told in theirs)
            runs.append(
                {
                    "ours_s": ours["seconds"],
                    "ours_cpu_s": ours["cpu_seconds"],
                    "raw_s": [told["seconds"] for told in theirs],
                    "raw_cpu_s": [told["cpu_seconds"] for told in theirs],
                    "ratio": least / ours["seconds"],
                    "peak_rss_mb": ours["peak_rss_mb"],
                }
            )
            progress(f"import of {n:,}: {n / ours['seconds']:,.0f} ops/s, raw {n / least:,.0f}")
    rates = [n / item["ours_s"] for item in runs]
    return [
        Figure(
            "import_1m_vs_raw", middle(item["ratio"] for item in runs), n, runs, "apsw", note="raw inserts"
        ),
        Figure("import_1m_peak_rss_mb", max(item["peak_rss_mb"] for item in runs), n, runs),
        Figure("import_1m_ops_s", middle(rates), n, rates),
    ]


def _import(fixtures: Fixtures, n: int, turn: int) -> dict[str, float]:
    """Imports into a new folder; the first time it becomes the base."""
    if turn == 0:
        fixtures.base("ours", n)
        told: dict[str, float] = fixtures.told["ours", n]
        return told
    folder = fixtures.scratch / f"import-{turn}"
    progress(f"imports {n:,} memories again")
    told = fixtures.build("ours", n, folder)
    shutil.rmtree(folder)
    return told
