"""The semantic diff of two states: every section, and what must not show (4-history, semantic diff; 12-lessons)."""

from __future__ import annotations

from itertools import count
from time import process_time
from typing import Any

import pytest
from msgspec.structs import replace

from memory_git.domain.change import Change, EdgeChange, OpRef
from memory_git.domain.diff import SECTIONS, is_empty, semantic_diff, shorten
from memory_git.domain.projector import apply
from memory_git.domain.record import Edge, Lineage, Record
from memory_git.domain.state import MemoryState, freeze
from memory_git.domain.validate import check_ops

A = Record("a", "Tabs.", title="Indent", owner_principal="ada")
B = Record("b", "Spaces.", owner_principal="ada")
BY = OpRef("changeset-1", 3, "correct_memory", "a", None, {"title": "x"})
ALL_SECTIONS = {*SECTIONS, "kind_notes", "unresolved_conflicts"}


def but(record: Record, **changes: Any) -> Record:
    return replace(record, **changes)


def sections(*changes: Change, **more: Any) -> dict[str, list[str]]:
    """Gives the sections that hold something, with the memory ids in them."""
    diff = semantic_diff(changes, **more)
    assert diff.keys() == ALL_SECTIONS
    return {
        name: [item.get("memory_id", item.get("note")) for item in items]
        for name, items in diff.items()
        if items
    }


def change(before: Record | None, after: Record | None) -> Change:
    present = after or before
    assert present is not None
    return Change(present.memory_id, before, after, BY)


NEW = {
    "an addition": (A, {"memories_added"}),
    "a disputed addition": (but(A, status="disputed"), {"memories_added"}),
    "a private addition": (but(A, visibility="private"), {"memories_added"}),
    "a shared addition": (
        but(A, visibility="shared"),
        {"memories_added", "permissions_or_visibility_affected"},
    ),
    "a public addition": (
        but(A, visibility="public"),
        {"memories_added", "permissions_or_visibility_affected"},
    ),
    "a decision": (but(A, kind="decision"), {"memories_added", "decisions_changed"}),
    "a task": (but(A, kind="task"), {"memories_added", "tasks_or_flags_changed"}),
    "an event of a task": (but(A, event_type="task"), {"memories_added", "tasks_or_flags_changed"}),
    "a flag": (but(A, kind="flag"), {"memories_added", "tasks_or_flags_changed"}),
    "with evidence": (but(A, evidence=({"note": "x"},)), {"memories_added", "evidence_added_or_removed"}),
    "made and superseded again": (but(A, status="superseded"), set()),
    "made and corrected again": (but(A, status="corrected", lineage=Lineage(corrected_by="z")), set()),
    "made and retracted again": (but(A, status="retracted", kind="decision", visibility="public"), set()),
    "made and marked a duplicate again": (but(A, status="duplicate"), set()),
}


@pytest.mark.parametrize(("after", "expected"), NEW.values(), ids=NEW.keys())
def test_a_new_memory_shows_where_it_belongs_and_one_that_came_and_went_nowhere(
    after: Record, expected: set[str]
):
    assert sections(change(None, after)) == {name: ["a"] for name in expected}


CHANGED = {
    "content": ({"content": "x"}, {"corrections_proposed"}),
    "a tag": ({"tags": ("x",)}, {"corrections_proposed"}),
    "trust": ({"source_trust": "inference"}, {"corrections_proposed"}),
    "visibility": ({"visibility": "public"}, {"permissions_or_visibility_affected"}),
    "owner": ({"owner_principal": "bob"}, {"permissions_or_visibility_affected"}),
    "protection": ({"protected": True}, {"permissions_or_visibility_affected"}),
    "evidence": ({"evidence": ({"note": "x"},)}, {"evidence_added_or_removed"}),
    "verification": ({"verification": ({"note": "x"},)}, {"evidence_added_or_removed"}),
    "superseded": ({"status": "superseded", "lineage": Lineage(superseded_by="z")}, {"records_superseded"}),
    "corrected by what isn't shown": (
        {"status": "corrected", "lineage": Lineage(corrected_by="z")},
        {"records_superseded"},
    ),
    "a duplicate": ({"status": "duplicate", "lineage": Lineage(duplicate_of="b")}, {"duplicates_detected"}),
    "deprecated": ({"status": "deprecated", "status_reason": "x"}, {"statuses_changed"}),
    "retracted": ({"status": "retracted", "status_reason": "x"}, {"statuses_changed"}),
    "another reason only": ({"status_reason": "x"}, {"statuses_changed"}),
    "lineage only": ({"lineage": Lineage(supersedes=("z",))}, {"statuses_changed"}),
    "content and visibility": (
        {"content": "x", "visibility": "shared"},
        {"corrections_proposed", "permissions_or_visibility_affected"},
    ),
    "superseded, with another title": (
        {"status": "superseded", "title": "x"},
        {"records_superseded", "corrections_proposed"},
    ),
    "into a decision": ({"kind": "decision"}, {"corrections_proposed", "decisions_changed"}),
}


