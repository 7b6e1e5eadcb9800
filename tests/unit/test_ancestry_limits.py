"""A walk through history visits what it must and no more, and a limit is an explicit error (4-history, ancestry)."""

from __future__ import annotations

import pytest

from memory_git.domain.ancestry import CommitGraph
from memory_git.domain.errors import Corrupt, TooLarge


def forked(max_history: int, *, below: int = 0, left: int = 3, right: int = 3) -> CommitGraph:
    """Gives a line of `below` changesets, and two of their own lengths from its end, called `base`."""
    graph = CommitGraph(max_history)
    graph.append("root", [])
    last = "root"
    for number in range(below):
        graph.append(f"b{number}", [last])
        last = f"b{number}"
    graph.append("base", [last])
    for name, length in (("l", left), ("r", right)):
        last = "base"
        for number in range(1, length + 1):
            graph.append(f"{name}{number}", [last])
            last = f"{name}{number}"
    return graph


def test_a_walk_ends_where_the_sides_have_met_however_long_history_is() -> None:
    graph = forked(12, below=5_000)
    assert graph.best_common_ancestors("l3", "r3") == ("base",)
    assert graph.is_ancestor("base", "l3")
    assert not graph.is_ancestor("r1", "l3")
    assert graph.reached("l3", ["base", "l1", "r2", "never"]) == {"base", "l1"}
    assert graph.reached("l3", []) == set()


def test_a_limit_counts_each_changeset_once_and_is_told() -> None:
    """Seven are visited: three on each side, and the base."""
    assert forked(7).best_common_ancestors("l3", "r3") == ("base",)
    with pytest.raises(TooLarge) as refused:
        forked(5).best_common_ancestors("l3", "r3")
    assert (refused.value.code, refused.value.facts["max_history"]) == ("history_too_long", 5)
    with pytest.raises(TooLarge) as refused:
        forked(20, below=100).is_on_mainline("root", "l3")
    assert refused.value.facts["max_history"] == 20


@pytest.mark.parametrize(
    ("name", "parents"),
    [("l1", ["root"]), ("new", ["unknown"]), ("new", ["l1", "r1", "base"])],
    ids=["other parents than before", "an unknown parent", "three parents"],
)
def test_a_changeset_that_cannot_be_is_named(name: str, parents: list[str]) -> None:
    with pytest.raises(Corrupt) as corrupt:
        forked(100).append(name, parents)
    assert (corrupt.value.kind, corrupt.value.object_id) == ("changeset", name)
