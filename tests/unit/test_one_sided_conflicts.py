"""Conflicts that one side raises alone, whole: identity, parties, severity (4-history, conflicts; FORMAT 9.8)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from msgspec.structs import replace

from memory_git.domain.change import Change, OpRef
from memory_git.domain.conflict import Authored, Conflict, Party, Side
from memory_git.domain.one_side import one_sided_conflicts
from memory_git.domain.record import Lineage, Record
from memory_git.domain.validate import check_ops

SECRET = Record("secret", "Ours.", visibility="private", owner_principal="ada")


def side(
    before: list[Record], after: list[Record], *changesets: Authored, twins: Collection[Record] = ()
) -> Side:
    known = {record.memory_id: record for record in before}
    now = {**known, **{record.memory_id: record for record in after}}
    changes = {
        name: Change(name, known.get(name), record, OpRef("by"), None, "d" * 64)
        for name, record in now.items()
        if known.get(name) != record
    }
    return Side("head", changes, changesets, lambda *_: list(twins), now.get)


def authored(*raw: dict[str, Any], **facts: Any) -> Authored:
    ops, faults = check_ops(list(raw), iter("fresh"))
    assert not faults
    known = {"ref_name": "refs/agents/builder/main", "actor_id": "builder", "topic_id": "t", **facts}
    return Authored("c-1", "atlas", known["ref_name"], known["actor_id"], known["topic_id"], tuple(ops))


def found(side: Side, name: str = "left") -> list[Conflict]:
    return list(one_sided_conflicts(side, name))


def add(**payload: Any) -> dict[str, Any]:
    return {"op_type": "add_memory", "payload": {"content": "x", **payload}}


@pytest.mark.parametrize("name", ["left", "right"])
@pytest.mark.parametrize(
    ("payload", "boundary", "severity"),
    [
        ({"project_id": "other"}, "project", "blocking"),
        ({"topic_id": "other"}, "topic", "warning"),
        ({"actor_id": "other"}, "actor", "warning"),
    ],
)
def test_a_payload_that_names_anothers_place_is_told_with_its_op(
    payload: dict[str, str], boundary: str, severity: str, name: str
) -> None:
    party = (Party("", None, "", "c-1"),)
    assert found(side([], [], authored(add(), add(**payload))), name) == [
        Conflict(
            "boundary_violation",
            severity,
            {"changeset_id": "c-1", "ordinal": 1, "boundary": boundary, "side": name},
            (),
            party if name == "left" else (),
            party if name == "right" else (),
            f"the {boundary} is not the changeset's",
        )
    ]


@pytest.mark.parametrize("space", ["agents", "sessions"])
def test_a_ref_of_anothers_is_told_with_its_changeset(space: str) -> None:
    (told,) = found(side([], [], authored(add(), ref_name=f"refs/{space}/other/main")))
    assert told.severity == "blocking"
    assert told.identity == {"changeset_id": "c-1", "ordinal": None, "boundary": "namespace", "side": "left"}


@pytest.mark.parametrize(
    "facts",
    [
        {"actor_id": None, "ref_name": "refs/agents/other/main"},
        {"ref_name": "refs/topics/other"},
        {"ref_name": "refs/shared/main"},
    ],
    ids=["no actor to compare", "a topic's ref", "the shared ref"],
)
def test_what_names_no_other_owner_is_no_violation(facts: dict[str, Any]) -> None:
    assert (
        found(side([], [], authored(add(topic_id="t", actor_id="builder"), **facts)))
        == [
            # An actor that the changeset does not name can't disagree with it.
        ]
    )


@pytest.mark.parametrize("name", ["left", "right"])
def test_what_is_shown_more_widely_is_told_whole(name: str) -> None:
    public = replace(SECRET, visibility="public")
    party = (Party("secret", "d" * 64, "Ours.", "by"),)
    assert found(side([SECRET], [public]), name) == [
        Conflict(
            "scope_flow",
            "blocking",
            {"memory_id": "secret", "side": name},
            ("secret",),
            party if name == "left" else (),
            party if name == "right" else (),
            "would be shown as public, from private",
        )
    ]


def test_a_flow_from_what_it_came_from_is_told_once_when_it_comes() -> None:
    heir = Record("heir", "Theirs.", visibility="public", lineage=Lineage(supersedes=("secret",)))
    retired = replace(SECRET, status="superseded", lineage=Lineage(superseded_by="heir"))
    assert [item.memory_ids for item in found(side([SECRET], [retired, heir]))] == [("heir",)]
    assert found(side([retired, heir], [replace(heir, title="Later")])) == []
    joined = replace(heir, lineage=Lineage(corrected_from=("other",), supersedes=("secret",)))
    other = replace(SECRET, memory_id="other")
    assert [item.memory_ids for item in found(side([retired, other, heir], [joined]))] == [("heir",)]


def test_a_flow_counts_from_what_stood_at_the_base_though_the_origin_was_opened_too() -> None:
    opened = replace(SECRET, visibility="public")
    heir = Record("heir", "Theirs.", visibility="public", lineage=Lineage(corrected_from=("secret",)))
    told = found(side([SECRET], [opened, heir]))
    assert {item.memory_ids: item.severity for item in told} == {
        ("secret",): "blocking",
        ("heir",): "blocking",
    }
    new = replace(opened, memory_id="new")
    assert found(side([], [new, replace(heir, lineage=Lineage(corrected_from=("new",)))])) == []


def test_a_private_text_that_is_said_again_in_the_open_flows() -> None:
    again = Record("again", "OURS.", visibility="internal")
    assert [item.memory_ids for item in found(side([SECRET], [again], twins=[SECRET]))] == [("again",)]
    assert found(side([SECRET], [replace(again, content="Yours.")], twins=[SECRET])) == []
    mine = replace(again, visibility="private", owner_principal="ada")
    assert found(side([SECRET], [mine], twins=[SECRET])) == []
    assert len(found(side([SECRET], [replace(mine, owner_principal="bob")], twins=[SECRET]))) == 1


def test_of_several_origins_the_private_one_says_how_severe_it_is() -> None:
    shared = Record("a-shared", "Theirs.", visibility="internal")
    heir = Record("heir", "All.", visibility="public", lineage=Lineage(supersedes=("a-shared", "secret")))
    (told,) = found(side([shared, SECRET], [heir]))
    assert (told.severity, told.detail) == ("blocking", "would be shown as public, from private")


def test_the_same_text_that_was_not_private_flows_nowhere() -> None:
    twin = Record("twin", "Ours.", visibility="internal")
    assert found(side([twin], [Record("again", "Ours.", visibility="public")], twins=[twin])) == []


def test_what_is_new_or_gone_hides_nothing_behind_it() -> None:
    approved = Record("z", "Tabs.", approval="user_approved", visibility="private", owner_principal="ada")
    changed = replace(approved, content="Spaces.", visibility="public")
    ops = {"op_type": "correct_memory", "target_event_id": "z", "payload": {"content": "Spaces."}}
    seen = side([approved], [Record("a", "New."), changed], authored(ops))
    gone = Change("b", Record("b", "Gone."), None, OpRef("by"))
    changes = {"b": gone, "a": seen.changes["a"], "z": seen.changes["z"]}
    told = found(Side("head", changes, seen.changesets, seen.claims, seen.record))
    assert [(item.conflict_type, item.memory_ids) for item in told] == [
        ("trust_downgrade", ("z",)),
        ("scope_flow", ("z",)),
    ]
    assert told[0].detail == "an inference changed what a user approved"
