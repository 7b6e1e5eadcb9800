"""Records, attachments and relationships as values with digests (3-model, record and digests)."""

from __future__ import annotations

from typing import Any

import pytest

from memory_git.domain.record import (
    ACTIVE_STATUSES,
    APPROVED_FIELDS,
    FIELD_NAMES,
    RETIRED_STATUSES,
    Conflicted,
    Edge,
    Lineage,
    Record,
    attachment_digest,
    edge_digest,
    record_bytes_digest,
    record_digest,
    record_from_json,
    sorted_attachments,
    with_attachment,
    without_attachment,
)

SALT = "00112233445566778899aabbccddeeff"
FULL = Record(
    memory_id="project/db",
    content="PostgreSQL 15.",
    kind="fact",
    visibility="private",
    status="disputed",
    event_type="note",
    type="project",
    title="Database",
    summary="Which database",
    scope="billing",
    subject="database",
    fact_key="db.engine",
    tags=("db", "infra"),
    owner_principal="ada",
    confidence=0.5,
    valid_from="2026-01-01T00:00:00.000000Z",
    valid_to="2027-01-01T00:00:00.000000Z",
    review_after="2026-06-01T00:00:00.000000Z",
    protected=True,
    approval="user_approved",
    source_trust="human",
    status_reason="Not so.",
    pinned=True,
    sources=("https://example.org/1",),
    extra={"origin": {"line": 7}},
    lineage=Lineage(("a",), "b", ("c", "d"), "e", "f"),
    evidence=({"note": "Seen."},),
    verification=({"status": "passed", "source": "ci"},),
)

DIFFERENT: dict[str, Any] = {
    "memory_id": "other",
    "content": "MySQL.",
    "kind": "decision",
    "visibility": "internal",
    "status": "active",
    "event_type": "x",
    "type": "user",
    "title": "x",
    "summary": "x",
    "scope": "x",
    "subject": "x",
    "fact_key": "x",
    "tags": ("db",),
    "owner_principal": "bob",
    "confidence": 0.0,
    "valid_from": None,
    "valid_to": None,
    "review_after": None,
    "protected": False,
    "approval": None,
    "source_trust": "inference",
    "status_reason": None,
    "pinned": False,
    "sources": (),
    "extra": None,
    "lineage": Lineage(),
    "evidence": (),
    "verification": (),
}


def changed(name: str) -> Record:
    values = {field: getattr(FULL, field) for field in FIELD_NAMES}
    return Record(**{**values, name: DIFFERENT[name]})


def test_a_record_of_nothing_but_content_says_only_what_always_stands():
    assert Record("a", "x").to_json() == {
        "memory_id": "a",
        "content": "x",
        "kind": "observation",
        "visibility": "internal",
        "status": "active",
    }


@pytest.mark.parametrize(
    "record", [FULL, Record("a", "x"), Record("a", "x", confidence=0.0)], ids=["full", "least", "zero"]
)
def test_a_record_comes_back_from_its_json_as_it_was(record: Record):
    assert record_from_json(record.to_json()) == record
    assert record_from_json(record.to_json()).to_bytes() == record.to_bytes()


@pytest.mark.parametrize("name", FIELD_NAMES)
def test_every_field_is_carried_and_covered_by_the_digest(name: str):
    other = changed(name)
    assert other != FULL
    assert record_from_json(other.to_json()) == other
    assert record_digest(SALT, other) != record_digest(SALT, FULL)


@pytest.mark.parametrize(
    "part", ["corrected_from", "corrected_by", "supersedes", "superseded_by", "duplicate_of"]
)
def test_every_part_of_the_lineage_is_carried_and_covered(part: str):
    value: Any = ("z",) if part in ("corrected_from", "supersedes") else "z"
    record = Record("a", "x", lineage=Lineage(**{part: value}))
    assert record.to_json()["lineage"] == {part: ["z"] if isinstance(value, tuple) else "z"}
    assert record_from_json(record.to_json()) == record
    assert record_digest(SALT, record) != record_digest(SALT, Record("a", "x"))


def test_a_confidence_of_zero_is_not_the_same_as_none():
    assert Record("a", "x", confidence=0.0).to_json()["confidence"] == 0.0
    assert "confidence" not in Record("a", "x").to_json()


def test_the_digest_of_stored_bytes_is_that_of_the_record():
    assert record_bytes_digest(SALT, FULL.to_bytes()) == record_digest(SALT, FULL)


def test_a_salt_keeps_equal_texts_apart():
    other = "ffeeddccbbaa99887766554433221100"
    assert record_digest(SALT, FULL) != record_digest(other, FULL)
    assert attachment_digest(SALT, {"note": "x"}) != attachment_digest(other, {"note": "x"})


def test_every_status_is_active_or_retired():
    assert not ACTIVE_STATUSES & RETIRED_STATUSES
    assert {
        status for status in ACTIVE_STATUSES | RETIRED_STATUSES if Record("a", "x", status=status).is_active
    } == ACTIVE_STATUSES


def test_a_person_stands_behind_a_record_by_approval_or_by_trust():
    assert Record("a", "x", approval="user_approved").is_user_approved
    assert Record("a", "x", source_trust="user_approved").is_user_approved
    assert not Record("a", "x", source_trust="human").is_user_approved


def test_an_approval_covers_fields_of_a_record():
    assert set(FIELD_NAMES) >= APPROVED_FIELDS
    assert "tags" not in APPROVED_FIELDS


def test_attachments_are_a_set_sorted_by_their_bytes_in_whatever_order_they_came():
    items = [{"note": note} for note in "cab"] + [{"status": "passed"}, {"note": "a"}]
    one_by_one: tuple[Any, ...] = ()
    for item in items:
        one_by_one = with_attachment(one_by_one, item)
    assert one_by_one == sorted_attachments(items) == sorted_attachments(items[::-1])
    assert len(one_by_one) == 4


def test_an_attachment_is_taken_away_alone():
    items = sorted_attachments([{"note": note} for note in "abc"])
    assert without_attachment(items, {"note": "b"}) == sorted_attachments([{"note": "a"}, {"note": "c"}])
    assert without_attachment(items, {"note": "z"}) == items
    assert without_attachment((), {"note": "z"}) == ()


def test_the_digest_of_an_edge_tells_its_direction_and_kind():
    edges = [Edge("a", "k", "b"), Edge("b", "k", "a"), Edge("a", "l", "b"), Edge("a", "k", "c")]
    assert len({edge_digest(edge) for edge in edges}) == 4


def test_lineage_says_what_took_the_place_and_what_only_has_the_same_text():
    assert Lineage(corrected_by="b").heirs() == ("b",)
    assert Lineage(duplicate_of="c").heirs() == ()
    assert Lineage(duplicate_of="c").successor() == "c"
    assert Lineage(("a",), "b", ("c",), "d", "e").without_successor() == Lineage(
        corrected_from=("a",), supersedes=("c",)
    )
    assert Lineage(("a",), "b", ("c",), "d", "e").relatives() == {"a", "b", "c", "d", "e"}


def test_a_conflict_is_settled_when_no_field_is_open():
    left, right = Record("a", "left", title="l"), Record("a", "right", title="r")
    conflict = Conflicted("a", None, left, right, frozenset({"content", "title"}), left)
    half = conflict.settle(frozenset({"content"}), Record("a", "new", title="l"))
    assert isinstance(half, Conflicted)
    assert half.fields == {"title"}
    assert half.settle(frozenset({"title", "tags"}), Record("a", "new", title="t")) == Record(
        "a", "new", title="t"
    )
