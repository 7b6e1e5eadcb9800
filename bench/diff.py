"""The difference of two commits with ten changes between them, warm: time at 1M over 10k, and theirs over ours.

Ours is `LetheStore.diff`, the whole semantic diff in the wire form: ops behind the changes, contradictions inside the target, every row
checked against its digest. The ten changes are other texts of old memories, or, where the key says mixed, half of them new memories. Theirs reads the ten rows of both sides: doltlite `dolt_diff_memory(from, to)`, pygit2 and dulwich the tree
difference with the blobs, the git program `diff-tree -r -p`. Eight pairs of commits, each read several times before and in a run.
"""

from __future__ import annotations

from bench.alternating import CPU, WALL, Json, alternate, over_sizes, versus
from bench.figures import Figure, middle
from bench.fixtures import Fixtures, Process
from bench.registry import PEERS

_PAIRS = 8
_TIMES = {"doltlite": 20, "pygit2": 1, "dulwich": 1, "git": 1}


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    rounds = 9 if quick else 21
    found, runs = over_sizes(fixtures, "diff10", rounds, _prepare, _read, CPU)
    ratio = middle(run["ratio"] for run in runs)
    found.append(Figure("diff10_1m_over_10k", ratio, fixtures.scale.most, runs))
    for size in ("10k", "100k"):
        with fixtures.copy("ours", fixtures.sizes[size]) as ours:
            found += [
                _against(fixtures, ours, peer, size, rounds if peer == "doltlite" else 3) for peer in PEERS
            ]
            if size == "100k":
                found.append(_against(fixtures, ours, "doltlite", size, rounds // 2, mixed=True))
    return found


def _against(
    fixtures: Fixtures, ours: Process, peer: str, size: str, rounds: int, *, mixed: bool = False
) -> Figure:
    def measure(theirs: Process) -> tuple[list[Json], str | None]:
        for process in (ours, theirs):
            process.ask("prepare_diff", pairs=_PAIRS, mixed=mixed)
            process.ask("diff", rounds=2)
        clock = WALL if peer == "git" else CPU
        turns = (lambda: _read(ours)), (lambda: theirs.ask("diff", rounds=_TIMES[peer]))
        return alternate(rounds, *turns, clock), None

    return versus(
        fixtures, f"diff10_{'mixed_' if mixed else ''}vs_{peer}_{size}", peer, fixtures.sizes[size], measure
    )


def _prepare(ours: Process) -> None:
    ours.ask("prepare_diff", pairs=_PAIRS)
    ours.ask("diff", rounds=20)


def _read(ours: Process) -> Json:
    told: Json = ours.ask("diff", rounds=20)
    return told
