"""What more than one op asks of a state, at its edges: long lineages, conflicts that lead on, attachments of a memory made anew (3-model, operations)."""

from __future__ import annotations

from typing import Any

from memory_git.domain.draft import MOST_STEPS
from memory_git.domain.errors import Fault
from memory_git.domain.merge import merge_records
from memory_git.domain.projector import Applied, apply
from memory_git.domain.record import NO_LINEAGE, Conflicted, Lineage, Record, attachment_digest
from memory_git.domain.state import MemoryState, freeze
from memory_git.domain.validate import check_ops

SALT = "0" * 32
NOTE = {"note": "Seen."}
EVENTS = {"e": "What was said."}


def applied(records: list[Record], *raw: dict[str, Any], conflicted: tuple[Conflicted, ...] = ()) -> Applied:
    ops, faults = check_ops(list(raw), iter(()))
    assert not faults
    state: MemoryState = freeze(records)
    return apply(state, ops, salts=lambda _: SALT, events=EVENTS.get, conflicted=conflicted)


def op(
    op_type: str, target: str | None = None, result: str | None = None, /, **payload: Any
) -> dict[str, Any]:
    return {"op_type": op_type, "target_event_id": target, "resulting_event_id": result, "payload": payload}


def told(faults: list[Fault]) -> list[tuple[int | None, str]]:
    return [(fault.ordinal, fault.field) for fault in faults]


def retracted(memory_id: str) -> dict[str, Any]:
    return op("set_status", memory_id, status="retracted", reason="Wrong.")


def conflict(memory_id: str, left: Lineage = NO_LINEAGE, right: Lineage = NO_LINEAGE) -> Conflicted:
    """Gives a memory that both sides changed, each with its successor if it has one."""
    sides = [
        Record(memory_id, text, status="corrected" if lineage.heirs() else "active", lineage=lineage)
        for text, lineage in (("Left.", left), ("Right.", right))
    ]
    found = merge_records(Record(memory_id, "Base."), *sides)
    assert isinstance(found, Conflicted)
    return found


# what replaced what, over many steps


def test_a_memory_of_as_many_origins_as_are_looked_at_comes_back_and_one_of_more_does_not():
    for count, faults in ((MOST_STEPS, []), (MOST_STEPS + 1, [(0, "target_event_id")])):
        origins = tuple(f"m{number:03}" for number in range(count))
        old = Record("a", "Text.", status="superseded", lineage=Lineage(supersedes=origins))
        assert told(applied([old], op("set_status", "a", status="active")).faults) == faults


def test_each_direct_origin_of_a_memory_is_known_however_many_there_are():
    origins = [f"m{number:03}" for number in range(MOST_STEPS + 40)]
    heir = Record("heir", "Text.", lineage=Lineage(supersedes=tuple(origins)))
    last = Record(origins[-1], "Old text.")
    found = applied([heir, last], op("supersede_memory", last.memory_id, "heir"))
    assert found.faults == []
    assert found.records[last.memory_id].lineage.superseded_by == "heir"


def test_an_origin_that_many_ways_lead_to_is_reached_by_one():
    """Twenty steps of two memories, each of which took the place of both below: a million ways, forty memories."""
    steps = 20

    def below(step: int) -> tuple[str, ...]:
        return (f"{step - 1}a", f"{step - 1}b") if step else ("first",)

    records = [
        Record(
            f"{step}{side}",
            f"Text {step}{side}.",
            status="superseded",
            lineage=Lineage(supersedes=below(step)),
        )
        for step in range(steps)
        for side in "ab"
    ]
    heir = Record("heir", "Text.", lineage=Lineage(supersedes=below(steps)))
    found = applied([*records, heir, Record("first", "Old.")], op("supersede_memory", "first", "heir"))
    assert found.faults == []


def test_a_canonical_memory_that_is_a_duplicate_of_nothing_known_is_refused_by_its_field():
    lost = Record("lost", "Same.", status="duplicate", lineage=Lineage(duplicate_of="gone"))
    found = applied([lost, Record("a", "Same.")], op("mark_duplicate", "a", "lost"))
    assert told(found.faults) == [(0, "payload.duplicate_of")]


