"""The difference of two commits with ten changes between them, warm: time at 1M over 10k, and theirs over ours.

Ours is `LetheStore.diff`, the whole semantic diff in the wire form: ops behind the changes, contradictions inside the target, every row
checked against its digest. The ten changes are other texts of old memories, or, where the key says mixed, half of them new memories. Theirs reads the ten rows of both sides: doltlite `dolt_diff_memory(from, to)`, pygit2 and dulwich the tree
difference with the blobs, the git program `diff-tree -r -p`. Eight pairs of commits, each read several times before and in a run.
"""

from __future__ import annotations

from bench.alternating import alternate, each, ratio
from bench.figures import Figure, middle, progress, unmeasured
from bench.fixtures import Absent, Failed, Fixtures

_PAIRS = 8


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    rounds = 9 if quick else 15
    found = [_over_sizes(fixtures, rounds)]
    found += [_against(fixtures, "doltlite", n, rounds) for n in (100_000, 10_000)]
    found.append(_against(fixtures, "doltlite", 100_000, rounds, mixed=True))
    return [*found, *(_against(fixtures, peer, 100_000, 3) for peer in ("pygit2", "dulwich", "git"))]


def _against(fixtures: Fixtures, peer: str, n: int, rounds: int, *, mixed: bool = False) -> Figure:
    key = f"diff10_{'mixed_' if mixed else ''}vs_{peer}_{n // 1000}k"
    progress(key)
    many = 20 if peer == "doltlite" else 1
    try:
        with fixtures.copies(("ours", n), (peer, n)) as (ours, theirs):
            for process in (ours, theirs):
                process.ask("prepare_diff", pairs=_PAIRS, mixed=mixed)
                process.ask("diff", rounds=many)
            runs = alternate(
                rounds, lambda: ours.ask("diff", rounds=20), lambda: theirs.ask("diff", rounds=many)
            )
            return ratio(key, n, runs, peer, theirs.ask("version"))
    except (Absent, Failed) as error:
        return unmeasured(key, str(error), peer)


def _over_sizes(fixtures: Fixtures, rounds: int) -> Figure:
    key, most = "diff10_1m_over_10k", fixtures.sizes[-1]
    progress(f"{key} at {most:,}")
    with fixtures.copies(("ours", most), ("ours", 10_000)) as (large, small):
        for process in (large, small):
            process.ask("prepare_diff", pairs=_PAIRS)
            process.ask("diff", rounds=20)
        runs = []
        for _ in range(rounds):
            at_large, at_small = (each(process.ask("diff", rounds=20)) for process in (large, small))
            runs.append({"large_s": at_large, "small_s": at_small, "ratio": at_large / at_small})
    return Figure(key, middle(item["ratio"] for item in runs), most, runs, note="seconds for one diff")
