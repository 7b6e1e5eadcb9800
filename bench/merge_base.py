"""The best common ancestors of two heads on one graph of 100,000 changesets, a sixth of them merges: pygit2's time over ours, warm.

Three pairs against main: a session branch that forked a round ago; a long-lived branch that takes main in every fifty rounds; a branch
that forked in the first round and never came back. The figure is the least of the three ratios. Ours finds all best ones, on the
store's own CommitGraph; `merge_base_verb_…` is the same through `LetheStore.merge_base`, which also reads a snapshot and checks that
both changesets are there. pygit2's `merge_base` finds one; it has a commit graph file, if it is faster with it.
"""

from __future__ import annotations

from functools import partial

from bench.alternating import CPU, Json, alternate, each, told
from bench.figures import Figure, middle, progress, unmeasured
from bench.fixtures import Absent, Failed, Fixtures, Process, require
from bench.histories import Long, history

_BRANCHES = ("session", "syncing", "forgotten")
_KEYS = {"merge_base_100k_vs_pygit2": "merge_base", "merge_base_verb_100k_vs_pygit2": "merge_base_verb"}


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    try:
        require("pygit2")
        ours, theirs = (history(fixtures, name) for name in ("ours", "pygit2"))
        return _measured(ours, theirs, 5 if quick else 9)
    except (Absent, Failed) as error:
        return [unmeasured(key, str(error), "pygit2") for key in _KEYS]


def _measured(ours: Long, theirs: Long, rounds: int) -> list[Figure]:
    pairs = [[ours.tips[name], ours.tips["main"]] for name in _BRANCHES]
    progress("merge_base: the same bases in both")
    found = ours.process.ask("prepare_merge_base", pairs=pairs)
    for graph_file in (True, False):
        agreed = theirs.process.ask("prepare_merge_base", pairs=pairs, graph_file=graph_file)
        assert all(one[0] in many for one, many in zip(agreed, found, strict=True)), (agreed, found)
    graph_file = _faster_with_file(theirs.process, pairs)
    theirs.process.ask("prepare_merge_base", pairs=pairs, graph_file=graph_file)
    peer = theirs.process.ask("version")
    return [
        _figure(key, verb, ours, theirs.process, rounds, f"{peer}, commit graph file: {graph_file}")
        for key, verb in _KEYS.items()
    ]


def _faster_with_file(theirs: Process, pairs: list[list[int]]) -> bool:
    seconds = {}
    for graph_file in (True, False):
        theirs.ask("prepare_merge_base", pairs=pairs, graph_file=graph_file)
        seconds[graph_file] = sum(
            each(theirs.ask("merge_base", pair=at, rounds=3)) for at in range(len(pairs))
        )
    return seconds[True] <= seconds[False]


def _figure(key: str, verb: str, ours: Long, theirs: Process, rounds: int, peer: str) -> Figure:
    runs: Json = {}
    for at, name in enumerate(_BRANCHES):
        many = max(1, min(1000, int(0.05 / each(ours.process.ask(verb, pair=at, rounds=2)))))
        turns = partial(_turn, ours.process, verb, at, many), partial(_turn, theirs, "merge_base", at, many)
        runs[name] = alternate(rounds, *turns, CPU)
    ratios = {name: middle(run["ratio"] for run in found) for name, found in runs.items()}
    least = min(ratios, key=lambda name: ratios[name])
    times = "; ".join(
        f"{name} {told(middle(run['ours_s'] for run in found))} against {told(middle(run['theirs_s'] for run in found))}"
        for name, found in runs.items()
    )
    progress(f"{key}: {ratios[least]:.3g} ({times})")
    listed = [{"branch": name, **run} for name, found in runs.items() for run in found]
    return Figure(key, ratios[least], ours.changesets, listed, "pygit2", peer, times)


def _turn(process: Process, verb: str, pair: int, rounds: int) -> Json:
    told: Json = process.ask(verb, pair=pair, rounds=rounds)
    return told
