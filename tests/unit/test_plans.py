"""Cherry-pick, rebase and revert: what they copy, what they refuse, and that nothing later is lost (4-history, shapes)."""

from __future__ import annotations

from itertools import count
from time import process_time
from typing import Any

import pytest

from memory_git.domain.change import Change, EdgeChange, OpRef
from memory_git.domain.merge import changed_fields
from memory_git.domain.ops import Op
from memory_git.domain.plans import Plan, Source, cherry_pick, rebase, revert
from memory_git.domain.projector import apply
from memory_git.domain.record import Edge, Lineage, Record, attachment_digest
from memory_git.domain.revert import Reverted
from memory_git.domain.state import MemoryState, freeze
from memory_git.domain.validate import check_ops

BY = OpRef("changeset-1", 0)
A = Record(
    "a",
    "Tabs.",
    title="Indent",
    tags=("style",),
    evidence=({"note": "old"},),
    owner_principal="ada",
    source_trust="human",
)
B = Record("b", "Spaces.", source_trust="human")


def salts(memory_id: str) -> str:
    return memory_id.encode().hex().ljust(32, "0")[:32]


def op(
    op_type: str, target: str | None = None, result: str | None = None, /, **payload: Any
) -> dict[str, Any]:
    return {"op_type": op_type, "target_event_id": target, "resulting_event_id": result, "payload": payload}


def status(memory_id: str, to: str, **more: Any) -> dict[str, Any]:
    return op("set_status", memory_id, status=to, **({} if to == "active" else {"reason": "So."}), **more)


def read(*raw: dict[str, Any]) -> list[Op]:
    ops, faults = check_ops([dict(item) for item in raw], (f"fresh-{number}" for number in count()))
    assert faults == []
    return ops


def after(state: MemoryState, *raw: Any) -> MemoryState:
    applied = apply(state, read(*raw), salts=salts)
    assert applied.faults == []
    edges = {*state.edges, *(edge for edge, stands in applied.edges.items() if stands)}
    edges -= {edge for edge, stands in applied.edges.items() if not stands}
    return MemoryState({**state.records, **applied.records}, frozenset(edges))


def planned(state: MemoryState, plan: Plan) -> MemoryState:
    """Gives the state after all steps of a plan that refuses nothing."""
    assert plan.refused == []
    for step in plan.steps:
        state = after(state, *step.ops)
    return state


def changes(before: MemoryState, now: MemoryState) -> tuple[list[Change], list[EdgeChange]]:
    names = sorted(now.records.keys() | before.records.keys())
    found = [
        Change(name, before.records.get(name), now.records.get(name), BY)  # type: ignore[arg-type]
        for name in names
        if before.records.get(name) != now.records.get(name)
    ]
    edges = [EdgeChange(edge, edge in now.edges, BY) for edge in sorted(before.edges ^ now.edges)]
    return found, edges


def reverted(before: MemoryState, now: MemoryState, onto: MemoryState) -> Plan:
    return revert(onto, Reverted("changeset-1", "Something"), *changes(before, now), salts=salts)


# revert restores

TOMBSTONE = Record("a", "Tabs.", status="retracted", status_reason="So.", source_trust="human")
SUPERSEDED = Record("a", "1", status="superseded", lineage=Lineage(superseded_by="b"), source_trust="human")
HEIR = Record("b", "2", lineage=Lineage(supersedes=("a",)), source_trust="human")
DUPLICATE = Record("a", "x", status="duplicate", lineage=Lineage(duplicate_of="b"), source_trust="human")
OLD_NOTE = attachment_digest(salts("a"), {"note": "old"})

