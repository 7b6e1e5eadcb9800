"""What a conflict holds besides the names of its fields, and approvals beside it (4-history, three-way merge)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memory_git.domain.merge import merge_records, unsettled_to_json
from memory_git.domain.record import Conflicted, Lineage, Record

BASE = Record("a", "Tabs.", title="Indent", owner_principal="ada", source_trust="human")


def conflict(left: Record, right: Record, base: Record | None = BASE) -> Conflicted:
    found = merge_records(base, left, right)
    assert isinstance(found, Conflicted)
    return found


def test_a_field_in_conflict_stands_with_the_first_sides_value_until_it_is_answered():
    left = replace(BASE, content="Two tabs.", lineage=Lineage(corrected_by="l"))
    right = replace(BASE, content="Three tabs.", lineage=Lineage(corrected_by="r"))
    found = conflict(left, right)
    assert found.fields == {"content", "lineage.corrected_by"}
    assert (found.merged.content, found.merged.lineage) == ("Two tabs.", Lineage(corrected_by="l"))


@pytest.mark.parametrize("field", ["content", "title", "confidence", "valid_to"])
def test_an_approval_is_open_while_what_it_covers_is_in_conflict(field: str):
    values = {"content": ("x", "y"), "title": ("x", "y"), "confidence": (0.1, 0.2), "valid_to": ("x", "y")}
    one, two = values[field]
    approved = replace(BASE, approval="user_approved", **{field: one})
    for left, right in (
        (approved, replace(BASE, **{field: two})),
        (replace(BASE, **{field: two}), approved),
    ):
        assert conflict(left, right).fields == {field, "approval"}


def test_an_approval_stays_closed_while_what_is_in_conflict_is_none_of_its_words():
    left = replace(BASE, approval="user_approved", visibility="public")
    assert conflict(left, replace(BASE, visibility="shared")).fields == {"visibility"}


@pytest.mark.parametrize("name", ["evidence", "verification"])
def test_an_attachment_goes_along_with_a_retirement(name: str):
    attached = replace(BASE, **{name: ({"note": "seen"},)})
    retired = replace(BASE, status="retracted", status_reason="wrong")
    expected = replace(retired, **{name: ({"note": "seen"},)})
    assert merge_records(BASE, attached, retired) == merge_records(BASE, retired, attached) == expected


def test_the_base_is_told_with_both_sides():
    left, right = replace(BASE, content="x"), replace(BASE, content="y")
    assert unsettled_to_json(conflict(left, right)) == {
        "memory_id": "a",
        "fields": ["content"],
        "base": BASE.to_json(),
        "left": left.to_json(),
        "right": right.to_json(),
    }
