"""Thirty-two commits of one change each a sync: commits a second of ours against theirs, N = 100k.

Ours: 32 threads call `create_changeset` at once, each on a branch of its own; the store's writer puts what waits into one durable
transaction. Theirs: doltlite has no way to share a sync, so the faster of one by one and 32 `dolt_commit`s in a transaction; pygit2 the
faster of a sync for each file and one `syncfs` for 32 commits.
"""

from __future__ import annotations

from bench.alternating import Json, alternate, versus
from bench.figures import Figure
from bench.fixtures import Fixtures, Process

WIDTH = 32
_SIZE = "100k"


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    with fixtures.copy("ours", fixtures.sizes[_SIZE]) as ours:
        ours.ask("commit_batch", batches=6, width=WIDTH)
        return [_against(fixtures, ours, peer, 5 if quick else 15) for peer in ("doltlite", "pygit2")]


def _against(fixtures: Fixtures, ours: Process, peer: str, rounds: int) -> Figure:
    def measure(theirs: Process) -> tuple[list[Json], str | None]:
        verb, arguments, note = _their_way(peer, theirs)
        runs = alternate(
            rounds,
            lambda: ours.ask("commit_batch", batches=12, width=WIDTH),
            lambda: theirs.ask(verb, **arguments),
        )
        return runs, f"ours: {WIDTH} callers at once; theirs: {note}"

    return versus(fixtures, f"commit_batch32_vs_{peer}", peer, fixtures.sizes[_SIZE], measure)


def _their_way(peer: str, theirs: Process) -> tuple[str, Json, str]:
    """Gives the peer's faster way, as the verb that does it, and what was tried."""
    tried: Json = theirs.ask("modes", count=64)
    if peer == "pygit2":
        return (
            "commit_batch",
            {"batches": 2, "width": WIDTH},
            f"{tried['best']}; tried, commits/s: {tried['commits_s']}",
        )
    together = _rate(theirs.ask("commit_batch", batches=3, width=WIDTH))
    alone = _rate(theirs.ask("commit_one", count=3 * WIDTH))
    said = f"one by one {alone:.0f}/s, {WIDTH} dolt_commits in a transaction {together:.0f}/s"
    if together > alone:
        return "commit_batch", {"batches": 3, "width": WIDTH}, said
    return "commit_one", {"count": 3 * WIDTH}, said


def _rate(told: Json) -> float:
    return float(told["count"] / told["seconds"])