@pytest.mark.parametrize(("changes", "expected"), CHANGED.values(), ids=CHANGED.keys())
def test_a_changed_memory_shows_in_every_section_it_belongs_to(changes: dict[str, Any], expected: set[str]):
    diff = semantic_diff([change(A, but(A, **changes))])
    assert {name for name in SECTIONS if diff[name]} == expected


def test_a_memory_that_was_a_decision_still_counts_as_one():
    assert "decisions_changed" in sections(change(but(A, kind="decision"), but(A, kind="fact")))
    assert "tasks_or_flags_changed" in sections(change(but(A, kind="task"), but(A, kind="fact")))


def test_a_memory_that_is_gone_after_an_import_shows_as_a_status():
    assert sections(change(A, None)) == {"statuses_changed": ["a"]}
    assert sections(change(but(A, status="retracted"), None)) == {}


def test_an_item_carries_the_op_the_records_and_the_fields_that_changed():
    diff = semantic_diff([change(A, but(A, title="x"))])
    assert diff["corrections_proposed"] == [
        {
            "op_ordinal": 3,
            "op_type": "correct_memory",
            "changeset_id": "changeset-1",
            "target_event_id": "a",
            "resulting_event_id": None,
            "payload": {"title": "x"},
            "memory_id": "a",
            "summary": "x",
            "kind": "observation",
            "before": A.to_json(),
            "after": but(A, title="x").to_json(),
            "changed_fields": ["title"],
        }
    ]


# through the projector: what ops really lead to


def states(records: list[Record], *raw: dict[str, Any]) -> list[Change]:
    """Gives the changes that ops make of a state."""
    before = freeze(records)
    ops, faults = check_ops(list(raw), (f"fresh-{number}" for number in count()))
    applied = apply(before, ops, salts=lambda _: "0" * 32)
    assert (faults, applied.faults) == ([], [])
    after = MemoryState({**before.records, **applied.records})
    names = [name for name in applied.records if before.record(name) != after.record(name)]
    return [Change(name, before.records.get(name), after.records[name], BY) for name in names]  # type: ignore[arg-type]


def op(
    op_type: str, target: str | None = None, result: str | None = None, /, **payload: Any
) -> dict[str, Any]:
    return {"op_type": op_type, "target_event_id": target, "resulting_event_id": result, "payload": payload}


def test_a_correction_into_another_memory_is_one_update():
    diff = semantic_diff(states([A], op("correct_memory", "a", "n", content="Four spaces.")))
    assert [name for name in SECTIONS if diff[name]] == ["corrections_proposed"]
    (item,) = diff["corrections_proposed"]
    assert (item["before"], item["after"]["content"]) == (A.to_json(), "Four spaces.")
    assert item["changed_fields"] == ["content", "lineage.corrected_from", "memory_id", "source_trust"]
    assert diff["kind_notes"] == [{"note": "temporal_update", "memory_ids": ["a", "n"]}]


def test_steps_in_between_that_came_and_went_do_not_show():
    diff = semantic_diff(
        states(
            [A],
            op("correct_memory", "a", "n", content="Four spaces."),
            op("correct_memory", "n", "o", content="Two spaces."),
        )
    )
    (item,) = diff["corrections_proposed"]
    assert (item["memory_id"], item["before"]) == ("o", A.to_json())
    assert [name for name in SECTIONS if diff[name]] == ["corrections_proposed"]
    assert diff["kind_notes"] == [{"note": "temporal_update", "memory_ids": ["a", "o"]}]


def test_a_new_memory_corrected_before_anyone_saw_it_is_an_addition():
    diff = semantic_diff(
        states([], op("add_memory", None, "m", content="x"), op("correct_memory", "m", "n", content="y"))
    )
    assert [item["memory_id"] for item in diff["memories_added"]] == ["n"]
    assert [name for name in SECTIONS if diff[name]] == ["memories_added"]
    assert diff["kind_notes"] == []


def test_a_supersession_shows_who_left_and_who_came_in_its_place():
    diff = semantic_diff(states([A], op("supersede_memory", "a", "n", content="Spaces.")))
    assert [item["memory_id"] for item in diff["records_superseded"]] == ["a"]
    assert [(item["memory_id"], item["before"]) for item in diff["corrections_proposed"]] == [
        ("n", A.to_json())
    ]
    assert diff["memories_added"] == []