RESTORED: dict[str, tuple[list[Record], list[dict[str, Any]]]] = {
    "correct_memory of content": ([A], [op("correct_memory", "a", content="x")]),
    "correct_memory that emptied": ([A], [op("correct_memory", "a", clear=["tags", "title"])]),
    "correct_memory that set": (
        [A],
        [op("correct_memory", "a", scope="x", confidence=0, pinned=True, extra={"k": 1})],
    ),
    "correct_memory of visibility": ([A], [op("correct_memory", "a", visibility="private")]),
    "correct_memory into another": ([A], [op("correct_memory", "a", "n", content="x")]),
    "supersede_memory with a successor": ([A], [op("supersede_memory", "a", "n", content="x")]),
    "supersede_memory by nothing": ([A], [op("supersede_memory", "a")]),
    "a chain of successors": (
        [A],
        [op("supersede_memory", "a", "n", content="x"), op("correct_memory", "n", "o", content="y")],
    ),
    "a chain of corrections": (
        [A],
        [op("correct_memory", "a", "n", content="x"), op("correct_memory", "n", "b", content="y")],
    ),
    "a correction of what was corrected before": (
        [
            Record("a", "1", status="corrected", lineage=Lineage(corrected_by="n"), source_trust="human"),
            Record("n", "2", lineage=Lineage(corrected_from=("a",)), source_trust="human"),
        ],
        [op("correct_memory", "n", "b", content="3"), status("b", "disputed")],
    ),
    "a return from a correction": (
        [
            Record("a", "1", status="corrected", lineage=Lineage(corrected_by="n"), source_trust="human"),
            Record(
                "n",
                "2",
                title="t",
                tags=("x",),
                evidence=({"note": "y"},),
                lineage=Lineage(corrected_from=("a",)),
                source_trust="human",
            ),
        ],
        [status("n", "retracted"), status("a", "active")],
    ),
    "a return from a correction that was retracted": (
        [
            Record("a", "1", status="corrected", lineage=Lineage(corrected_by="n"), source_trust="human"),
            Record(
                "n",
                "2",
                status="retracted",
                status_reason="So.",
                lineage=Lineage(corrected_from=("a",)),
                source_trust="human",
            ),
        ],
        [status("a", "active")],
    ),
    "mark_duplicate": ([A, B], [op("mark_duplicate", "a", "b")]),
    "mark_duplicate of a disputed one": (
        [Record("a", "x", status="disputed", status_reason="Hm.", source_trust="human"), B],
        [op("mark_duplicate", "a", "b")],
    ),
    "add_relationship": ([A, B], [op("add_relationship", "a", "b", kind="k")]),
    "propose_deprecation": ([A], [op("propose_deprecation", "a", reason="Old.")]),
    "set_status disputed": ([A], [status("a", "disputed")]),
    "set_status deprecated over disputed": (
        [Record("a", "x", status="disputed", status_reason="Hm.", source_trust="human")],
        [status("a", "deprecated")],
    ),
    "set_status retracted": ([A], [status("a", "retracted")]),
    "set_status active over a proposal": (
        [Record("a", "x", status="deprecation_proposed", status_reason="Hm.", source_trust="human")],
        [status("a", "active")],
    ),
    "set_status active over a duplicate": ([DUPLICATE, B], [status("a", "active")]),
    "retraction of a duplicate": ([DUPLICATE, B], [status("a", "retracted")]),
    "retraction of a superseded one": ([SUPERSEDED, HEIR], [status("a", "retracted")]),
    "revival": ([TOMBSTONE], [status("a", "active", revive=True)]),
    "revival with other content": ([TOMBSTONE], [op("correct_memory", "a", content="x", revive=True)]),
    "attach_evidence": ([A], [op("attach_evidence", "a", note="new", source="log")]),
    "attach_verification": ([A], [op("attach_verification", "a", status="passed")]),
    "attach_verification in the words of evidence": ([A], [op("attach_verification", "a", note="old")]),
    "detach": ([A], [op("detach", "a", attachment_digest=OLD_NOTE)]),
    "many at once": (
        [A, B],
        [
            op("correct_memory", "a", content="x", tags=["y"]),
            status("a", "disputed"),
            op("attach_evidence", "a", note="new"),
            op("add_relationship", "a", "b", kind="k"),
            op("mark_duplicate", "b", "a"),
        ],
    ),
}


@pytest.mark.parametrize(("records", "ops"), RESTORED.values(), ids=RESTORED.keys())
def test_a_revert_restores_the_former_records(records: list[Record], ops: list[dict[str, Any]]):
    before = freeze(records)
    now = after(before, *ops)
    restored = planned(now, reverted(before, now, now))
    for memory_id, former in before.records.items():
        found = restored.records[memory_id]
        assert isinstance(found, Record)
        assert set(changed_fields(former, found)) <= {"source_trust"}  # type: ignore[arg-type]
    assert restored.edges == before.edges
    made = restored.records.keys() - before.records.keys()
    assert all(restored.records[name].status == "retracted" for name in made)  # type: ignore[union-attr]


