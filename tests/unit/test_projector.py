"""What ops make of a state, per type, and what the state forbids (3-model, operations; 8-lifecycle; 12-lessons)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from time import process_time
from typing import Any

import pytest

from memory_git.domain.errors import Fault
from memory_git.domain.merge import merge_records
from memory_git.domain.projector import Applied, Reach, apply
from memory_git.domain.record import Conflicted, Edge, Lineage, Record, attachment_digest
from memory_git.domain.state import MemoryState, freeze
from memory_git.domain.validate import check_ops, presumed_ids

ACTIVE = ("active", "deprecation_proposed", "deprecated", "disputed")


def salts(memory_id: str) -> str:
    return memory_id.encode().hex().ljust(32, "0")[:32]


def run(
    state: MemoryState, *raw: dict[str, Any], events: dict[str, str] | None = None, **more: Any
) -> Applied:
    """Gives what ops make of a state, faults of form included."""
    ops, faults = check_ops(list(raw), (f"fresh-{number}" for number in count()))
    known = events or {}
    presumed = presumed_ids(list(raw), faults)
    applied = apply(state, ops, salts=salts, events=known.get, presumed=presumed, **more)
    applied.faults[:0] = faults
    return applied


def after(state: MemoryState, *raw: dict[str, Any], **more: Any) -> MemoryState:
    """Gives the state after ops that hold no fault."""
    applied = run(state, *raw, **more)
    assert applied.faults == []
    edges = {*state.edges, *(edge for edge, stands in applied.edges.items() if stands)}
    edges -= {edge for edge, stands in applied.edges.items() if not stands}
    return MemoryState({**state.records, **applied.records}, frozenset(edges))


def record(state: MemoryState, memory_id: str) -> Record:
    found = state.record(memory_id)
    assert isinstance(found, Record)
    return found


def op(
    op_type: str, target: str | None = None, result: str | None = None, /, **payload: Any
) -> dict[str, Any]:
    return {"op_type": op_type, "target_event_id": target, "resulting_event_id": result, "payload": payload}


def told(faults: Iterable[Fault]) -> list[tuple[int | None, str]]:
    return [(fault.ordinal, fault.field) for fault in faults]


def status(memory_id: str, to: str, **more: Any) -> dict[str, Any]:
    return op("set_status", memory_id, status=to, **({} if to == "active" else {"reason": "So."}), **more)


EMPTY = freeze([])
A = Record("a", "Tabs.", title="Indent", tags=("style",), owner_principal="ada", source_trust="human")
B = Record("b", "Spaces.")
ONE = freeze([A])
TWO = freeze([A, B])


# what each op makes


def test_add_makes_an_active_record_of_what_the_payload_says_and_no_more():
    payload = {
        "content": " Tabs. ",
        "kind": "fact",
        "tags": ["b", "a"],
        "confidence": 1,
        "valid_from": "2026-01-01T00:00:00Z",
        "valid_to": "",
        "owner_principal": "ada",
        "source_trust": "human",
        "reviewer": "bob",
        "op_note": "typed by hand",
        "topic_id": "style",
    }
    state = after(EMPTY, op("add_memory", None, "m", **payload))
    assert record(state, "m") == Record(
        "m",
        " Tabs. ",
        kind="fact",
        tags=("a", "b"),
        confidence=1.0,
        valid_from="2026-01-01T00:00:00.000000Z",
        owner_principal="ada",
        source_trust="human",
    )


def test_a_correction_in_place_keeps_what_it_does_not_name():
    state = after(ONE, op("correct_memory", "a", content="Four spaces.", source_trust="human"))
    assert record(state, "a") == Record(
        "a", "Four spaces.", title="Indent", tags=("style",), owner_principal="ada", source_trust="human"
    )


EMPTIED = {
    "a text by clear": ({"clear": ["title"]}, "title", None),
    "a text by an empty one": ({"title": ""}, "title", None),
    "a set by clear": ({"clear": ["tags"]}, "tags", ()),
    "a set by an empty one": ({"tags": []}, "tags", ()),
    "a flag by clear": ({"clear": ["pinned"]}, "pinned", False),
    "a time by an empty one": ({"valid_to": ""}, "valid_to", None),
    "an object by an empty one": ({"extra": {}}, "extra", None),
    "an approval by clear": ({"clear": ["approval"]}, "approval", None),
}


@pytest.mark.parametrize(("payload", "name", "value"), EMPTIED.values(), ids=EMPTIED.keys())
def test_a_field_is_emptied_by_clear_or_by_an_empty_value(payload: dict[str, Any], name: str, value: object):
    full = Record(
        "a",
        "x",
        title="t",
        tags=("t",),
        pinned=True,
        valid_to="2026-01-01T00:00:00.000000Z",
        extra={"k": 1},
        approval="user_approved",
    )
    assert getattr(record(after(freeze([full]), op("correct_memory", "a", **payload)), "a"), name) == value


def test_a_confidence_of_zero_is_kept():
    state = after(ONE, op("correct_memory", "a", confidence=0))
    assert record(state, "a").confidence == 0.0
    assert record(state, "a").to_json()["confidence"] == 0.0


def test_a_correction_with_a_result_leaves_one_active_record():
    state = after(ONE, op("correct_memory", "a", "n", content="Four spaces.", source_trust="human"))
    assert record(state, "a").status == "corrected"
    assert record(state, "a").lineage == Lineage(corrected_by="n")
    assert record(state, "n") == Record(
        "n",
        "Four spaces.",
        title="Indent",
        tags=("style",),
        owner_principal="ada",
        source_trust="human",
        lineage=Lineage(corrected_from=("a",)),
    )


def test_a_successor_inherits_what_it_is_about_but_not_what_was_said():
    old = Record(
        "a",
        "Tabs.",
        kind="decision",
        title="Indent",
        scope="style",
        fact_key="indent",
        visibility="shared",
        tags=("style",),
        summary="Old",
        confidence=0.9,
        valid_from="2026-01-01T00:00:00.000000Z",
        approval="user_approved",
        evidence=({"note": "old"},),
        source_trust="human",
    )
    state = after(freeze([old]), op("supersede_memory", "a", "n", content="Spaces.", source_trust="human"))
    new = record(state, "n")
    assert (new.kind, new.title, new.scope, new.fact_key, new.visibility, new.tags) == (
        "decision",
        "Indent",
        "style",
        "indent",
        "shared",
        ("style",),
    )
    assert (new.summary, new.confidence, new.valid_from, new.approval, new.evidence) == (
        None,
        None,
        None,
        None,
        (),
    )
    assert new.lineage == Lineage(supersedes=("a",))
    assert record(state, "a").status == "superseded"
    assert record(state, "a").lineage == Lineage(superseded_by="n")


def test_a_memory_may_be_superseded_by_nothing():
    state = after(ONE, op("supersede_memory", "a"))
    assert record(state, "a").status == "superseded"
    assert record(state, "a").lineage == Lineage()


def test_a_duplicate_points_to_the_canonical_memory():
    state = after(TWO, op("mark_duplicate", "a", "b"))
    assert record(state, "a").status == "duplicate"
    assert record(state, "a").lineage == Lineage(duplicate_of="b")
    assert record(state, "b") == B


def test_a_relationship_stands_until_it_is_removed():
    edge = Edge("a", "links_to", "b")
    state = after(TWO, op("add_relationship", "a", "b", kind="links_to"))
    assert state.edges == {edge}
    assert after(state, op("add_relationship", "a", "b", kind="links_to")).edges == {edge}
    assert after(state, op("remove_relationship", "a", "b", kind="links_to")).edges == frozenset()
    assert run(state, op("add_relationship", "a", "b", kind="links_to")).edges == {}


def test_a_relationship_made_and_removed_in_one_changeset_is_no_change():
    applied = run(
        TWO, op("add_relationship", "a", "b", kind="k"), op("remove_relationship", "a", "b", kind="k")
    )
    assert (applied.faults, applied.edges) == ([], {})


def test_a_proposed_deprecation_stays_active_with_its_reason():
    found = record(after(ONE, op("propose_deprecation", "a", reason="Old.")), "a")
    assert (found.status, found.status_reason, found.is_active) == ("deprecation_proposed", "Old.", True)


@pytest.mark.parametrize("to", ["deprecated", "disputed", "retracted"])
def test_a_status_is_set_with_its_reason(to: str):
    found = record(after(ONE, status("a", to)), "a")
    assert (found.status, found.status_reason) == (to, "So.")
    assert found.content == A.content


def test_active_takes_the_reason_away():
    disputed = after(ONE, status("a", "disputed"))
    assert record(after(disputed, status("a", "active")), "a") == A


def test_a_reason_does_not_outlive_its_status():
    disputed = after(ONE, status("a", "disputed"))
    assert record(after(disputed, op("supersede_memory", "a")), "a").status_reason is None


def test_attachments_carry_no_provenance_and_are_a_set():
    evidence = op("attach_evidence", "a", note="Seen.", source="log", reviewer="bob", op_note="x")
    state = after(ONE, evidence, evidence, op("attach_verification", "a", status="passed"))
    assert record(state, "a").evidence == ({"note": "Seen.", "source": "log"},)
    assert record(state, "a").verification == ({"status": "passed"},)


def test_an_attachment_is_taken_away_by_its_digest():
    state = after(ONE, op("attach_evidence", "a", note="x"), op("attach_evidence", "a", note="y"))
    digest = attachment_digest(salts("a"), {"note": "x"})
    assert record(after(state, op("detach", "a", attachment_digest=digest)), "a").evidence == ({"note": "y"},)


def test_an_attestation_touches_no_memory():
    applied = run(ONE, op("attach_verification", summary="Reviewed.", reviewer="bob"))
    assert (applied.faults, applied.records, applied.touched_by) == ([], {}, {})
    assert applied.reach == {0: Reach("public", "")}


def test_later_ops_use_what_earlier_ones_made():
    state = after(
        EMPTY,
        op("add_memory", None, "x", content="One."),
        op("correct_memory", "x", content="Two."),
        op("add_memory", None, "y", content="Other."),
        op("add_relationship", "x", "y", kind="links_to"),
        op("attach_evidence", "y", note="Seen."),
        op("mark_duplicate", "y", "x"),
    )
    assert record(state, "x").content == "Two."
    assert (record(state, "y").status, len(record(state, "y").evidence)) == ("duplicate", 1)


def test_ops_that_end_where_they_began_change_nothing():
    applied = run(ONE, status("a", "disputed"), status("a", "active"))
    assert (applied.faults, applied.records) == ([], {})
    assert applied.touched_by == {"a": 1}


# what the state forbids

RETRACTED = Record("a", "Tabs.", status="retracted", status_reason="Wrong.", owner_principal="ada")
APPROVED = Record("a", "Tabs.", approval="user_approved", source_trust="human")
TRUSTED = Record("a", "Tabs.", source_trust="user_approved")
HUMAN = {"source_trust": "human"}
CHAIN = [
    Record("a", "1", status="superseded", lineage=Lineage(superseded_by="b")),
    Record("b", "2", status="superseded", lineage=Lineage(supersedes=("a",), superseded_by="c")),
    Record("c", "3", lineage=Lineage(supersedes=("b",))),
]
GONE_HEIR = [
    Record("a", "1", status="superseded", lineage=Lineage(superseded_by="b")),
    Record("b", "2", status="retracted", lineage=Lineage(supersedes=("a",))),
]
SECRET = Record("a", "Tabs.", visibility="private", owner_principal="ada")
DIGEST = "0" * 64

REFUSED: dict[str, tuple[list[Record], dict[str, Any], str]] = {
    "add on an active id": ([A], op("add_memory", None, "a", content="x"), "resulting_event_id"),
    "add on a disputed id": (
        [Record("a", "x", status="disputed")],
        op("add_memory", None, "a", content="x"),
        "resulting_event_id",
    ),
    "add a retracted value again": (
        [RETRACTED],
        op("add_memory", None, "a", content="  tabs "),
        "payload.content",
    ),
    "supersede into a retracted value": (
        [RETRACTED, B],
        op("supersede_memory", "b", "a", content="tabs"),
        "payload.content",
    ),
    "correct into a retracted value": (
        [RETRACTED, Record("b", "tabs")],
        op("correct_memory", "b", "a", title="x"),
        "resulting_event_id",
    ),
    "correct nothing": ([], op("correct_memory", "a", title="x"), "target_event_id"),
    "correct into an active memory": (
        [A, B],
        op("correct_memory", "a", "b", content="x"),
        "resulting_event_id",
    ),
    "correct the content of a retracted memory": (
        [RETRACTED],
        op("correct_memory", "a", content="x"),
        "target_event_id",
    ),
    "carry a retracted value to another id": (
        [RETRACTED],
        op("correct_memory", "a", "n", title="x"),
        "target_event_id",
    ),
    "correct with a wrong trust claim": (
        [A],
        op("correct_memory", "a", title="x", target_trust="inference"),
        "payload.target_trust",
    ),
    "claim trust that the store does not know": (
        [B],
        op("correct_memory", "b", title="x", target_trust="human"),
        "payload.target_trust",
    ),
    "supersede nothing": ([], op("supersede_memory", "a", content="x"), "target_event_id"),
    "supersede by an active memory's id": (
        [A, B],
        op("supersede_memory", "a", "b", content="x"),
        "resulting_event_id",
    ),
    "supersede by an unrelated active memory": (
        [A, B],
        op("supersede_memory", "a", "b"),
        "resulting_event_id",
    ),
    "supersede by nothing that exists": ([A], op("supersede_memory", "a", "n"), "resulting_event_id"),
    "an inference over an approval": (
        [APPROVED],
        op("supersede_memory", "a", content="x", source_trust="inference"),
        "payload.source_trust",
    ),
    "a model's inference over an approval": (
        [APPROVED],
        op("supersede_memory", "a", content="x", source_trust="model_inference"),
        "payload.source_trust",
    ),
    "what says nothing of its trust over an approval": (
        [APPROVED],
        op("supersede_memory", "a", content="x"),
        "payload.source_trust",
    ),
    "an inference over approved trust": ([TRUSTED], op("supersede_memory", "a"), "payload.source_trust"),
    "supersede a tombstone": (
        [RETRACTED],
        op("supersede_memory", "a", content="x", **HUMAN),
        "target_event_id",
    ),
    "supersede what has an active successor": (
        CHAIN[1:],
        op("supersede_memory", "b", content="x"),
        "target_event_id",
    ),
    "supersede what has a successor with a successor": (
        CHAIN,
        op("supersede_memory", "a", content="x"),
        "target_event_id",
    ),
    "correct what has a successor": (CHAIN, op("correct_memory", "b", "n", content="x"), "target_event_id"),
    "mark what has a successor a duplicate of another": (
        [*CHAIN, Record("d", "4")],
        op("mark_duplicate", "b", "d"),
        "target_event_id",
    ),
    "duplicate of nothing": ([A], op("mark_duplicate", "a", "n"), "payload.duplicate_of"),
    "nothing as a duplicate": ([A], op("mark_duplicate", "n", "a"), "payload.duplicate_id"),
    "a tombstone as a duplicate": ([RETRACTED, B], op("mark_duplicate", "a", "b"), "target_event_id"),
    "each the duplicate of the other": (
        [A, Record("b", "x", status="duplicate", lineage=Lineage(duplicate_of="a"))],
        op("mark_duplicate", "a", "b"),
        "payload.duplicate_of",
    ),
    "a circle of three duplicates": (
        [
            A,
            Record("b", "x", status="duplicate", lineage=Lineage(duplicate_of="c")),
            Record("c", "x", status="duplicate", lineage=Lineage(duplicate_of="a")),
        ],
        op("mark_duplicate", "a", "b"),
        "payload.duplicate_of",
    ),
    "relationship from nothing": ([A], op("add_relationship", "n", "a", kind="k"), "payload.from_memory_id"),
    "relationship to nothing": ([A], op("add_relationship", "a", "n", kind="k"), "payload.to_memory_id"),
    "removal of what does not stand": ([A, B], op("remove_relationship", "a", "b", kind="k"), "payload"),
    "deprecation of nothing": ([], op("propose_deprecation", "a", reason="x"), "target_event_id"),
    "deprecation of what is gone": (
        [CHAIN[1]],
        op("propose_deprecation", "b", reason="x"),
        "target_event_id",
    ),
    "evidence for nothing": ([], op("attach_evidence", "a", note="x"), "target_event_id"),
    "status of nothing": ([], status("a", "disputed"), "target_event_id"),
    "a superseded memory as deprecated": (CHAIN, status("b", "deprecated"), "target_event_id"),
    "a superseded memory as disputed": (CHAIN, status("b", "disputed"), "target_event_id"),
    "a retracted memory as disputed": ([RETRACTED], status("a", "disputed"), "target_event_id"),
    "a retracted memory as active": ([RETRACTED], status("a", "active"), "target_event_id"),
    "a memory beside its active successor": (CHAIN[1:], status("b", "active"), "target_event_id"),
    "a memory beside a later successor": (CHAIN, status("a", "active"), "target_event_id"),
    "a successor beside the memory that came back": (
        [Record("a", "1"), GONE_HEIR[1]],
        status("b", "active", revive=True),
        "target_event_id",
    ),
    "revived by a correction beside a successor": (
        CHAIN,
        op("correct_memory", "b", title="x", revive=True),
        "target_event_id",
    ),
    "detach from nothing": ([], op("detach", "a", attachment_digest=DIGEST), "target_event_id"),
    "detach what is not there": (
        [A],
        op("detach", "a", attachment_digest=DIGEST),
        "payload.attachment_digest",
    ),
    "another's private memory as one's own": (
        [SECRET],
        op("correct_memory", "a", "n", title="x", owner_principal="eve"),
        "payload.owner_principal",
    ),
    "another's private memory superseded into one's own": (
        [SECRET],
        op("supersede_memory", "a", "n", content="x", owner_principal="eve"),
        "payload.owner_principal",
    ),
    "a private memory into an id that was another's": (
        [SECRET, Record("n", "x", status="superseded", owner_principal="eve")],
        op("supersede_memory", "a", "n", content="x"),
        "payload.owner_principal",
    ),
    "add on an id that was another's private one": (
        [Record("a", "x", status="superseded", visibility="private", owner_principal="ada")],
        op("add_memory", None, "a", content="y", owner_principal="eve"),
        "payload.owner_principal",
    ),
}


@pytest.mark.parametrize(("records", "raw", "field"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_state_forbids_is_a_fault_and_changes_nothing(
    records: list[Record], raw: dict[str, Any], field: str
):
    applied = run(freeze(records), raw)
    assert told(applied.faults) == [(0, field)]
    assert (applied.records, applied.edges, applied.touched_by, applied.reach) == ({}, {}, {}, {})


ALLOWED: dict[str, tuple[list[Record], dict[str, Any]]] = {
    "add another value on a retracted id": ([RETRACTED], op("add_memory", None, "a", content="Spaces.")),
    "add a retracted value again, revived": (
        [RETRACTED],
        op("add_memory", None, "a", content="Tabs.", revive=True),
    ),
    "correct the content of a retracted memory, revived": (
        [RETRACTED],
        op("correct_memory", "a", content="x", revive=True),
    ),
    "tag a retracted memory": ([RETRACTED], op("correct_memory", "a", tags=["t"])),
    "a retracted memory as active, revived": ([RETRACTED], status("a", "active", revive=True)),
    "supersede a tombstone, revived": (
        [RETRACTED],
        op("supersede_memory", "a", "n", content="x", revive=True),
    ),
    "a person over an approval": ([APPROVED], op("supersede_memory", "a", "n", content="x", **HUMAN)),
    "an inference over a person": (
        [A],
        op("supersede_memory", "a", "n", content="x", source_trust="inference"),
    ),
    "a true trust claim": ([A], op("correct_memory", "a", title="x", target_trust="human")),
    "a true claim of approval": (
        [APPROVED],
        op("correct_memory", "a", title="x", target_trust="user_approved"),
    ),
    "supersede what has a retracted successor": (GONE_HEIR, op("supersede_memory", "a", "n", content="x")),
    "a memory as active after its successor was retracted": (GONE_HEIR, status("a", "active")),
    "a duplicate as active beside its canonical": (
        [Record("a", "x", status="duplicate", lineage=Lineage(duplicate_of="b")), B],
        status("a", "active"),
    ),
    "supersede again by its own successor": (
        [Record("a", "1"), Record("b", "2", lineage=Lineage(supersedes=("a",)))],
        op("supersede_memory", "a", "b"),
    ),
    "supersede by a descendant of its successor": (
        [Record("a", "1"), CHAIN[1], CHAIN[2]],
        op("supersede_memory", "a", "c"),
    ),
    "supersede by a retired memory": ([A, CHAIN[1]], op("supersede_memory", "a", "b")),
    "retract what is superseded": (CHAIN, status("a", "retracted")),
    "reuse a retired id for a successor": ([A, CHAIN[1]], op("supersede_memory", "a", "b", content="x")),
    "deprecate what is disputed": ([Record("a", "x", status="disputed")], status("a", "deprecated")),
}


@pytest.mark.parametrize(("records", "raw"), ALLOWED.values(), ids=ALLOWED.keys())
def test_the_near_miss_of_a_refusal_is_allowed(records: list[Record], raw: dict[str, Any]):
    after(freeze(records), raw)


def test_all_faults_of_form_and_state_are_told_once_and_in_order():
    applied = run(
        ONE,
        op("add_memory", None, "a", content="x"),
        op("add_memory", None, "m", content="x", confidence=7),
        op("correct_memory", "m", title="needs the faulty one"),
        op("correct_memory", "m", "m2", title="makes another of it"),
        op("attach_evidence", "m2", note="needs that in turn"),
        op("correct_memory", "nowhere", title="x"),
        op("correct_memory", "a", title="fine"),
    )
    assert sorted(told(applied.faults)) == [
        (0, "resulting_event_id"),
        (1, "payload.confidence"),
        (5, "target_event_id"),
    ]
    assert list(applied.records) == ["a"]


def test_a_second_try_under_the_same_id_is_no_second_fault():
    applied = run(
        ONE, op("supersede_memory", "gone", "n", content="x"), op("add_memory", None, "n", content="y")
    )
    assert told(applied.faults) == [(0, "target_event_id")]


# identity of events, retired ids, owners


def test_an_event_is_adopted_with_exactly_its_content():
    events = {"e": "As it was said."}
    state = after(EMPTY, op("add_memory", event_id="e", content="As it was said."), events=events)
    assert record(state, "e").content == "As it was said."
    for raw in (
        op("add_memory", event_id="e", content="As it was said"),
        op("supersede_memory", "a", event_id="e", content="Otherwise."),
        op("correct_memory", "a", "e", title="x"),
    ):
        assert len(run(ONE, raw, events=events).faults) == 1


def test_a_new_version_on_a_retired_id_starts_anew_but_keeps_the_owner():
    old = Record(
        "a",
        "x",
        status="superseded",
        owner_principal="ada",
        title="Old",
        approval="user_approved",
        evidence=({"note": "old"},),
        lineage=Lineage(superseded_by="b"),
    )
    state = after(freeze([old]), op("add_memory", None, "a", content="y", owner_principal="bob"))
    assert record(state, "a") == Record("a", "y", owner_principal="ada")


def test_a_successor_has_the_owner_that_is_said_else_the_targets():
    said = after(ONE, op("supersede_memory", "a", "n", content="x", owner_principal="bob"))
    kept = after(ONE, op("supersede_memory", "a", "n", content="x"))
    assert (record(said, "n").owner_principal, record(kept, "n").owner_principal) == ("bob", "ada")


def test_no_correction_in_place_changes_an_owner():
    state = after(ONE, op("correct_memory", "a", visibility="private", owner_principal="eve"))
    assert record(state, "a").owner_principal == "ada"


def test_visibility_is_never_widened_by_what_does_not_say_so():
    secret = freeze([SECRET, B])
    for raw in (
        op("correct_memory", "a", content="x"),
        op("correct_memory", "a", "n", content="x"),
        op("supersede_memory", "a", "n", content="x"),
        op("attach_evidence", "a", note="x"),
        op("mark_duplicate", "a", "b"),
        status("a", "disputed"),
    ):
        state = after(secret, raw)
        for memory_id in {"a", "n"} & state.records.keys():
            assert (record(state, memory_id).visibility, record(state, memory_id).owner_principal) == (
                "private",
                "ada",
            )


# trust and approval

TRUST = {
    "an inference on a person's word": ("human", "inference", "inference"),
    "a person on an inference": ("inference", "human", "inference"),
    "a person on a person": ("human", "human", "human"),
    "nothing said on a person's word": ("human", None, "inference"),
    "nothing said on approved trust": ("user_approved", None, "inference"),
    "a person on approved trust": ("user_approved", "human", "human"),
    "a person on the unknown": (None, "human", "human"),
    "nothing said on the unknown": (None, None, "inference"),
    "a model's inference on an inference": ("inference", "model_inference", "model_inference"),
}


@pytest.mark.parametrize(("known", "said", "expected"), TRUST.values(), ids=TRUST.keys())
def test_a_record_has_the_least_trust_of_its_lineage(known: str | None, said: str | None, expected: str):
    state = freeze([Record("a", "x", source_trust=known)])
    payload = {"content": "y", **({"source_trust": said} if said else {})}
    in_place = after(state, op("correct_memory", "a", **payload))
    assert record(in_place, "a").source_trust == expected
    assert record(after(state, op("correct_memory", "a", "n", **payload)), "n").source_trust == expected
    if known != "user_approved" or said == "human":
        superseded = after(state, op("supersede_memory", "a", "n", **payload))
        assert record(superseded, "n").source_trust == expected


APPROVAL = {
    "content": ({"content": "Spaces."}, None),
    "title": ({"title": "x"}, None),
    "the fact key": ({"fact_key": "x"}, None),
    "the end of validity": ({"valid_to": "2026-01-01T00:00:00Z"}, None),
    "the kind": ({"kind": "fact"}, None),
    "the scope": ({"scope": "x"}, None),
    "content to the same": ({"content": "Tabs."}, "user_approved"),
    "tags": ({"tags": ["x"]}, "user_approved"),
    "a review date": ({"review_after": "2026-01-01T00:00:00Z"}, "user_approved"),
    "content, approved anew": ({"content": "Spaces.", "approval": "user_approved"}, "user_approved"),
}


@pytest.mark.parametrize(("payload", "approval"), APPROVAL.values(), ids=APPROVAL.keys())
def test_an_approval_does_not_outlive_what_it_approved(payload: dict[str, Any], approval: str | None):
    state = freeze([APPROVED])
    assert record(after(state, op("correct_memory", "a", **payload)), "a").approval == approval
    assert record(after(state, op("correct_memory", "a", "n", **payload)), "n").approval == approval


# who may see an op

OTHER_SECRET = Record("b", "x", visibility="private", owner_principal="bob")
REACH = {
    "a public addition": (
        [],
        op("add_memory", None, "n", content="x", visibility="public"),
        Reach("public", ""),
    ),
    "an addition": ([], op("add_memory", None, "n", content="x"), Reach("internal", "")),
    "a private addition": (
        [],
        op("add_memory", None, "n", content="x", visibility="private", owner_principal="ada"),
        Reach("private", "ada"),
    ),
    "a narrowing": ([A], op("correct_memory", "a", visibility="private"), Reach("private", "ada")),
    "a widening": ([SECRET], op("correct_memory", "a", visibility="public"), Reach("private", "ada")),
    "a wider successor": (
        [SECRET],
        op("supersede_memory", "a", "n", content="x", visibility="public"),
        Reach("private", "ada"),
    ),
    "an edge to a private memory": (
        [SECRET, B],
        op("add_relationship", "b", "a", kind="k"),
        Reach("private", "ada"),
    ),
    "an edge between two owners": (
        [SECRET, OTHER_SECRET],
        op("add_relationship", "a", "b", kind="k"),
        Reach("private", ""),
    ),
}


@pytest.mark.parametrize(("records", "raw", "reach"), REACH.values(), ids=REACH.keys())
def test_an_op_reaches_as_far_as_the_narrowest_record_that_it_touched(
    records: list[Record], raw: dict[str, Any], reach: Reach
):
    applied = run(freeze(records), raw)
    assert applied.faults == []
    assert applied.reach == {0: reach}


# what a merge leaves to be settled

BASE = Record("a", "Base.", title="Base", tags=("t",))
LEFT = Record("a", "Left.", title="Left", tags=("t",))
RIGHT = Record("a", "Right.", title="Right", tags=("t",))


def conflict(base: Record | None = BASE, left: Record = LEFT, right: Record = RIGHT) -> Conflicted:
    found = merge_records(base, left, right)
    assert isinstance(found, Conflicted)
    return found


SETTLED = {
    "every open field assigned": [op("correct_memory", "a", content="New.", title="New")],
    "every open field, one op each": [
        op("correct_memory", "a", content="New."),
        op("correct_memory", "a", title="New"),
    ],
    "one assigned, one cleared": [op("correct_memory", "a", content="New.", clear=["title"])],
    "superseded": [op("supersede_memory", "a", "n", content="New.")],
    "superseded by nothing": [op("supersede_memory", "a")],
    "corrected into another": [op("correct_memory", "a", "n", content="New.")],
    "retracted": [status("a", "retracted")],
    "marked a duplicate": [op("mark_duplicate", "a", "b")],
}


@pytest.mark.parametrize("ops", SETTLED.values(), ids=SETTLED.keys())
def test_a_conflicted_key_is_settled_by_assigning_all_fields_or_by_retiring_it(ops: list[dict[str, Any]]):
    applied = run(freeze([B]), *ops, conflicted=[conflict()])
    assert (applied.faults, applied.unsettled) == ([], [])
    assert "a" in applied.records


UNSETTLED = {
    "nothing": ([], {"content", "title"}),
    "one field of two": ([op("correct_memory", "a", content="New.")], {"title"}),
    "another field": ([op("correct_memory", "a", tags=["x"])], {"content", "title"}),
    "an attachment": ([op("attach_evidence", "a", note="x")], {"content", "title"}),
    "another status": ([status("a", "disputed")], {"content", "title"}),
    "a proposal to deprecate": ([op("propose_deprecation", "a", reason="x")], {"content", "title"}),
    "a relationship": ([op("add_relationship", "a", "b", kind="k")], {"content", "title"}),
    "a duplicate of it": ([op("mark_duplicate", "b", "a")], {"content", "title"}),
}


@pytest.mark.parametrize(("ops", "fields"), UNSETTLED.values(), ids=UNSETTLED.keys())
def test_anything_less_leaves_a_conflicted_key_open_without_a_record(
    ops: list[dict[str, Any]], fields: set[str]
):
    applied = run(freeze([B]), *ops, conflicted=[conflict()])
    assert applied.faults == []
    assert [(item.memory_id, item.fields) for item in applied.unsettled] == [("a", fields)]
    assert "a" not in applied.records


def test_what_an_op_adds_to_a_conflicted_key_is_kept_when_it_is_settled():
    applied = run(
        EMPTY,
        op("attach_evidence", "a", note="Seen."),
        op("correct_memory", "a", tags=["x"]),
        op("correct_memory", "a", content="New.", title="New"),
        conflicted=[conflict()],
    )
    assert applied.records["a"].evidence == ({"note": "Seen."},)
    assert applied.records["a"].tags == ("x",)


def test_a_conflicted_key_is_taken_and_no_successor_of_anything():
    for raw in (op("add_memory", None, "a", content="x"), op("supersede_memory", "b", "a", content="x")):
        assert told(run(freeze([B]), raw, conflicted=[conflict()]).faults) == [(0, "resulting_event_id")]


def test_a_change_against_a_retraction_comes_back_only_revived_whichever_side_retracted():
    retracted = Record("a", "Base.", title="Base", tags=("t",), status="retracted", status_reason="Wrong.")
    edited = Record("a", "New.", title="Base", tags=("t",))
    for left, right in ((retracted, edited), (edited, retracted)):
        open_key = [conflict(left=left, right=right)]
        assert told(run(EMPTY, status("a", "active"), conflicted=open_key).faults) == [(0, "target_event_id")]
        revived = run(EMPTY, status("a", "active", revive=True), conflicted=open_key)
        assert (revived.faults, revived.unsettled) == ([], [])
        assert (revived.records["a"].content, revived.records["a"].status) == ("New.", "active")
        kept = run(EMPTY, status("a", "retracted"), conflicted=open_key)
        assert (kept.faults, kept.unsettled, kept.records["a"].status) == ([], [], "retracted")


def test_an_answer_to_a_conflict_is_not_what_a_side_had_approved():
    approved = Record("a", "Base.", title="Base", tags=("t",), approval="user_approved")
    changed = Record("a", "Right.", title="Base", tags=("t",))
    open_key = [conflict(left=approved, right=changed)]
    assert open_key[0].fields == {"approval"}
    applied = run(EMPTY, op("correct_memory", "a", content="Right."), conflicted=open_key)
    assert (applied.unsettled, applied.records["a"].approval) == ([], None)


def succeeded(name: str) -> tuple[Record, Record]:
    retired = Record(
        "a", "Base.", title="Base", tags=("t",), status="corrected", lineage=Lineage(corrected_by=name)
    )
    return retired, Record(name, f"By {name}.", lineage=Lineage(corrected_from=("a",)))


def test_two_corrections_of_one_memory_never_both_stay_active():
    (left, left_heir), (right, right_heir) = succeeded("l"), succeeded("r")
    state, open_key = freeze([left_heir, right_heir]), [conflict(left=left, right=right)]
    both = run(state, status("a", "retracted"), conflicted=open_key)
    assert [(item.memory_id, item.fields) for item in both.unsettled] == [("a", {"lineage"})]
    for last in (status("r", "retracted"), op("mark_duplicate", "r", "l")):
        applied = run(state, status("a", "retracted"), last, conflicted=open_key)
        assert (applied.faults, applied.unsettled) == ([], [])


def test_a_memory_kept_against_its_successor_needs_the_successor_retracted():
    (left, heir), edited = succeeded("l"), Record("a", "Edited.", title="Base", tags=("t",))
    state, open_key = freeze([heir]), [conflict(left=left, right=edited)]
    assert told(run(state, status("a", "active"), conflicted=open_key).faults) == [(0, "target_event_id")]
    applied = run(state, status("l", "retracted"), status("a", "active"), conflicted=open_key)
    assert (applied.faults, applied.unsettled, applied.records["a"].content) == ([], [], "Edited.")


# size


def timed(*raw: dict[str, Any], state: MemoryState = EMPTY, limit_s: float = 4.0) -> Applied:
    began = process_time()
    applied = run(state, *raw)
    assert applied.faults == []
    assert process_time() - began < limit_s, "time grows faster than the number of ops"
    return applied


MANY = 10_000


@pytest.mark.slow
def test_ten_thousand_additions_apply_in_about_a_second():
    assert (
        len(timed(*[op("add_memory", None, f"m{n}", content=f"Text {n}.") for n in range(MANY)]).records)
        == MANY
    )


@pytest.mark.slow
def test_a_chain_of_ten_thousand_successors_ends_in_one_active_record():
    chain = [op("supersede_memory", f"m{n}", f"m{n + 1}", content=f"Text {n}.") for n in range(MANY - 1)]
    applied = timed(op("add_memory", None, "m0", content="First."), *chain)
    assert [name for name, found in applied.records.items() if found.is_active] == [f"m{MANY - 1}"]


@pytest.mark.slow
def test_ten_thousand_attachments_of_one_memory_are_added_and_taken_away_in_linear_time():
    half = MANY // 2
    added = [op("attach_evidence", "a", note=f"{n:05}") for n in range(half)]
    digests = [attachment_digest(salts("a"), {"note": f"{n:05}"}) for n in range(half)]
    taken = [op("detach", "a", attachment_digest=digest) for digest in digests]
    assert timed(*added, *taken, state=ONE).records == {}
    mixed = [op for pair in zip(added, taken, strict=True) for op in pair]
    crowded = after(ONE, *[op("attach_evidence", "a", source=f"{n:05}") for n in range(half)])
    assert timed(*mixed, state=crowded).records == {}


@pytest.mark.slow
def test_ten_thousand_questions_of_a_long_lineage_are_answered_or_refused_in_bounded_time():
    last = MANY - 1
    chain = [
        Record(
            f"m{n}",
            f"Text {n}.",
            status="active" if n in (0, last) else "superseded",
            lineage=Lineage(
                supersedes=(f"m{n - 1}",) if n else (), superseded_by=f"m{n + 1}" if 0 < n < last else None
            ),
        )
        for n in range(MANY)
    ]
    began = process_time()
    applied = run(freeze(chain), *[op("supersede_memory", "m0", f"m{last}")] * MANY)
    assert len(applied.faults) == MANY
    assert process_time() - began < 10


def test_a_row_of_duplicates_is_followed_up_to_a_limit_that_is_told():
    added = [op("add_memory", None, f"m{n}", content="Same.") for n in range(259)]
    row = [op("mark_duplicate", f"m{n + 1}", f"m{n}") for n in range(258)]
    applied = run(EMPTY, *added, *row)
    assert told(applied.faults) == [(259 + 256, "payload.duplicate_of")]
    assert "many times over" in applied.faults[0].rule