def test_a_successor_that_is_shown_more_widely_than_what_it_replaces_is_told():
    secret = but(A, visibility="private")
    widened = semantic_diff(
        states([secret], op("supersede_memory", "a", "n", content="x", visibility="internal"))
    )
    kept = semantic_diff(states([secret], op("supersede_memory", "a", "n", content="x")))
    assert [item["memory_id"] for item in widened["permissions_or_visibility_affected"]] == ["n"]
    assert kept["permissions_or_visibility_affected"] == []


def test_what_was_made_and_taken_back_leaves_an_empty_diff():
    made = states(
        [A],
        op("add_memory", None, "m", content="x"),
        op("set_status", "m", status="retracted", reason="x"),
        op("set_status", "a", status="disputed", reason="x"),
        op("set_status", "a", status="active"),
    )
    assert is_empty(semantic_diff(made))


def test_equal_states_have_an_empty_diff():
    diff = semantic_diff([])
    assert is_empty(diff)
    assert diff == {name: [] for name in ALL_SECTIONS}


def test_the_order_in_which_changes_come_makes_no_difference():
    changes = states(
        [A, B],
        op("correct_memory", "b", content="y"),
        op("supersede_memory", "a", "n", content="x"),
        op("add_memory", None, "z", content="z"),
    )
    assert semantic_diff(changes) == semantic_diff(changes[::-1])
    assert list(semantic_diff(changes)) == list(semantic_diff(changes[::-1]))


def test_relationships_are_sorted_by_from_kind_and_to():
    edges = [
        EdgeChange(Edge("b", "k", "a"), True, BY),
        EdgeChange(Edge("a", "l", "b"), True, BY),
        EdgeChange(Edge("a", "k", "c"), True, BY),
        EdgeChange(Edge("a", "k", "b"), False, BY),
    ]
    diff = semantic_diff([], edges)
    assert [(item["from_memory_id"], item["kind"]) for item in diff["relationships_added"]] == [
        ("a", "k"),
        ("a", "l"),
        ("b", "k"),
    ]
    assert [item["to_memory_id"] for item in diff["relationships_removed"]] == ["b"]
    assert not is_empty(diff)


def test_two_active_records_that_contradict_are_noted_once():
    changes = [change(None, A), change(None, B)]
    diff = semantic_diff(changes, contradicts=lambda record: [B if record is A else A])
    assert diff["kind_notes"] == [{"note": "direct_contradiction", "memory_ids": ["a", "b"]}]
    retired = change(A, but(A, status="superseded"))
    assert semantic_diff([retired], contradicts=lambda _: [B])["kind_notes"] == []


def test_unresolved_conflicts_are_those_that_are_handed_in():
    assert semantic_diff([], unresolved=[{"conflict_id": "0"}])["unresolved_conflicts"] == [
        {"conflict_id": "0"}
    ]


SHORTENED = {
    "short enough": ("abc", 3, "abc"),
    "white space is one space": ("a \n\t b", 9, "a b"),
    "cut": ("abcdef", 4, "abc\u2026"),
    "no space before the ellipsis": ("one two", 5, "one\u2026"),
    "not between a letter and its accent": ("abe\u0301f", 4, "ab\u2026"),
    "not between a letter and its vowel sign": ("ab\u0915\u093f", 4, "ab\u0915\u093f"),
    "not inside a Devanagari syllable": ("ab\u0915\u093fde", 4, "ab\u2026"),
    "not inside a joined emoji": ("a\U0001f468\u200d\U0001f469\u200d\U0001f467bcd", 5, "a\u2026"),
    "not before a skin tone": ("ab\U0001f44d\U0001f3fdcd", 4, "ab\u2026"),
    "not before a variation selector": ("ab\u2764\ufe0fcd", 4, "ab\u2026"),
    "not inside a flag": ("a\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7b", 5, "a\U0001f1e9\U0001f1ea\u2026"),
    "between two flags": ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7bc", 3, "\U0001f1e9\U0001f1ea\u2026"),
    "nothing but marks": ("\u0301" * 9, 4, "\u2026"),
}


@pytest.mark.parametrize(("text", "most", "expected"), SHORTENED.values(), ids=SHORTENED.keys())
def test_a_summary_is_cut_at_a_character_and_never_inside_one(text: str, most: int, expected: str):
    assert shorten(text, most) == expected


@pytest.mark.slow
def test_a_diff_of_ten_thousand_changes_is_made_in_linear_time():
    chain = [op("supersede_memory", f"m{n}", f"m{n + 1}", content=f"{n}") for n in range(5_000)]
    changes = states([Record("m0", "x")], *chain)
    changes += [change(None, Record(f"n{n}", "x")) for n in range(5_000)]
    began = process_time()
    diff = semantic_diff(changes)
    assert process_time() - began < 3
    assert len(diff["memories_added"]) == 5_000
    assert len(diff["corrections_proposed"]) == 1
