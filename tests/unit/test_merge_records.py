"""The three-way merge of one memory: the thirteen cases, and what is never merged in silence (4-history, three-way merge)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from memory_git.domain import merge
from memory_git.domain.merge import (
    changed_fields,
    merge_field,
    merge_records,
    stands_merged,
    unsettled_to_json,
)
from memory_git.domain.record import FIELD_NAMES, Conflicted, Lineage, Record

BASE = Record(
    "a", "Tabs.", title="Indent", tags=("style",), sources=("s",), owner_principal="ada", source_trust="human"
)


def but(record: Record = BASE, **changes: Any) -> Record:
    return replace(record, **changes)


RETIRED = but(status="superseded", lineage=Lineage(superseded_by="b"))

# case, base, left, right, the merged record or the fields in conflict
CASES: dict[str, tuple[Record | None, Record, Record, Record | set[str]]] = {
    "1 changed the same way on both sides": (BASE, but(content="x"), but(content="x"), but(content="x")),
    "1 not changed at all": (BASE, BASE, BASE, BASE),
    "1 added alike on both sides": (None, BASE, BASE, BASE),
    "2 changed on the right": (BASE, BASE, but(content="x"), but(content="x")),
    "2 retired on the right": (BASE, BASE, RETIRED, RETIRED),
    "3 changed on the left": (BASE, but(content="x"), BASE, but(content="x")),
    "4 added with other content": (None, BASE, but(content="x"), {"content"}),
    "4 added with a field that one side left out": (None, BASE, but(title=None), {"title"}),
    "4 added with other tags": (None, but(tags=("l",)), but(tags=("r",)), but(tags=("l", "r"))),
    "4 added with another visibility": (None, BASE, but(visibility="public"), {"visibility"}),
    "4 one side retired it at once": (None, BASE, RETIRED, {"status", "lineage.superseded_by"}),
    "6a sets take what was added on both sides": (
        BASE,
        but(tags=("l", "style")),
        but(tags=("r", "style")),
        but(tags=("l", "r", "style")),
    ),
    "6a sets lose what either side took away": (
        but(tags=("a", "b", "c")),
        but(tags=("a", "b")),
        but(tags=("b", "c")),
        but(tags=("b",)),
    ),
    "6a added here, taken away there": (BASE, but(tags=("l", "style")), but(tags=()), but(tags=("l",))),
    "6a sources are a set too": (BASE, but(sources=("l", "s")), but(sources=()), but(sources=("l",))),
    "6a attachments are a set too": (
        but(evidence=({"note": "0"},)),
        but(evidence=({"note": "0"}, {"note": "1"})),
        but(evidence=({"note": "2"},)),
        but(evidence=({"note": "1"}, {"note": "2"})),
    ),
    "6a lineage lists are sets too": (
        BASE,
        but(lineage=Lineage(supersedes=("x",))),
        but(lineage=Lineage(supersedes=("y",), corrected_from=("z",))),
        but(lineage=Lineage(supersedes=("x", "y"), corrected_from=("z",))),
    ),
    "6b each side changed another field": (
        BASE,
        but(content="x"),
        but(title="y"),
        but(content="x", title="y"),
    ),
    "6b both changed one field alike, one another": (
        BASE,
        but(content="x", scope="s"),
        but(content="x"),
        but(content="x", scope="s"),
    ),
    "6b one side emptied a field": (BASE, but(title=None), but(content="x"), but(content="x", title=None)),
    "6c one field changed differently": (BASE, but(content="x"), but(content="y"), {"content"}),
    "6c changed against emptied": (BASE, but(title="x"), but(title=None), {"title"}),
    "6c two fields changed differently": (
        BASE,
        but(content="x", title="x"),
        but(content="y", title="y"),
        {"content", "title"},
    ),
    "6c two statuses": (
        BASE,
        but(status="disputed", status_reason="l"),
        but(status="deprecated", status_reason="r"),
        {"status", "status_reason"},
    ),
    "6c two successors": (
        BASE,
        RETIRED,
        but(RETIRED, lineage=Lineage(superseded_by="c")),
        {"lineage.superseded_by"},
    ),
    "6c widened here, narrowed there": (
        BASE,
        but(visibility="public"),
        but(visibility="private"),
        {"visibility"},
    ),
    "6g retired against changed content": (BASE, RETIRED, but(content="x"), {"status"}),
    "6g changed content against retired": (BASE, but(content="x"), RETIRED, {"status"}),
    "6g retired against a tag": (BASE, RETIRED, but(tags=("x",)), {"status"}),
    "6g retired against disputed": (BASE, RETIRED, but(status="disputed", status_reason="r"), {"status"}),
    "6g retracted against superseded": (BASE, but(status="retracted"), RETIRED, {"status"}),
    "6g not: retired against evidence only": (
        BASE,
        RETIRED,
        but(evidence=({"note": "x"},)),
        but(RETIRED, evidence=({"note": "x"},)),
    ),
    "6g not: a retired memory came back, and got a tag": (
        RETIRED,
        BASE,
        but(RETIRED, tags=("x",)),
        but(tags=("x",)),
    ),
    "6g not: active in one way and another": (
        BASE,
        but(status="disputed", status_reason="l"),
        but(content="x"),
        but(content="x", status="disputed", status_reason="l"),
    ),
    "6d the least trust, though one side only raised it": (
        but(source_trust="inference"),
        but(source_trust="inference", title="x"),
        but(source_trust="verified", content="y"),
        but(source_trust="inference", title="x", content="y"),
    ),
    "6e an approval of the old words": (BASE, but(approval="user_approved"), but(content="x"), {"approval"}),
    "6e an approval of the very words": (
        BASE,
        but(approval="user_approved", content="x"),
        but(tags=("x",)),
        but(approval="user_approved", content="x", tags=("x",)),
    ),
    "6f a private memory of two owners": (
        None,
        but(visibility="private"),
        but(visibility="private", owner_principal="bob"),
        {"owner_principal"},
    ),
    "5 an ambiguous base is none": (None, but(content="x"), but(content="y", tags=()), {"content"}),
}


@pytest.mark.parametrize(("base", "left", "right", "expected"), CASES.values(), ids=CASES.keys())
def test_a_case_of_the_table(base: Record | None, left: Record, right: Record, expected: Record | set[str]):
    for one, two in ((left, right), (right, left)):
        found = merge_records(base, one, two)
        if isinstance(expected, Record):
            assert found == expected
        else:
            assert isinstance(found, Conflicted)
            assert found.fields >= expected
            assert found.fields - expected <= {"status_reason", "lineage.superseded_by"}
            assert (found.base, found.left, found.right) == (base, one, two)


@pytest.mark.parametrize(
    "name", sorted(set(FIELD_NAMES) - {"memory_id", "lineage", "tags", "sources", "evidence", "verification"})
)
def test_every_scalar_field_changed_differently_is_in_conflict_or_a_matter_of_authority(name: str):
    values: dict[str, tuple[Any, Any]] = {
        "kind": ("fact", "decision"),
        "visibility": ("private", "public"),
        "status": ("disputed", "deprecated"),
        "confidence": (0.1, 0.2),
        "protected": (True, None),
        "pinned": (True, None),
        "extra": ({"k": 1}, {"k": 2}),
        "approval": ("user_approved", "other"),
        "source_trust": ("inference", "verified"),
    }
    one, two = values.get(name, ("x", "y"))
    found = merge_records(BASE, but(**{name: one}), but(**{name: two}))
    if name == "source_trust":
        assert isinstance(found, Record)
        assert found.source_trust == "inference"
    elif name == "owner_principal":
        assert isinstance(found, Record)
        assert found.owner_principal == "x"
    else:
        assert isinstance(found, Conflicted)
        assert name in found.fields


# base, left, right: whether it stands
RELATIONSHIPS = {
    "8 on neither side, never": (False, False, False, False),
    "8 made on both sides": (False, True, True, True),
    "8 on both sides, as before": (True, True, True, True),
    "8 taken away on both sides": (True, False, False, False),
    "9 made on the left": (False, True, False, True),
    "9 made on the right": (False, False, True, True),
    "9 taken away on the left": (True, False, True, False),
    "9 taken away on the right": (True, True, False, False),
}


@pytest.mark.parametrize(
    ("base", "left", "right", "stands"), RELATIONSHIPS.values(), ids=RELATIONSHIPS.keys()
)
def test_a_relationship_stands_as_the_side_has_it_that_changed_it(
    base: bool, left: bool, right: bool, stands: bool
):
    assert stands_merged(base, left, right) == stands_merged(base, right, left) == stands


def test_every_case_of_the_table_has_a_row():
    told = set(re.findall(r"^ +(\d[a-g]?) ", merge.__doc__ or "", re.MULTILINE))
    rows = {name.split()[0] for name in (*CASES, *RELATIONSHIPS)}
    assert told == rows | {"6", "7"}, "6 is its parts, 7 is nothing to merge"
    assert len(told - {"6", "8", "9"}) == 13


# authority

APPROVED = but(approval="user_approved")


def test_an_approval_given_to_the_old_words_is_not_merged_onto_new_ones():
    for left, right in ((APPROVED, but(content="New.")), (but(content="New."), APPROVED)):
        found = merge_records(BASE, left, right)
        assert isinstance(found, Conflicted)
        assert found.fields == {"approval"}


APPROVALS = {
    "given beside a tag": (BASE, APPROVED, but(tags=("x",)), "user_approved"),
    "given on both sides": (BASE, APPROVED, but(APPROVED, tags=("x",)), "user_approved"),
    "lost by a change of the words": (APPROVED, but(content="New."), but(APPROVED, tags=("x",)), None),
    "given to the new words": (BASE, but(APPROVED, content="New."), but(tags=("x",)), "user_approved"),
}


@pytest.mark.parametrize(("base", "left", "right", "approval"), APPROVALS.values(), ids=APPROVALS.keys())
def test_an_approval_is_merged_with_the_words_it_was_given_to(
    base: Record, left: Record, right: Record, approval: str | None
):
    for one, two in ((left, right), (right, left)):
        found = merge_records(base, one, two)
        assert isinstance(found, Record)
        assert found.approval == approval


def test_words_mixed_of_two_approved_versions_were_approved_by_nobody():
    found = merge_records(
        but(title="Base"), but(APPROVED, title="Base", content="Left."), but(APPROVED, title="Right")
    )
    assert isinstance(found, Conflicted)
    assert found.fields == {"approval"}


def test_trust_is_the_least_of_both_sides_also_where_one_has_not_changed_it():
    found = merge_records(BASE, but(content="x", source_trust="inference"), but(title="y"))
    assert isinstance(found, Record)
    assert found.source_trust == "inference"
    raised = merge_records(
        but(source_trust="inference"), but(title="y", source_trust="inference"), but(content="x")
    )
    assert isinstance(raised, Record)
    assert raised.source_trust == "inference"


OWNERS = {
    "both private": (
        but(visibility="private"),
        but(visibility="private", owner_principal="bob"),
        {"owner_principal"},
    ),
    "one private": (but(visibility="private"), but(owner_principal="bob"), {"owner_principal", "visibility"}),
    "none private": (BASE, but(owner_principal="bob"), None),
    "one without owner": (but(owner_principal=None), but(tags=("x",)), None),
}


@pytest.mark.parametrize(("left", "right", "fields"), OWNERS.values(), ids=OWNERS.keys())
def test_a_private_memory_never_changes_hands_by_a_merge(
    left: Record, right: Record, fields: set[str] | None
):
    found = merge_records(None, left, right)
    if fields is None:
        assert isinstance(found, Record)
        assert found.owner_principal == "ada"
    else:
        assert isinstance(found, Conflicted)
        assert found.fields == fields


def test_a_visibility_widened_by_nobody_stays_as_it_was():
    narrowed = merge_records(BASE, but(visibility="private"), but(content="x"))
    assert isinstance(narrowed, Record)
    assert narrowed.visibility == "private"


# the small parts

FIELDS = {
    "same": (1, 2, 2, 2),
    "left only": (1, 2, 1, 2),
    "right only": (1, 1, 2, 2),
    "none": (1, 1, 1, 1),
}


@pytest.mark.parametrize(("base", "left", "right", "expected"), FIELDS.values(), ids=FIELDS.keys())
def test_one_field(base: int, left: int, right: int, expected: int):
    assert merge_field(base, left, right) == expected


def test_changed_fields_are_named_sorted_and_lineage_by_its_parts():
    assert changed_fields(BASE, RETIRED) == ["lineage.superseded_by", "status"]
    assert changed_fields(BASE, but(title="x", content="y")) == ["content", "title"]
    assert changed_fields(BASE, BASE) == []
    assert changed_fields(None, Record("a", "x")) == ["content", "kind", "memory_id", "status", "visibility"]
    assert changed_fields(None, None) == []


def test_the_wire_form_of_what_must_be_answered_holds_all_three_records():
    found = merge_records(None, BASE, but(content="x"))
    assert isinstance(found, Conflicted)
    assert unsettled_to_json(found) == {
        "memory_id": "a",
        "fields": ["content"],
        "base": None,
        "left": BASE.to_json(),
        "right": but(content="x").to_json(),
    }
