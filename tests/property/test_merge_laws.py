"""Whether it matters in which order three sides of one base are merged: where it does not, and where it does (4-history, three-way merge)."""

from __future__ import annotations

from typing import Any

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_git.domain.merge import merge_records
from memory_git.domain.record import Conflicted, Lineage, Record, sorted_attachments

WORDS = st.none() | st.sampled_from(["x", "y"])
NAMES = st.lists(st.sampled_from(["p", "q", "r"]), max_size=3).map(lambda names: tuple(sorted(set(names))))
NOTES = st.lists(st.sampled_from([{"note": "1"}, {"note": "2"}]), max_size=2).map(sorted_attachments)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "content": st.sampled_from(["Tabs.", "Spaces."]),
    "title": WORDS,
    "tags": NAMES,
    "kind": st.sampled_from(["fact", "decision"]),
    "status": st.sampled_from(["active", "disputed", "retracted"]),
    "visibility": st.sampled_from(["private", "internal", "public"]),
    "confidence": st.sampled_from([None, 0.0, 0.5]),
    "pinned": st.booleans(),
    "source_trust": st.sampled_from([None, "inference", "human"]),
    "approval": st.sampled_from([None, "user_approved"]),
    "evidence": NOTES,
    "lineage": st.builds(Lineage, NAMES, WORDS, NAMES, WORDS, WORDS),
}


@st.composite
def sides(draw: st.DrawFn) -> tuple[Record, list[Record]]:
    """Gives a base and three sides that each changed a few fields of it; its owner nobody changes."""
    base = Record("a", owner_principal="ada", **{name: draw(values) for name, values in VALUES.items()})
    changed = []
    for _ in range(3):
        names = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=3, unique=True))
        changed.append(replace(base, **{name: draw(VALUES[name]) for name in names}))
    return base, changed


def merged(base: Record, left: Record | None, right: Record | None) -> Record | None:
    """Gives the merge, or None where it, or one before it, is in conflict."""
    if left is None or right is None:
        return None
    found = merge_records(base, left, right)
    return None if isinstance(found, Conflicted) else found


@pytest.mark.slow
@given(sides())
@settings(max_examples=examples(400))
def test_three_sides_merge_to_one_record_in_whatever_order(drawn: tuple[Record, list[Record]]) -> None:
    base, (one, two, three) = drawn
    first = merged(base, merged(base, one, two), three)
    assert merged(base, one, merged(base, two, three)) == first
    assert merged(base, merged(base, one, three), two) == first


def test_the_order_matters_where_a_side_gives_its_memory_to_another() -> None:
    """No op gives a memory to another; if records came so, what is private of two owners would meet, or not, by the order."""
    base = Record("a", "Tabs.", owner_principal="ada", title="x")
    private, disowned = replace(base, visibility="private"), replace(base, owner_principal=None)
    titled = replace(base, title="y")
    assert merged(base, merged(base, private, disowned), titled) is None
    found = merged(base, private, merged(base, disowned, titled))
    assert found == replace(private, title="y")