@pytest.mark.parametrize(("records", "ops"), RESTORED.values(), ids=RESTORED.keys())
def test_a_revert_of_a_revert_brings_the_change_back(records: list[Record], ops: list[dict[str, Any]]):
    before = freeze(records)
    now = after(before, *ops)
    taken = planned(now, reverted(before, now, now))
    again = planned(taken, reverted(now, taken, taken))
    for memory_id, wanted in now.records.items():
        found = again.records[memory_id]
        assert isinstance(wanted, Record)
        assert isinstance(found, Record)
        assert (found.content, found.tags, found.status) == (wanted.content, wanted.tags, wanted.status)
    assert again.edges == now.edges


def test_a_revert_of_an_addition_retracts_it():
    before, now = freeze([]), after(freeze([]), op("add_memory", None, "m", content="x"))
    restored = planned(now, reverted(before, now, now))
    assert restored.records["m"].status == "retracted"  # type: ignore[union-attr]
    assert reverted(before, now, restored).steps[0].ops == ()


def test_a_revert_of_a_removed_relationship_adds_it_again():
    before = MemoryState({"a": A, "b": B}, frozenset({Edge("a", "k", "b")}))
    now = after(before, op("remove_relationship", "a", "b", kind="k"))
    assert planned(now, reverted(before, now, now)).edges == before.edges


def test_a_relationship_that_was_removed_since_needs_no_op():
    before = freeze([A, B])
    now = after(before, op("add_relationship", "a", "b", kind="k"))
    onto = after(now, op("remove_relationship", "a", "b", kind="k"))
    assert reverted(before, now, onto).steps[0].ops == ()


def test_every_op_of_a_revert_names_the_changeset_that_it_takes_back():
    before = freeze([A, B])
    now = after(before, op("correct_memory", "a", content="x"), op("add_relationship", "a", "b", kind="k"))
    (step,) = reverted(before, now, now).steps
    assert step.source_changeset_id == "changeset-1"
    assert step.message == 'Revert "Something"'
    assert [item["payload"]["source_changeset_id"] for item in step.ops] == ["changeset-1"] * 2


# revert loses nothing that came later

LATER = {
    "another field": ([op("correct_memory", "a", title="Later")], {"title": "Later"}),
    "a tag": ([op("correct_memory", "a", tags=["later", "style"])], {"tags": ("later", "style")}),
    "evidence": (
        [op("attach_evidence", "a", note="later")],
        {"evidence": ({"note": "later"}, {"note": "old"})},
    ),
    "a dispute": ([status("a", "disputed")], {"status": "disputed", "status_reason": "So."}),
}


@pytest.mark.parametrize(("later", "kept"), LATER.values(), ids=LATER.keys())
def test_a_revert_keeps_what_was_changed_beside_it_since(later: list[dict[str, Any]], kept: dict[str, Any]):
    before = freeze([A])
    now = after(before, op("correct_memory", "a", content="x"))
    restored = planned(after(now, *later), reverted(before, now, after(now, *later))).records["a"]
    assert isinstance(restored, Record)
    assert restored.content == A.content
    assert {name: getattr(restored, name) for name in kept} == kept


CHANGE_CONTENT = op("correct_memory", "a", content="x")
LOST: dict[str, tuple[list[Record], dict[str, Any], list[dict[str, Any]], list[str]]] = {
    "the same field again": ([A], CHANGE_CONTENT, [op("correct_memory", "a", content="y")], ["content"]),
    "superseded since": ([A], CHANGE_CONTENT, [op("supersede_memory", "a", "n", content="y")], ["status"]),
    "retracted since": ([A], CHANGE_CONTENT, [status("a", "retracted")], ["status"]),
    "an added one corrected since": (
        [],
        op("add_memory", None, "a", content="x"),
        [op("correct_memory", "a", content="y")],
        ["status"],
    ),
    "an added one superseded since": (
        [],
        op("add_memory", None, "a", content="x"),
        [op("supersede_memory", "a", "n", content="y")],
        ["status"],
    ),
    "an added one disputed since": (
        [],
        op("add_memory", None, "a", content="x"),
        [status("a", "disputed")],
        ["status", "status_reason"],
    ),
    "a retirement revised since": (
        [A, B],
        op("mark_duplicate", "a", "b"),
        [status("a", "retracted")],
        ["status"],
    ),
}


@pytest.mark.parametrize(("records", "done", "later", "fields"), LOST.values(), ids=LOST.keys())
def test_what_was_changed_again_since_is_refused_by_name(
    records: list[Record], done: dict[str, Any], later: list[dict[str, Any]], fields: list[str]
):
    before = freeze(records)
    now = after(before, done)
    plan = reverted(before, now, after(now, *later))
    assert [(item["memory_id"], item["source_changeset_id"]) for item in plan.refused] == [
        ("a", "changeset-1")
    ]
    assert plan.refused[0]["reason"] == "it was changed again since"
    assert set(fields) <= set(plan.refused[0]["fields"])


