"""Merging two branches with a hundred changes each, disjoint, into one durable commit with two parents: theirs over ours.

Each branch is one commit of other texts of a hundred old memories (where the key says mixed, half of them new memories), made before the
clock starts. Ours is a merge on an unprotected branch: `merge_base`, `detect_conflicts` against it with every detector, then
`create_changeset` with two parents, durable. Theirs: doltlite `dolt_merge`; the git program `merge-tree --write-tree`, `commit-tree`,
`update-ref` in a bare repository, by the faster of a sync for each object and one `sync -f` before the branch moves; pygit2
`merge_commits`, `write_tree`, `create_commit`; dulwich `three_way_merge`. Theirs detect clashes of rows or lines, nothing else.

Two keys time our other roads: `planned` with `plan_merge`, which besides renders the whole difference for a reviewer, in place of the
first two; `protected` the changeset with two parents and the signed move of a protected branch, detectors, rules of review and events
included.
"""

from __future__ import annotations

from bench.alternating import Json, alternate, each, over_sizes, versus
from bench.figures import Figure, middle, progress, unmeasured
from bench.fixtures import Failed, Fixtures, Process
from bench.registry import PEERS


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    rounds = 9 if quick else 21
    found, _ = over_sizes(fixtures, "merge100x100", rounds // 2, _merge, _merge)
    for size in ("10k", "100k"):
        with fixtures.copy("ours", fixtures.sizes[size]) as ours:
            _merge(ours)
            few = 1 if quick else 3
            many = {"doltlite": rounds, "git": rounds // 2} if size == "100k" else {}
            found += [_against(fixtures, ours, peer, size, many.get(peer, few)) for peer in PEERS]
            if size == "100k":
                found.append(_against(fixtures, ours, "doltlite", size, rounds // 2, mixed=True))
                found += [
                    _by_road(ours, road, fixtures.sizes[size], rounds // 2)
                    for road in ("planned", "protected")
                ]
    return found


def _against(
    fixtures: Fixtures, ours: Process, peer: str, size: str, rounds: int, *, mixed: bool = False
) -> Figure:
    def measure(theirs: Process) -> tuple[list[Json], str | None]:
        for process in (ours, theirs):
            process.ask("merge", mixed=mixed)
        tried = theirs.ask("merge_modes") if peer == "git" else None
        note = f"its {tried['best']}; tried, s: {tried['seconds']}" if tried else None
        return alternate(
            rounds, lambda: ours.ask("merge", mixed=mixed), lambda: theirs.ask("merge", mixed=mixed)
        ), note

    return versus(
        fixtures,
        f"merge100x100_{'mixed_' if mixed else ''}vs_{peer}_{size}",
        peer,
        fixtures.sizes[size],
        measure,
    )


def _merge(ours: Process) -> Json:
    told: Json = ours.ask("merge")
    return told


def _by_road(ours: Process, road: str, n: int, rounds: int) -> Figure:
    key = f"merge100x100_{road}_100k_ms"
    progress(key)
    try:
        ours.ask(f"merge_{road}")
        runs = [1e3 * each(ours.ask(f"merge_{road}")) for _ in range(rounds)]
    except Failed as error:
        return unmeasured(key, str(error))
    return Figure(key, middle(runs), n, runs)