def test_who_takes_the_id_of_an_event_is_told_which_field_is_wrong():
    added = op("add_memory", None, "e", content="Something else.")
    renamed = op("correct_memory", "a", "e", title="T")
    assert told(applied([], added).faults) == [(0, "payload.content")]
    assert told(applied([Record("a", "Text.")], renamed).faults) == [(0, "resulting_event_id")]


# attachments


def test_an_attachment_taken_from_a_memory_in_conflict_settles_nothing():
    held = merge_records(
        Record("a", "Base.", evidence=(NOTE,)),
        Record("a", "Left.", evidence=(NOTE,)),
        Record("a", "Right.", evidence=(NOTE,)),
    )
    assert isinstance(held, Conflicted)
    detached = op("detach", "a", attachment_digest=attachment_digest(SALT, NOTE), reason="Gone.")
    found = applied([], detached, conflicted=(held,))
    assert (found.faults, [(item.memory_id, item.fields) for item in found.unsettled]) == (
        [],
        [("a", {"content"})],
    )
    answered = applied([], detached, op("correct_memory", "a", content="Both."), conflicted=(held,))
    assert (answered.unsettled, answered.records["a"].evidence) == ([], ())


def test_a_memory_made_anew_has_none_of_the_attachments_of_before():
    other = {"note": "Read."}
    digests = [attachment_digest(SALT, item) for item in (NOTE, other)]
    found = applied(
        [Record("a", "Text.", evidence=(NOTE, other))],
        op("detach", "a", attachment_digest=digests[0], reason="Gone."),
        op("supersede_memory", "a"),
        op("add_memory", None, "a", content="New text."),
        op("detach", "a", attachment_digest=digests[1], reason="Gone."),
    )
    assert told(found.faults) == [(3, "payload.attachment_digest")]


# what lives on of a conflict


def heir(memory_id: str, of: str, **more: Any) -> Record:
    return Record(
        memory_id,
        f"By {memory_id}.",
        lineage=Lineage(corrected_from=(of,), **more.pop("lineage", {})),
        **more,
    )


def test_a_value_that_lives_on_behind_two_steps_of_one_side_and_in_the_other_is_open():
    left = [heir("l", "a", status="corrected", lineage={"corrected_by": "l2"}), heir("l2", "l")]
    met = conflict("a", Lineage(corrected_by="l"), Lineage(corrected_by="r"))
    for right, fields in (("active", [{"lineage"}]), ("retracted", [])):
        found = applied([*left, heir("r", "a", status=right)], retracted("a"), conflicted=(met,))
        assert found.faults == []
        assert [item.fields for item in found.unsettled] == fields


def test_two_successors_that_end_in_one_memory_are_one():
    ways = [heir(name, "a", status="superseded", lineage={"superseded_by": "x"}) for name in ("l", "r")]
    met = conflict("a", Lineage(corrected_by="l"), Lineage(corrected_by="r"))
    end = Record("x", "Both.", lineage=Lineage(supersedes=("l", "r")))
    found = applied([*ways, end], retracted("a"), conflicted=(met,))
    assert (found.faults, found.unsettled) == ([], [])


def test_a_successor_that_is_in_conflict_itself_counts_as_it_would_be_merged():
    met = conflict("a", Lineage(corrected_by="l"), Lineage(corrected_by="r"))
    found = applied([heir("r", "a")], retracted("a"), conflicted=(met, conflict("l")))
    assert [(item.memory_id, item.fields) for item in found.unsettled] == [
        ("a", {"lineage"}),
        ("l", {"content"}),
    ]


# which fields of a conflict an op answers, and what it writes beside them


def met_status(left: str, right: str) -> Conflicted:
    """Gives a memory whose text and status are open: one side corrected it and the other retracted it, or left's text differs too."""
    sides = [
        Record("a", text, status=status, status_reason=None if status == "active" else "So.")
        for text, status in (("Left.", left), ("Right.", right))
    ]
    found = merge_records(Record("a", "Base."), *sides)
    assert isinstance(found, Conflicted)
    assert found.fields == {"content", "status"}
    return found