def test_a_successor_that_was_superseded_since_keeps_its_predecessor_from_coming_back():
    before = freeze([A])
    now = after(before, op("supersede_memory", "a", "n", content="x"))
    plan = reverted(before, now, after(now, op("supersede_memory", "n", "o", content="y")))
    assert "n" in [item["memory_id"] for item in plan.refused]


def test_evidence_for_an_added_memory_does_not_keep_it_from_being_taken_back():
    before = freeze([])
    now = after(before, op("add_memory", None, "m", content="x"))
    onto = after(now, op("attach_evidence", "m", note="later"))
    restored = planned(onto, reverted(before, now, onto)).records["m"]
    assert isinstance(restored, Record)
    assert (restored.status, restored.evidence) == ("retracted", ({"note": "later"},))


def test_what_the_target_never_had_is_refused():
    before = freeze([A])
    now = after(before, CHANGE_CONTENT)
    assert [item["reason"] for item in reverted(before, now, freeze([])).refused] == [
        "the memory is not there any more"
    ]


def test_a_revert_takes_an_approval_away_but_never_gives_one():
    approved = Record("a", "x", approval="user_approved")
    plain = Record("a", "x")
    taken = planned(freeze([approved]), reverted(freeze([plain]), freeze([approved]), freeze([approved])))
    assert taken.records["a"].approval is None  # type: ignore[union-attr]
    plan = reverted(freeze([approved]), freeze([plain]), freeze([plain]))
    assert plan.steps[0].ops == ()


def test_a_memory_of_a_retracted_value_comes_back_only_with_an_explicit_revival():
    before = freeze([A])
    now = after(before, status("a", "retracted"))
    (item,) = reverted(before, now, now).steps[0].ops
    assert item["payload"]["revive"] is True


# cherry-pick


def picks(*raw: dict[str, Any], of: str = "source") -> list[tuple[str, Op]]:
    return [(of, item) for item in read(*raw)]


BRANCH = picks(
    op("add_memory", None, "x", content="x"),
    op("correct_memory", "x", "y", content="y"),
    op("correct_memory", "y", title="t"),
    op("add_relationship", "y", "a", kind="k"),
    op("add_memory", None, "z", content="z"),
)


def test_a_cherry_picked_op_is_copied_with_its_origin():
    plan = cherry_pick(freeze([A]), [BRANCH[4]], BRANCH, salts=salts)
    (step,) = plan.steps
    assert step.source_changeset_id == "source"
    assert step.ops == (
        {
            "ordinal": 0,
            "op_type": "add_memory",
            "resulting_event_id": "z",
            "payload": {"content": "z", "cherrypicked_from": "source"},
        },
    )
    assert planned(freeze([A]), plan).records["z"].content == "z"  # type: ignore[union-attr]


NEEDS = {
    "one op": (1, [0]),
    "and those that it needs in turn": (2, [0, 1]),
    "of either end of a relationship": (3, [0, 1]),
    "none": (4, None),
}


@pytest.mark.parametrize(("chosen", "needs"), NEEDS.values(), ids=NEEDS.keys())
def test_an_op_whose_needs_are_absent_is_refused_with_the_ops_that_it_needs(
    chosen: int, needs: list[int] | None
):
    plan = cherry_pick(freeze([A]), [BRANCH[chosen]], BRANCH, salts=salts)
    if needs is None:
        assert plan.refused == []
        return
    (refused,) = plan.refused
    assert (refused["source_changeset_id"], refused["ordinal"]) == ("source", chosen)
    assert refused["needs"] == [{"changeset_id": "source", "ordinal": ordinal} for ordinal in needs]


def test_what_is_named_as_needed_makes_the_pick_possible():
    state = freeze([A])
    (refused,) = cherry_pick(state, [BRANCH[2]], BRANCH, salts=salts).refused
    chosen = [BRANCH[item["ordinal"]] for item in refused["needs"]] + [BRANCH[2]]
    assert planned(state, cherry_pick(state, chosen, BRANCH, salts=salts)).records["y"].title == "t"  # type: ignore[union-attr]


def test_an_op_that_needs_a_refused_one_is_not_refused_beside_it():
    plan = cherry_pick(freeze([A]), BRANCH[1:3], BRANCH, salts=salts)
    assert [item["ordinal"] for item in plan.refused] == [1]


