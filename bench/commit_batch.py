"""Thirty-two commits of one change each a sync: commits a second of ours against theirs, N = 100k.

Ours: 32 threads call `create_changeset` at once, each on a branch of its own; the store's writer puts what waits into one durable
transaction. Theirs: doltlite has no way to share a sync, so its faster mode of one by one and 32 `dolt_commit`s in a transaction;
pygit2 its faster of a sync for each file and one `syncfs` for 32 commits, after which the branch moves.
"""

from __future__ import annotations

from bench.alternating import Json, alternate, ratio
from bench.figures import Figure, progress, unmeasured
from bench.fixtures import Absent, Failed, Fixtures, Process

WIDTH = 32
_N = 100_000


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    return [_against(fixtures, peer, 7 if quick else 15) for peer in ("doltlite", "pygit2")]


def _against(fixtures: Fixtures, peer: str, rounds: int) -> Figure:
    key = f"commit_batch32_vs_{peer}"
    progress(f"{key} at {_N:,}")
    try:
        with fixtures.copies(("ours", _N), (peer, _N)) as (ours, theirs):
            way = _our_way(ours)
            verb, arguments, note = _their_way(peer, theirs)
            runs = alternate(
                rounds,
                lambda: ours.ask(way, batches=10, width=WIDTH),
                lambda: theirs.ask(verb, **arguments),
            )
            note = f"ours: {ours.ask(way, batches=2, width=WIDTH)['mode']}; theirs: {note}"
            return ratio(key, _N, runs, peer, theirs.ask("version"), note)
    except (Absent, Failed) as error:
        return unmeasured(key, str(error), peer)


def _our_way(ours: Process) -> str:
    rates = {way: _rate(ours.ask(way, batches=6, width=WIDTH)) for way in ("commit_batch",) * 2}
    return max(rates, key=lambda way: rates[way])


def _their_way(peer: str, theirs: Process) -> tuple[str, Json, str]:
    """Gives the peer's faster way, as the verb that does it, and what was tried."""
    tried: Json = theirs.ask("modes", count=64)
    if peer == "pygit2":
        return "commit_batch", {"batches": 2, "width": WIDTH}, f"{tried['best']} of {tried['commits_s']}"
    together = _rate(theirs.ask("commit_batch", batches=3, width=WIDTH))
    alone = _rate(theirs.ask("commit_one", count=3 * WIDTH))
    said = f"one by one {alone:.0f}/s, {WIDTH} dolt_commits in a transaction {together:.0f}/s"
    if together > alone:
        return "commit_batch", {"batches": 3, "width": WIDTH}, said
    return "commit_one", {"count": 3 * WIDTH}, said


def _rate(told: Json) -> float:
    return float(told["count"] / told["seconds"])
