"""The commit graph on drawn histories (4-history, ancestry)."""

from __future__ import annotations

import pytest

from memory_git.domain.ancestry import CommitGraph, Page
from memory_git.domain.errors import Corrupt, NotFound, Refused


def graph(drawing: str, **settings: int) -> CommitGraph:
    """Gives a graph from `child<first,second` words, in order of arrival."""
    made = CommitGraph(**settings)
    for word in drawing.split():
        child, _, parents = word.partition("<")
        made.append(child, [parent for parent in parents.split(",") if parent])
    return made


@pytest.mark.parametrize(
    ("drawing", "a", "b", "bases"),
    [
        pytest.param("r a<r b<r", "a", "b", ("r",), id="a fork"),
        pytest.param("r a<r b<a", "a", "b", ("a",), id="one side is the base of the other"),
        pytest.param("r a<r", "a", "a", ("a",), id="a changeset with itself"),
        pytest.param("r s a<r b<s", "a", "b", (), id="unrelated histories"),
        pytest.param("r a<r b<r c<a,b d<b,a", "c", "d", ("a", "b"), id="criss-cross"),
        pytest.param(
            "r a<r b<r c<a,b d<b,a e<c f<d g<e,f h<f,e", "g", "h", ("e", "f"), id="criss-cross twice"
        ),
        pytest.param("r a<r b<r m<b,a c<a", "m", "c", ("a",), id="a base behind a second parent"),
        pytest.param("r a<r b<a c<b d<c,r", "d", "a", ("a",), id="a short cut to the root is no base"),
        pytest.param(
            "r x<r y<x z<y l<r,z m<r,z", "l", "m", ("z",), id="the root is reached first but is no best base"
        ),
        pytest.param("r s a<r,s b<s,r", "a", "b", ("r", "s"), id="two roots"),
    ],
)
def test_the_best_common_ancestors_are_all_of_them(drawing, a, b, bases):
    history = graph(drawing)
    assert history.best_common_ancestors(a, b) == bases
    assert history.best_common_ancestors(b, a) == bases


def test_an_ancestor_is_told_from_a_cousin():
    history = graph("r a<r b<r m<a,b c<m other")
    assert all(history.is_ancestor(one, "c") for one in ("r", "a", "b", "m", "c"))
    assert not history.is_ancestor("c", "m")
    assert not history.is_ancestor("a", "b")
    assert not history.is_ancestor("r", "other")


def test_the_mainline_is_the_line_of_first_parents():
    history = graph("r a<r b<r m<a,b c<m d<b other", max_history=3)
    assert [one for one in ("r", "a", "b", "m", "c", "d") if history.is_on_mainline(one, "m")] == [
        "r",
        "a",
        "m",
    ]
    assert not history.is_on_mainline("c", "m")
    assert not history.is_on_mainline("r", "other")
    assert history.is_on_mainline("r", "c")
    with pytest.raises(Refused) as refusal:
        graph("r a<r b<a c<b d<c", max_history=3).is_on_mainline("r", "d")
    assert refusal.value.code == "history_too_long"


def test_a_log_is_topological_and_its_pages_join_without_gap_or_repeat():
    history = graph("r a<r b<r c<a d<b m<c,d n<m")
    assert history.log(["n"], 100) == Page(("n", "m", "d", "c", "b", "a", "r"), ())
    ids, frontier = [], None
    while frontier is None or frontier:
        page = history.log(["n"], 2, frontier)
        ids += page.ids
        frontier = page.frontier
    assert ids == ["n", "m", "d", "c", "b", "a", "r"]


def test_a_log_of_first_parents_is_the_mainline():
    history = graph("r a<r b<r m<a,b n<m")
    assert history.log(["n"], 3, first_parent=True) == Page(("n", "m", "a"), ("r",))
    assert history.log(["n"], 3, ("r",), first_parent=True) == Page(("r",), ())


def test_a_log_of_several_heads_names_each_changeset_once():
    history = graph("r a<r b<r c<a")
    assert history.log(["b", "c", "a"], 10).ids == ("c", "b", "a", "r")


