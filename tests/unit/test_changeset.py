"""A create request's form, all faults at once, and what its digests cover (3-model, changeset and digests)."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from memory_git.domain.canonical import digest
from memory_git.domain.changeset import (
    CreateRequest,
    Salts,
    authored_view,
    check_replay,
    integrity_digest,
    op_digest,
    read_request,
    request_digest,
)
from memory_git.domain.errors import Clash, Invalid

PARENT = "0190a0b0-0000-7000-8000-000000000000"
OTHER = "0190a0b0-0000-7000-8000-000000000001"
THIRD = "0190a0b0-0000-7000-8000-000000000002"
SALTS = Salts("1" * 32, "2" * 32, "3" * 32, ("4" * 32,))
LEAST: dict[str, Any] = {
    "project_id": "shop",
    "ref_name": "refs/agents/builder/main",
    "parent_ids": [PARENT],
    "author_principal": "ada",
    "message": "Tabs.",
    "idempotency_key": "k1",
    "ops": [{"op_type": "add_memory", "payload": {"content": "Tabs.", "memory_id": "a"}}],
}


def request(**changes: Any) -> CreateRequest:
    raw = {name: value for name, value in {**LEAST, **changes}.items() if value is not ...}
    return read_request(raw, (f"fresh-{number}" for number in count()))


def refused(**changes: Any) -> Invalid:
    with pytest.raises(Invalid) as found:
        request(**changes)
    return found.value


FAULTS = {
    "no message": ({"message": ...}, ["message"]),
    "a blank message": ({"message": " "}, ["message"]),
    "a message of a number": ({"message": 7}, ["message"]),
    "a message of 4,097 bytes": ({"message": "\u6771" * 1365 + "aa"}, ["message"]),
    "no author": ({"author_principal": None}, ["author_principal"]),
    "no key": ({"idempotency_key": ""}, ["idempotency_key"]),
    "a key of 1,025 bytes": ({"idempotency_key": "k" * 1025}, ["idempotency_key"]),
    "an unknown field": ({"surprise": 1}, ["surprise"]),
    "a session of a list": ({"session_id": []}, ["session_id"]),
    "a lone surrogate": ({"model": "\ud800"}, ["model"]),
    "an expected head that is no id": ({"expected_head": "main"}, ["expected_head"]),
    "parents of text": ({"parent_ids": PARENT}, ["parent_ids"]),
    "a parent that is no id": ({"parent_ids": ["main"]}, ["parent_ids"]),
    "a parent twice": ({"parent_ids": [PARENT, PARENT]}, ["parent_ids"]),
    "advance_ref of text": ({"advance_ref": "yes"}, ["advance_ref"]),
    "evidence of an object": ({"evidence": {}}, ["evidence"]),
    "evidence with an unknown key": ({"evidence": [{"text": "x"}]}, ["evidence"]),
    "evidence of nothing": ({"evidence": [{}]}, ["evidence"]),
    "evidence of null": ({"evidence": [{"note": None}]}, ["evidence.note"]),
    "a note of 4,097 bytes": ({"evidence": [{"note": "n" * 4097}]}, ["evidence.note"]),
    "a source of 1,025 bytes": ({"verification": [{"source": "n" * 1025}]}, ["verification.source"]),
    "65 pieces of evidence": ({"evidence": [{"note": "x"}] * 65}, ["evidence"]),
    "no ops": ({"ops": []}, ["ops"]),
    "ops of text": ({"ops": "add"}, ["ops"]),
    "many at once": ({"message": "", "model": 7, "surprise": 1}, ["message", "model", "surprise"]),
}


@pytest.mark.parametrize(("changes", "fields"), FAULTS.values(), ids=FAULTS.keys())
def test_each_fault_of_a_request_is_named(changes: dict[str, Any], fields: list[str]):
    if changes == {"ops": "add"}:
        assert [fault.field for fault in request(**changes).faults] == fields
        return
    error = refused(**changes)
    assert error.code == "invalid_changeset"
    assert [fault.field for fault in error.faults] == fields


CODES = {
    "a bad project": ({"project_id": "Shop"}, "bad_project_id"),
    "a bad ref": ({"ref_name": "main"}, "bad_ref_name"),
    "three parents": ({"parent_ids": [PARENT, OTHER, THIRD]}, "too_many_parents"),
}


@pytest.mark.parametrize(("changes", "code"), CODES.values(), ids=CODES.keys())
def test_project_ref_and_parents_have_codes_of_their_own_and_still_tell_the_faults_of_ops(
    changes: dict[str, Any], code: str
):
    error = refused(**changes, ops=[{"op_type": "add_memory", "payload": {}}])
    assert error.code == code
    assert [(fault.ordinal, fault.field) for fault in error.faults] == [(0, "payload.content")]


def test_faults_of_the_request_and_of_its_ops_are_told_together():
    error = refused(message="", ops=[{"op_type": "add_memory", "payload": {}}])
    assert [(fault.ordinal, fault.field) for fault in error.faults] == [
        (None, "message"),
        (0, "payload.content"),
    ]
    assert "2 fault(s)" in error.message


def test_faults_of_ops_alone_wait_for_those_of_the_state():
    ops = [
        {"op_type": "add_memory", "payload": {"memory_id": "m", "content": "x", "tags": [""]}},
        {"op_type": "correct_memory", "target_event_id": "m", "payload": {"title": "x"}},
    ]
    found = request(ops=ops)
    assert [(fault.ordinal, fault.field) for fault in found.faults] == [(0, "payload.tags")]
    assert [op.ordinal for op in found.ops] == [1]
    assert found.presumed_ids == {"m"}


def test_a_changeset_has_at_most_eight_mebibytes():
    def ops(extra: int) -> list[dict[str, Any]]:
        sized = [{"op_type": "add_memory", "payload": {"content": "x" * 16_384}} for _ in range(509)]
        return [*sized, {"op_type": "add_memory", "payload": {"content": "x" * extra}}]

    def spare(size: int) -> int:
        error = refused(ops=[*ops(1), *ops(16_384)])
        assert error.faults[0].field == "ops"
        return size

    assert spare(1) == 1
    assert request(ops=ops(1)).faults == ()


def test_a_request_that_no_wire_could_have_brought_is_refused_as_such():
    assert refused(ops=[{"op_type": "add_memory", "payload": {"content": "\ud800"}}]).code == "not_i_json"


def test_a_clean_merge_needs_no_ops():
    assert request(parent_ids=[PARENT, OTHER], ops=[]).ops == ()


def test_the_caps_of_a_request_hold_at_their_edges():
    request(message="m" * 4096, idempotency_key="k" * 1024, evidence=[{"note": "n" * 4096}] * 64)


# digests


def views(**changes: Any) -> dict[str, Any]:
    return authored_view(request(**changes), ["0" * 64] * len(changes.get("parent_ids", [PARENT])), SALTS)


COVERED = {
    "project_id": "blog",
    "ref_name": "refs/agents/builder/other",
    "author_principal": "bob",
    "message": "Spaces.",
    "idempotency_key": "k2",
    "persona_id": "p",
    "actor_id": "builder",
    "surface": "mcp",
    "model": "m",
    "environment": "e",
    "session_id": "s",
    "topic_id": "t",
    "context_manifest_id": "c",
    "parent_ids": [OTHER],
    "evidence": [{"note": "x"}],
    "verification": [{"note": "x"}],
    "ops": [{"op_type": "add_memory", "payload": {"content": "Spaces.", "memory_id": "a"}}],
}


@pytest.mark.parametrize("name", COVERED)
def test_the_authored_digest_covers_what_the_author_wrote(name: str):
    assert digest(views(**{name: COVERED[name]})) != digest(views())


@pytest.mark.parametrize("name", ["expected_head", "advance_ref", "create_ref_if_missing", "protected"])
def test_control_fields_are_in_the_request_digest_but_not_in_what_is_authored(name: str):
    value = PARENT if name == "expected_head" else True
    assert views(**{name: value}) == views()
    assert request_digest("0" * 32, request(**{name: value})) != request_digest("0" * 32, request())


def test_the_order_of_parents_counts():
    two = authored_view(request(parent_ids=[PARENT, OTHER]), ["0" * 64, "1" * 64], SALTS)
    swapped = authored_view(request(parent_ids=[OTHER, PARENT]), ["1" * 64, "0" * 64], SALTS)
    assert digest(two) != digest(swapped)


def test_an_authored_view_holds_no_text():
    assert "Tabs." not in repr(views())


def test_the_integrity_digest_covers_id_time_and_state():
    values = ["0" * 64, PARENT, "2026-01-01T00:00:00.000000Z", "1" * 64]
    found = {integrity_digest(*values)}
    for place in range(4):
        found.add(integrity_digest(*values[:place], "other", *values[place + 1 :]))
    assert len(found) == 5


def test_an_op_digest_covers_type_identities_and_payload_but_not_the_place():
    (op,) = request().ops
    others = [
        replace(op, op_type="correct_memory"),
        replace(op, target_event_id="x"),
        replace(op, resulting_event_id="x"),
        op.with_payload(title="x"),
    ]
    assert len({op_digest("0" * 32, item) for item in [op, *others]}) == 5
    assert op_digest("0" * 32, replace(op, ordinal=7)) == op_digest("0" * 32, op)
    assert op_digest("1" * 32, op) != op_digest("0" * 32, op)


def test_the_same_request_is_a_replay_and_any_other_under_its_key_a_mismatch():
    stored = request_digest("a" * 64, request())
    check_replay(request_digest("a" * 64, request(model=None, protected=False)), stored, PARENT)
    others = {
        "authored": request_digest("b" * 64, request()),
        "control": request_digest("a" * 64, request(protected=True)),
        "head": request_digest("a" * 64, request(expected_head=OTHER)),
    }
    assert len({stored, *others.values()}) == 4
    with pytest.raises(Clash):
        check_replay(others["control"], stored, PARENT)
    with pytest.raises(Clash) as found:
        check_replay(None, stored, PARENT)
    assert (found.value.code, found.value.facts) == ("idempotency_mismatch", {"changeset_id": PARENT})
