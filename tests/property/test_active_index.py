"""The index of active memories, brought along by changes, reads as one that is made of all at once, for every audience."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_git.domain.policy import VISIBILITIES, Audience
from memory_git.domain.state_root import memory_key
from memory_git.domain.trie import Entry
from memory_git.lethe import active
from memory_git.lethe.active import Active, ActiveIndex

NAMES = [f"m{number}" for number in range(12)]
AUDIENCES = [
    None,
    Audience("ann", frozenset()),
    Audience("ann", frozenset({"public", "internal"})),
    Audience("bob", frozenset({"shared", "private"})),
]


@st.composite
def memories(draw: st.DrawFn) -> Active:
    name = draw(st.sampled_from(NAMES))
    changed = draw(st.integers(1, 9))
    entry = Entry(memory_key(name), bytes(32), changed, 1, 1, changed)
    visibility = draw(st.sampled_from(VISIBILITIES))
    owner = draw(st.sampled_from(["ann", "bob", None]))
    status = draw(st.sampled_from(["active", "disputed"]))
    return Active(name, entry, visibility, owner, draw(st.booleans()), None, status)


changes = st.dictionaries(st.sampled_from(NAMES), st.none()) | st.lists(memories()).map(
    lambda items: {item.memory_id: item for item in items}
)


@given(st.lists(changes, max_size=12), st.integers(0, 20))
def test_it_reads_as_one_that_is_made_of_all_at_once(
    steps: list[dict[str, Active | None]], most: int
) -> None:
    index, held = ActiveIndex.over([], {}), dict[str, Active]()
    for step in steps:
        index = index.with_changes({memory_key(name): item for name, item in step.items()}, {}, most)
        held = {name: item for name, item in {**held, **step}.items() if item is not None}
    for audience in AUDIENCES:
        seen = [item for item in held.values() if not audience or audience.admits(*item.of_class)]
        assert list(index.ranked(audience)) == sorted(seen, key=Active.rank)
        assert index.count(audience) == len(seen)
        assert {name for name in NAMES if index.get(name, audience)} == {item.memory_id for item in seen}
        assert list(index.pinned(audience)) == [item for item in sorted(seen, key=Active.rank) if item.pinned]


def test_a_base_is_made_anew_when_more_lies_beside_it_than_may() -> None:
    entry = Entry(memory_key("a"), bytes(32), 1, 1, 1, 1)
    item = Active("a", entry, "public", None, False, None, "active")
    beside = ActiveIndex.over([], {}).with_changes({item.entry.key: item}, {})
    assert (list(beside.base), list(beside.beside)) == ([], [item.entry.key])
    worked_in = ActiveIndex.over([], {}).with_changes({item.entry.key: item}, {}, 0)
    assert (list(worked_in.base), list(worked_in.beside)) == ([item.entry.key], [])
    assert active.MOST_BESIDE > 0
