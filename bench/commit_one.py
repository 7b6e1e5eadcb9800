"""Durable commits of one change each, one after the other, by one caller: a second of ours against a second of theirs.

Half the changes give an old memory another text, half add a memory, all over the keys. Ours is `LetheStore.create_changeset` on an
unprotected branch: validation, digests, claims and search index, the tree, the ref and its log, the answer in the wire form. Theirs is
the row or blob and the commit, by the fastest durable mode found in this run just before.
"""

from __future__ import annotations

from bench.alternating import Json, alternate, each, ratio
from bench.figures import Figure, middle, progress, unmeasured
from bench.fixtures import Absent, Failed, Fixtures

_COMMITS = {"doltlite": 100, "pygit2": 20, "dulwich": 20, "git": 3}


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    rounds = 9 if quick else 15
    found = [
        _against(fixtures, "commit_one_vs_doltlite", "doltlite", 100_000, rounds),
        _against(fixtures, "commit_one_10k_vs_doltlite", "doltlite", 10_000, rounds),
    ]
    for peer in ("pygit2", "dulwich", "git"):
        found.append(_against(fixtures, f"commit_one_100k_vs_{peer}", peer, 100_000, 3))
    return [*found, _over_sizes(fixtures, rounds)]


def _against(fixtures: Fixtures, key: str, peer: str, n: int, rounds: int) -> Figure:
    progress(f"{key} at {n:,}")
    try:
        with fixtures.copies(("ours", n), (peer, n)) as (ours, theirs):
            count = _COMMITS[peer]
            ours.ask("commit_one", count=2 * count)
            modes: Json = theirs.ask("modes", count=count)
            runs = alternate(
                rounds,
                lambda: ours.ask("commit_one", count=_COMMITS["doltlite"]),
                lambda: theirs.ask("commit_one", count=count),
            )
            note = f"modes tried, commits/s: {modes['commits_s']}" if peer == "doltlite" else None
            return ratio(key, n, runs, peer, theirs.ask("version"), note)
    except (Absent, Failed) as error:
        return unmeasured(key, str(error), peer)


def _over_sizes(fixtures: Fixtures, rounds: int) -> Figure:
    """Gives the time of a commit at the greatest size over that at 10k."""
    most = fixtures.sizes[-1]
    with fixtures.copies(("ours", most), ("ours", 10_000)) as (large, small):
        for process in (large, small):
            process.ask("commit_one", count=200)
        runs = []
        for _ in range(rounds):
            at_large, at_small = (each(process.ask("commit_one", count=100)) for process in (large, small))
            runs.append({"large_s": at_large, "small_s": at_small, "ratio": at_large / at_small})
    return Figure("commit_one_1m_over_10k", middle(item["ratio"] for item in runs), most, runs)