def left_open(*raw: dict[str, Any], conflicted: Conflicted, beside: tuple[Record, ...] = ()) -> set[str]:
    found = applied(list(beside), *raw, conflicted=(conflicted,))
    assert found.faults == []
    return {name for item in found.unsettled for name in item.fields}


def test_active_answers_the_status_and_nothing_else():
    back = op("set_status", "a", status="active", revive=True)
    assert left_open(back, conflicted=met_status("active", "superseded")) == {"content"}
    assert (
        left_open(
            back, op("correct_memory", "a", content="C."), conflicted=met_status("active", "superseded")
        )
        == set()
    )


def test_a_proposed_deprecation_answers_the_status_and_its_reason():
    asked = op("propose_deprecation", "a", reason="Old.")
    assert left_open(asked, conflicted=met_status("disputed", "superseded")) == {"content"}
    reasons = [Record("a", "Base.", status="disputed", status_reason=why) for why in ("One.", "Two.")]
    met = merge_records(Record("a", "Base."), *reasons)
    assert isinstance(met, Conflicted)
    assert met.fields == {"status_reason"}
    assert left_open(asked, conflicted=met) == set()


def test_who_becomes_a_successor_notes_whose_place_it_took_and_settles_nothing():
    later = Record("later", "New.", lineage=Lineage(supersedes=("middle",)))
    chain = [
        Record("first", "Old."),
        Record("middle", "Text.", status="superseded", lineage=Lineage(supersedes=("first",))),
    ]
    found = applied([*chain, later], op("supersede_memory", "first", "later"))
    assert found.records["later"].lineage.supersedes == ("first", "middle")
    met = merge_records(
        later,
        Record("later", "Left.", lineage=later.lineage),
        Record("later", "Right.", lineage=later.lineage),
    )
    assert isinstance(met, Conflicted)
    named = op("supersede_memory", "first", "later")
    assert left_open(named, conflicted=met, beside=tuple(chain)) == {"content"}


def test_a_duplicate_may_be_marked_again_but_of_no_other():
    known = Record("a", "Same.", status="duplicate", lineage=Lineage(duplicate_of="b"))
    others = [Record("b", "Same."), Record("c", "Same.")]
    assert applied([known, *others], op("mark_duplicate", "a", "b")).faults == []
    assert told(applied([known, *others], op("mark_duplicate", "a", "c")).faults) == [(0, "target_event_id")]


def test_a_correction_that_revives_answers_its_own_fields_and_the_status():
    met = met_status("active", "superseded")
    assert left_open(op("correct_memory", "a", content="C.", revive=True), conflicted=met) == set()
    assert left_open(op("correct_memory", "a", tags=["t"], revive=True), conflicted=met) == {"content"}


def met_approval() -> Conflicted:
    approved = Record("a", "Base.", approval="user_approved")
    found = merge_records(Record("a", "Base."), approved, Record("a", "Right."))
    assert isinstance(found, Conflicted)
    assert found.fields == {"approval"}
    return found


def test_an_approval_in_conflict_is_answered_by_words_or_by_itself_and_by_no_tag():
    assert left_open(op("correct_memory", "a", tags=["t"]), conflicted=met_approval()) == {"approval"}
    for payload, approval in (
        ({"content": "Right."}, None),
        ({"content": "Right.", "approval": "user_approved"}, "user_approved"),
    ):
        found = applied([], op("correct_memory", "a", **payload), conflicted=(met_approval(),))
        assert (found.unsettled, found.records["a"].approval) == ([], approval)


def test_what_a_correction_makes_under_another_id_is_active_and_has_the_owner_of_that_id():
    old = Record("a", "Text.", status="deprecated", status_reason="Old.", owner_principal="ada")
    former = Record("b", "Before.", status="superseded", owner_principal="bob")
    made = applied([old, former], op("correct_memory", "a", "b", content="New text.")).records["b"]
    assert (made.status, made.status_reason, made.owner_principal) == ("active", None, "bob")


def test_a_confidence_is_a_float_whoever_wrote_it():
    for raw in (
        op("add_memory", None, "n", content="T.", confidence=1),
        op("correct_memory", "n", confidence=1),
    ):
        found = applied([Record("n", "T.", status="active" if raw["target_event_id"] else "superseded")], raw)
        assert type(found.records["n"].confidence) is float
