"""Merging two branches with a hundred changes each, disjoint, into one durable commit with two parents: theirs over ours.

Each branch is one commit of other texts of a hundred old memories (where the key says mixed, half of them new memories), made before the
clock starts. Ours is what an agent does on a branch
of its own: `plan_merge` with every conflict detector and the plan's whole diff, then `create_changeset` with two parents, durable.
Theirs: doltlite `dolt_merge`; the git program `merge-tree --write-tree`, `commit-tree`, `update-ref` in a bare repository; pygit2
`merge_commits`, `write_tree`, `create_commit`; dulwich `three_way_merge`. Theirs detect clashes of rows or lines, nothing else.
`merge100x100_protected_100k_ms` is the other road: the two-parent changeset and the signed move of a protected branch.
"""

from __future__ import annotations

from bench.alternating import alternate, each, ratio, told
from bench.figures import Figure, middle, progress, unmeasured
from bench.fixtures import Absent, Failed, Fixtures


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    rounds = 7 if quick else 15
    found = [_against(fixtures, "doltlite", n, rounds) for n in (100_000, 10_000)]
    found.append(_against(fixtures, "doltlite", 100_000, rounds, mixed=True))
    found.append(_against(fixtures, "git", 100_000, rounds))
    found += [_against(fixtures, peer, 100_000, 3) for peer in ("pygit2", "dulwich")]
    return [*found, _protected(fixtures, rounds)]


def _against(fixtures: Fixtures, peer: str, n: int, rounds: int, *, mixed: bool = False) -> Figure:
    key = f"merge100x100_{'mixed_' if mixed else ''}vs_{peer}_{n // 1000}k"
    progress(key)
    try:
        with fixtures.copies(("ours", n), (peer, n)) as (ours, theirs):
            for process in (ours, theirs):
                process.ask("merge", mixed=mixed)
            runs = alternate(
                rounds, lambda: ours.ask("merge", mixed=mixed), lambda: theirs.ask("merge", mixed=mixed)
            )
            return ratio(key, n, runs, peer, theirs.ask("version"))
    except (Absent, Failed) as error:
        return unmeasured(key, str(error), peer)


def _protected(fixtures: Fixtures, rounds: int) -> Figure:
    key, n = "merge100x100_protected_100k_ms", 100_000
    progress(key)
    try:
        with fixtures.copy("ours", n) as ours:
            ours.ask("merge_protected")
            runs = [each(ours.ask("merge_protected")) for _ in range(rounds)]
    except Failed as error:
        return unmeasured(key, str(error))
    return Figure(key, 1000 * middle(runs), n, runs, note=f"{told(middle(runs))} a merge; runs in seconds")