def test_a_pick_from_two_changesets_names_both():
    other = picks(op("add_memory", None, "w", content="w"), of="another")
    plan = cherry_pick(freeze([A]), [*other, BRANCH[4]], [*other, *BRANCH], salts=salts)
    assert plan.steps[0].source_changeset_id is None
    assert plan.steps[0].message == "Cherry-pick 2 op(s) from another, source"


def test_a_pick_never_overwrites_what_the_target_changed_since():
    picked = picks(op("correct_memory", "a", content="branch"))
    onto = after(freeze([A]), op("correct_memory", "a", content="accepted"))
    plan = cherry_pick(onto, picked, picked, salts=salts, before={"source": freeze([A])})
    assert [(item["memory_id"], item["fields"]) for item in plan.refused] == [("a", ["content"])]
    untouched = after(freeze([A]), op("correct_memory", "a", title="accepted"))
    assert cherry_pick(untouched, picked, picked, salts=salts, before={"source": freeze([A])}).refused == []


# rebase


def source(name: str, before: MemoryState | None, *raw: dict[str, Any]) -> Source:
    return Source(name, f"Message of {name}", tuple(read(*raw)), before)


def test_a_rebase_replays_each_changeset_as_one_with_its_origin():
    base = freeze([A])
    first = [op("add_memory", None, "x", content="x"), op("correct_memory", "a", content="c")]
    second = [op("correct_memory", "x", title="t")]
    sources = [source("one", base, *first), source("two", after(base, *first), *second)]
    onto = after(base, op("add_memory", None, "y", content="y"))
    plan = rebase(onto, sources, salts=salts)
    assert [(step.source_changeset_id, step.message) for step in plan.steps] == [
        ("one", "Message of one"),
        ("two", "Message of two"),
    ]
    assert {item["payload"]["source_changeset_id"] for item in plan.steps[0].ops} == {"one"}
    result = planned(onto, plan)
    expected = after(onto, *first, *second)
    assert result == expected


def test_a_changeset_without_ops_is_left_out_of_a_rebase():
    assert rebase(freeze([A]), [source("merge", freeze([A]))], salts=salts).steps == []


ONTO = {
    "the same field": (op("correct_memory", "a", content="accepted"), ["content"]),
    "a set": (op("correct_memory", "a", tags=["accepted", "style"]), ["tags"]),
    "retired": (op("supersede_memory", "a", "n", content="accepted"), ["status"]),
}


@pytest.mark.parametrize(("accepted", "fields"), ONTO.values(), ids=ONTO.keys())
def test_a_rebase_never_overwrites_what_the_new_base_changed(accepted: dict[str, Any], fields: list[str]):
    base = freeze([A])
    branch = source("one", base, op("correct_memory", "a", content="branch", tags=["branch", "style"]))
    plan = rebase(after(base, accepted), [branch], salts=salts)
    assert [(item["memory_id"], item["source_changeset_id"]) for item in plan.refused] == [("a", "one")]
    assert set(fields) <= set(plan.refused[0]["fields"])


def test_a_rebase_over_a_change_of_another_field_keeps_both():
    base = freeze([A])
    onto = after(
        base, op("correct_memory", "a", title="accepted"), op("attach_evidence", "a", note="accepted")
    )
    result = planned(onto, rebase(onto, [source("one", base, CHANGE_CONTENT)], salts=salts)).records["a"]
    assert isinstance(result, Record)
    assert (result.content, result.title, len(result.evidence)) == ("x", "accepted", 2)


def test_a_rebase_names_what_the_new_base_does_not_allow():
    onto = after(freeze([A]), status("a", "retracted"))
    plan = rebase(onto, [source("one", freeze([A]), CHANGE_CONTENT)], salts=salts)
    assert [(item["source_changeset_id"], item["ordinal"]) for item in plan.refused] == [("one", 0)]
    assert "retracted" in plan.refused[0]["reason"]


@pytest.mark.slow
def test_a_revert_of_ten_thousand_changes_is_planned_in_linear_time():
    before = freeze([Record(f"m{n}", "x", source_trust="human") for n in range(10_000)])
    now = after(before, *[op("correct_memory", f"m{n}", content="y") for n in range(10_000)])
    began = process_time()
    plan = reverted(before, now, now)
    assert process_time() - began < 5
    assert (plan.refused, len(plan.steps[0].ops)) == ([], 10_000)