def test_what_a_branch_adds_comes_parents_first():
    history = graph("r a<r x<r b<a y<x,a m<b,y")
    assert history.reachable_not_from("y", ["b"]) == ["x", "y"]
    assert history.reachable_not_from("m", ["a"]) == ["x", "b", "y", "m"]
    assert history.reachable_not_from("b", ["m"]) == []
    assert history.reachable_not_from("b", []) == ["r", "a", "b"]
    assert history.reachable_not_from("m", ["b", "y"]) == ["m"]


def test_a_changeset_has_its_position_parents_and_generation():
    history = graph("r a<r b<a c<r m<c,b")
    assert [history.id_at(history.position(one)) for one in "rabcm"] == list("rabcm")
    assert history.parents("m") == ("c", "b")
    assert [history.generation(one) for one in "rabcm"] == [1, 2, 3, 2, 4]
    assert len(history) == 5
    assert "m" in history
    assert "x" not in history


def test_an_unknown_changeset_is_not_found():
    history = graph("r")
    for ask in (
        lambda: history.best_common_ancestors("r", "x"),
        lambda: history.is_ancestor("x", "r"),
        lambda: history.log(["x"], 1),
        lambda: history.log(["r"], 1, ["x"]),
        lambda: history.reachable_not_from("r", ["x"]),
    ):
        with pytest.raises(NotFound) as refusal:
            ask()
        assert refusal.value.code == "changeset_not_found"
        assert (refusal.value.message, refusal.value.facts) == ("no such changeset in this project", {})


def test_a_changeset_that_arrives_again_changes_nothing_unless_its_parents_differ():
    history = graph("r a<r b<r")
    history.append("a", ["r"])
    assert len(history) == 3
    with pytest.raises(Corrupt):
        history.append("a", ["b"])


@pytest.mark.parametrize("parents", [["x"], ["c"], ["r", "a", "b"]])
def test_a_changeset_with_unknown_or_too_many_parents_is_corrupt_and_leaves_no_trace(parents):
    history = graph("r a<r b<r")
    with pytest.raises(Corrupt):
        history.append("c", parents)
    assert "c" not in history
    history.append("c", ["a", "b"])
    assert history.parents("c") == ("a", "b")


def test_a_walk_beyond_the_bound_is_refused_and_never_cut_short():
    drawing = " ".join(["0", *(f"{n}<{n - 1}" for n in range(1, 100)), "x<0"])
    history = graph(drawing, max_history=50)
    for ask in (
        lambda: history.best_common_ancestors("99", "x"),
        lambda: history.is_ancestor("0", "99"),
        lambda: history.reachable_not_from("99", ["x"]),
    ):
        with pytest.raises(Refused) as refusal:
            ask()
        assert refusal.value.code == "history_too_long"
        assert refusal.value.facts == {"max_history": 50}
    assert history.is_ancestor("80", "99")
    assert len(history.reachable_not_from("49", [])) == 50
    assert len(history.log(["99"], 1000).ids) == 100


def test_what_lies_between_and_is_not_of_the_walk_is_stepped_over():
    others = " ".join(f"x{n}<{f'x{n - 1}' if n else 'r'}" for n in range(2000))
    history = graph(f"r a<r b<r {others} c<a d<b e<c,d f<e", max_history=20)
    assert history.best_common_ancestors("c", "d") == ("r",)
    assert history.best_common_ancestors("e", "d") == ("d",)
    assert history.reachable_not_from("e", ["a"]) == ["b", "c", "d", "e"]
    assert not history.is_ancestor("a", "d")
    assert history.is_ancestor("a", "f")
    assert history.reached("e", ["a", "x5", "b", "absent"]) == {"a", "b"}


def test_a_session_branch_meets_a_long_main_within_a_few_steps():
    drawing = " ".join(["0", *(f"{n}<{n - 1}" for n in range(1, 5000)), "s<4990 t<s"])
    history = graph(drawing, max_history=30)
    assert history.best_common_ancestors("t", "4999") == ("4990",)
    assert history.reachable_not_from("t", ["4999"]) == ["s", "t"]
    assert not history.is_ancestor("t", "4999")
