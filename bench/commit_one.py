"""Durable commits of one change each, one after the other, by one caller: a second of ours against a second of theirs.

Half the changes give an old memory another text, half add a memory, all over the keys. Ours is `LetheStore.create_changeset` on an
unprotected branch: validation, digests, claims and search index, the tree, the ref and its log, the answer in the wire form. Theirs is
the row or blob and the commit; doltlite by the fastest of its durable modes, tried in this run just before.
"""

from __future__ import annotations

from bench.alternating import Json, alternate, over_sizes, versus
from bench.figures import Figure
from bench.fixtures import Fixtures, Process
from bench.registry import PEERS

_COMMITS = {"doltlite": 300, "pygit2": 20, "dulwich": 20, "git": 3}
_OURS = 300
_TRIED = 100


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    found, _ = over_sizes(fixtures, "commit_one", 5 if quick else 9, _warm, _some)
    for size in ("10k", "100k"):
        with fixtures.copy("ours", fixtures.sizes[size]) as ours:
            _warm(ours)
            found += [_against(fixtures, ours, peer, size, quick=quick) for peer in PEERS]
    return found


def _against(fixtures: Fixtures, ours: Process, peer: str, size: str, *, quick: bool) -> Figure:
    barred = (peer, size) == ("doltlite", "100k")
    rounds = (7 if quick else 15) if barred else 1 if quick else 3
    count = _COMMITS[peer]

    def measure(theirs: Process) -> tuple[list[Json], str | None]:
        modes: Json = theirs.ask("modes", count=_TRIED) if peer == "doltlite" else {}
        runs = alternate(rounds, lambda: _some(ours), lambda: theirs.ask("commit_one", count=count))
        note = f"its {modes['best']}; tried, commits/s: {modes['commits_s']}" if modes else None
        return runs, note

    return versus(
        fixtures,
        "commit_one_vs_doltlite" if barred else f"commit_one_vs_{peer}_{size}",
        peer,
        fixtures.sizes[size],
        measure,
    )


def _warm(ours: Process) -> None:
    ours.ask("commit_one", count=_OURS)


def _some(ours: Process) -> Json:
    told: Json = ours.ask("commit_one", count=_OURS)
    return told
