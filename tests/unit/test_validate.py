"""Whether ops are well formed, before any state is asked (3-model, operations): each rule, each cap, all faults at once."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
import rfc8785

from memory_git.domain.ops import CLEARABLE_KEYS, OP_TYPES, PAYLOAD_KEYS, Op
from memory_git.domain.validate import check_ops, presumed_ids

DIGEST = "0" * 64
WIDE = "\u6771"
"""Three bytes in UTF-8."""

WELL_FORMED: dict[str, dict[str, Any]] = {
    "add_memory": {"payload": {"content": "Tabs."}},
    "correct_memory": {"target_event_id": "a", "payload": {"title": "Tabs"}},
    "supersede_memory": {"target_event_id": "a", "payload": {"content": "Spaces."}},
    "mark_duplicate": {"target_event_id": "a", "resulting_event_id": "b", "payload": {}},
    "add_relationship": {"target_event_id": "a", "resulting_event_id": "b", "payload": {"kind": "links_to"}},
    "remove_relationship": {
        "target_event_id": "a",
        "resulting_event_id": "b",
        "payload": {"kind": "links_to"},
    },
    "propose_deprecation": {"target_event_id": "a", "payload": {"reason": "Old."}},
    "attach_evidence": {"target_event_id": "a", "payload": {"note": "Seen in the log."}},
    "attach_verification": {"target_event_id": "a", "payload": {"status": "passed"}},
    "set_status": {"target_event_id": "a", "payload": {"status": "disputed", "reason": "Not so."}},
    "detach": {"target_event_id": "a", "payload": {"attachment_digest": DIGEST}},
}


def ids():
    return (f"fresh-{number}" for number in count())


def check(*raw: Any) -> tuple[list[Op], list[tuple[int | None, str, str, str]]]:
    ops, faults = check_ops(list(raw), ids())
    return ops, [(fault.ordinal, fault.field, fault.rule, fault.found) for fault in faults]


def an_op(op_type: str, **changes: Any) -> dict[str, Any]:
    """Gives a well-formed op of a type, with payload keys or op-level fields changed; None takes one away."""
    op = {"op_type": op_type, **WELL_FORMED[op_type]}
    payload = dict(op["payload"])
    for name, value in changes.items():
        place = op if name in ("target_event_id", "resulting_event_id") else payload
        if value is None:
            place.pop(name, None)
        else:
            place[name] = value
    return {**op, "payload": payload}


def one(op_type: str, **changes: Any) -> Op:
    ops, faults = check(an_op(op_type, **changes))
    assert faults == []
    return ops[0]


@pytest.mark.parametrize("op_type", OP_TYPES)
def test_the_least_that_a_type_requires_is_well_formed(op_type: str):
    op = one(op_type)
    assert op.op_type == op_type
    assert op.ordinal == 0


MISSING = {
    "add without content": ("add_memory", {"content": None}, "payload.content", "needs a non-empty content"),
    "add with null content": (
        "add_memory",
        {"content": None},
        "payload.content",
        "needs a non-empty content",
    ),
    "add with empty content": ("add_memory", {"content": ""}, "payload.content", "must not be empty"),
    "add with white space for content": (
        "add_memory",
        {"content": " \t\n"},
        "payload.content",
        "must not be empty",
    ),
    "add with a target": ("add_memory", {"target_event_id": "a"}, "target_event_id", "has no target"),
    "correct without a target": (
        "correct_memory",
        {"target_event_id": None},
        "target_event_id",
        "needs a target",
    ),
    "correct with an empty target": (
        "correct_memory",
        {"target_event_id": ""},
        "target_event_id",
        "needs a target",
    ),
    "correct without a correction": (
        "correct_memory",
        {"title": None},
        "payload",
        "at least one correction field",
    ),
    "correct with a note of the op only": (
        "correct_memory",
        {"title": None, "op_note": "x"},
        "payload",
        "at least one correction",
    ),
    "correct with nothing to clear": (
        "correct_memory",
        {"title": None, "clear": []},
        "payload",
        "at least one correction",
    ),
    "correct into itself": (
        "correct_memory",
        {"resulting_event_id": "a"},
        "resulting_event_id",
        "must differ",
    ),
    "correct with empty content": ("correct_memory", {"content": ""}, "payload.content", "must not be empty"),
    "supersede without a target": (
        "supersede_memory",
        {"target_event_id": None},
        "target_event_id",
        "needs a target",
    ),
    "supersede itself": (
        "supersede_memory",
        {"resulting_event_id": "a"},
        "resulting_event_id",
        "must differ",
    ),
    "supersede itself by payload": (
        "supersede_memory",
        {"memory_id": "a"},
        "resulting_event_id",
        "must differ",
    ),
    "a title for a successor that isn't made": (
        "supersede_memory",
        {"content": None, "title": "x"},
        "payload.title",
        "without content makes no memory",
    ),
    "duplicate without a duplicate": (
        "mark_duplicate",
        {"target_event_id": None},
        "payload.duplicate_id",
        "needs it",
    ),
    "duplicate without a canonical": (
        "mark_duplicate",
        {"resulting_event_id": None},
        "payload.duplicate_of",
        "needs it",
    ),
    "duplicate of itself": (
        "mark_duplicate",
        {"resulting_event_id": "a"},
        "resulting_event_id",
        "must differ",
    ),
    "relationship without from": (
        "add_relationship",
        {"target_event_id": None},
        "payload.from_memory_id",
        "needs it",
    ),
    "relationship without to": (
        "add_relationship",
        {"resulting_event_id": None},
        "payload.to_memory_id",
        "needs it",
    ),
    "relationship without kind": ("add_relationship", {"kind": None}, "payload.kind", "non-empty kind"),
    "relationship of a blank kind": ("add_relationship", {"kind": " "}, "payload.kind", "non-empty kind"),
    "relationship with itself": (
        "add_relationship",
        {"resulting_event_id": "a"},
        "resulting_event_id",
        "must differ",
    ),
    "removal without kind": ("remove_relationship", {"kind": None}, "payload.kind", "non-empty kind"),
    "deprecation without reason": (
        "propose_deprecation",
        {"reason": None},
        "payload.reason",
        "non-empty reason",
    ),
    "deprecation of a blank reason": (
        "propose_deprecation",
        {"reason": "  "},
        "payload.reason",
        "non-empty reason",
    ),
    "deprecation without a target": (
        "propose_deprecation",
        {"target_event_id": None},
        "target_event_id",
        "needs a target",
    ),
    "status without status": ("set_status", {"status": None}, "payload.status", "non-empty status"),
    "status without reason": ("set_status", {"reason": None}, "payload.reason", "non-empty reason"),
    "status that ops don't set": ("set_status", {"status": "superseded"}, "payload.status", "must be one of"),
    "status with a result": (
        "set_status",
        {"resulting_event_id": "b"},
        "resulting_event_id",
        "makes no memory",
    ),
    "detach without digest": (
        "detach",
        {"attachment_digest": None},
        "payload.attachment_digest",
        "non-empty",
    ),
    "detach by a short digest": (
        "detach",
        {"attachment_digest": "0"},
        "payload.attachment_digest",
        "64 lower-case",
    ),
    "detach with a result": ("detach", {"resulting_event_id": "b"}, "resulting_event_id", "makes no memory"),
    "evidence that holds nothing": ("attach_evidence", {"note": None}, "payload", "needs one of"),
    "evidence of empty text": ("attach_evidence", {"note": ""}, "payload", "needs one of"),
    "attestation without summary": (
        "attach_verification",
        {"target_event_id": None, "reviewer": "ada"},
        "payload.summary",
        "non-empty summary",
    ),
    "attestation without provenance": (
        "attach_verification",
        {"target_event_id": None, "summary": "Reviewed."},
        "payload",
        "needs one of",
    ),
    "attestation of empty provenance": (
        "attach_verification",
        {"target_event_id": None, "summary": "Reviewed.", "reviewer": ""},
        "payload",
        "needs one of",
    ),
}


@pytest.mark.parametrize(("op_type", "changes", "field", "rule"), MISSING.values(), ids=MISSING.keys())
def test_what_a_type_requires_is_told_once_with_ordinal_and_field(
    op_type: str, changes: dict[str, Any], field: str, rule: str
):
    ops, faults = check(an_op("add_memory"), an_op(op_type, **changes))
    assert [op.ordinal for op in ops] == [0]
    assert len(faults) == 1
    assert faults[0][:2] == (1, field)
    assert rule in faults[0][2]


ALLOWED = {
    "active needs no reason": ("set_status", {"status": "active", "reason": None}),
    "a correction that only clears": ("correct_memory", {"title": None, "clear": ["tags"]}),
    "a correction of the summary": ("correct_memory", {"title": None, "summary": "x"}),
    "a supersession without successor": ("supersede_memory", {"content": None}),
    "a supersession by an existing memory": (
        "supersede_memory",
        {"content": None, "resulting_event_id": "b"},
    ),
    "an op summary on a supersession without content": (
        "supersede_memory",
        {"content": None, "summary": "x"},
    ),
    "an attestation": ("attach_verification", {"target_event_id": None, "summary": "x", "proposal_id": "p"}),
    "empty times are open": ("add_memory", {"valid_from": "", "valid_to": "", "review_after": ""}),
    "an empty approval": ("add_memory", {"approval": ""}),
    "a whole confidence": ("add_memory", {"confidence": 1}),
    "no confidence at all": ("add_memory", {"confidence": 0}),
    "an empty extra": ("add_memory", {"extra": {}}),
}


@pytest.mark.parametrize(("op_type", "changes"), ALLOWED.values(), ids=ALLOWED.keys())
def test_what_is_optional_may_be_left_out(op_type: str, changes: dict[str, Any]):
    one(op_type, **changes)


@pytest.mark.parametrize("op_type", OP_TYPES)
def test_payload_keys_are_closed_per_type_and_an_unknown_one_is_named(op_type: str):
    strange = sorted(set().union(*PAYLOAD_KEYS.values()) - PAYLOAD_KEYS[op_type])[0:2]
    _, faults = check(an_op(op_type, surprise="x", **dict.fromkeys(strange, "x")))
    assert [(field, rule) for _, field, rule, _ in faults if "unknown" in rule] == [
        (f"payload.{key}", f"unknown key for {op_type}") for key in ["surprise", *strange]
    ]


VALUES = {
    "content of a number": ("content", 7, "must be a string", "a number"),
    "a kind that isn't one": ("kind", "rumour", "must be one of observation", "a string"),
    "a kind of a list": ("kind", ["fact"], "must be one of", "a list"),
    "a visibility that isn't one": ("visibility", "secret", "must be one of private", "a string"),
    "a from_visibility that isn't one": ("from_visibility", "all", "must be one of private", "a string"),
    "a confidence above one": ("confidence", 1.01, "within 0 and 1", "a number outside"),
    "a confidence below zero": ("confidence", -0.01, "within 0 and 1", "a number outside"),
    "a confidence of text": ("confidence", "0.5", "must be a number", "a string"),
    "a confidence of truth": ("confidence", True, "must be a number", "a boolean"),
    "tags of text": ("tags", "a,b", "must be a list of strings", "a string"),
    "a tag of a number": ("tags", ["a", 7], "every item must be a non-empty string", "a number"),
    "an empty tag": ("tags", ["a", ""], "every item must be a non-empty string", "a string"),
    "a blank tag": ("tags", [" "], "every item must be a non-empty string", "a string"),
    "sources of objects": ("sources", [{}], "every item must be a non-empty string", "an object"),
    "a time without zone": ("valid_from", "2026-01-02T03:04:05", "RFC 3339", "a string"),
    "a time of a number": ("valid_to", 1767322445, "RFC 3339", "a number"),
    "a review date alone": ("review_after", "2026-01-02", "RFC 3339", "a string"),
    "protected of text": ("protected", "yes", "true or false", "a string"),
    "pinned of a number": ("pinned", 1, "true or false", "a number"),
    "revive of text": ("revive", "true", "true or false", "a string"),
    "an approval that isn't one": ("approval", "approved", "must be one of user_approved", "a string"),
    "a trust that isn't one": ("source_trust", "oracle", "must be one of", "a string"),
    "extra of a list": ("extra", [], "must be an object", "a list"),
    "a scope of a number": ("scope", 7, "must be a string", "a number"),
    "an actor of an object": ("actor_id", {}, "must be a string", "an object"),
    "an op note of a list": ("op_note", [], "must be a string", "a list"),
}


@pytest.mark.parametrize(("key", "value", "rule", "found"), VALUES.values(), ids=VALUES.keys())
def test_every_value_is_checked_and_the_fault_says_its_kind_but_never_the_value(
    key: str, value: Any, rule: str, found: str
):
    _, faults = check(an_op("add_memory", **{key: value}))
    assert len(faults) == 1
    assert faults[0][:2] == (0, f"payload.{key}")
    assert rule in faults[0][2]
    assert faults[0][3] == found


def text_of(size: int) -> str:
    """Gives a text of so many bytes, most of them in characters of three bytes."""
    return WIDE * (size // 3) + "a" * (size % 3)


CAPS = {
    "content": ("add_memory", "content", 16 * 1024),
    "summary": ("add_memory", "summary", 4 * 1024),
    "reason": ("propose_deprecation", "reason", 4 * 1024),
    "note": ("attach_evidence", "note", 4 * 1024),
    "title": ("add_memory", "title", 1024),
    "scope": ("add_memory", "scope", 1024),
    "op_note": ("add_memory", "op_note", 1024),
    "relationship kind": ("add_relationship", "kind", 1024),
    "attachment source": ("attach_evidence", "source", 1024),
    "target": ("correct_memory", "target_event_id", 1024),
    "result": ("add_memory", "resulting_event_id", 1024),
    "memory_id": ("add_memory", "memory_id", 1024),
    "duplicate_of": ("mark_duplicate", "duplicate_of", 1024),
}


@pytest.mark.parametrize(("op_type", "key", "most"), CAPS.values(), ids=CAPS.keys())
def test_a_text_may_have_its_cap_in_utf8_bytes_and_not_one_more(op_type: str, key: str, most: int):
    unset = {"resulting_event_id": None} if key == "duplicate_of" else {}
    one(op_type, **{**unset, key: text_of(most)})
    _, faults = check(an_op(op_type, **{**unset, key: text_of(most + 1)}))
    assert len(faults) >= 1
    assert faults[0][1].endswith(key)
    assert faults[0][3] == f"{most + 1} bytes"


def test_tags_are_capped_in_number_and_each_in_bytes():
    one("add_memory", tags=[f"t{number}" for number in range(64)])
    one("add_memory", tags=[text_of(128)])
    assert check(an_op("add_memory", tags=[f"t{number}" for number in range(65)]))[1] == [
        (0, "payload.tags", "at most 64 items", "65 items")
    ]
    assert check(an_op("add_memory", tags=[text_of(129)]))[1] == [
        (0, "payload.tags", "an item has at most 128 bytes", "129 bytes")
    ]


def test_extra_is_capped_in_bytes_of_canonical_json():
    frame = len('{"a":""}')
    one("add_memory", extra={"a": text_of(4096 - frame)})
    assert check(an_op("add_memory", extra={"a": text_of(4097 - frame)}))[1] == [
        (0, "payload.extra", "at most 4096 bytes of canonical JSON", "4097 bytes")
    ]


def test_a_whole_payload_is_capped_in_bytes_of_canonical_json():
    sources = [f"{number:02}" + "s" * 1022 for number in range(50)]
    frame = len('{"content":"","sources":[]}') + 50 * len('"",') + 50 * 1024 - 1
    one("add_memory", content="x" * (64 * 1024 - frame), sources=sources)
    _, faults = check(an_op("add_memory", content="x" * (64 * 1024 - frame + 1), sources=sources))
    assert faults == [(0, "payload", "at most 65536 bytes of canonical JSON", "65537 bytes")]


def test_a_changeset_has_at_most_ten_thousand_ops():
    ops, faults = check(*[an_op("add_memory")] * 10_000)
    assert (len(ops), faults) == (10_000, [])
    assert check(*[an_op("add_memory")] * 10_001)[1] == [
        (None, "ops", "at most 10000 ops in a changeset", "10001")
    ]


SHAPES = {
    "ops of an object": ({}, None, "ops", "must be a list"),
    "ops of null": (None, None, "ops", "must be a list"),
    "an op of text": (["add"], 0, "op", "must be an object"),
    "an op of null": ([None], 0, "op", "must be an object"),
    "no type": ([{}], 0, "op_type", "must be one of"),
    "an unknown type": ([{"op_type": "delete_memory"}], 0, "op_type", "must be one of"),
    "a type of a list": ([{"op_type": ["add_memory"]}], 0, "op_type", "must be one of"),
    "a payload of a list": ([{"op_type": "add_memory", "payload": []}], 0, "payload", "must be an object"),
    "a payload of null": ([{"op_type": "add_memory", "payload": None}], 0, "payload", "must be an object"),
    "no payload": ([{"op_type": "add_memory"}], 0, "payload.content", "needs a non-empty content"),
    "a key beside the payload": (
        [{"op_type": "add_memory", "content": "x", "payload": {"content": "x"}}],
        0,
        "content",
        "unknown key of an op",
    ),
    "a target of a number": (
        [{"op_type": "correct_memory", "target_event_id": 7, "payload": {"title": "x"}}],
        0,
        "target_event_id",
        "must be a memory id",
    ),
}


@pytest.mark.parametrize(("raw", "ordinal", "field", "rule"), SHAPES.values(), ids=SHAPES.keys())
def test_whatever_stands_for_ops_is_refused_by_name(raw: Any, ordinal: int | None, field: str, rule: str):
    _, faults = check_ops(raw, ids())
    assert (faults[0].ordinal, faults[0].field) == (ordinal, field)
    assert rule in faults[0].rule


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth else []


OUTSIDE_I_JSON = {
    "a lone surrogate in content": {"content": "\ud800"},
    "a lone surrogate in a tag": {"tags": ["\udfff"]},
    "a lone surrogate in a key of extra": {"extra": {"\ud800": 1}},
    "NaN": {"extra": {"a": float("nan")}},
    "infinity": {"extra": {"a": float("inf")}},
    "an integer beyond 2^53-1": {"extra": {"a": 2**53}},
    "nested too deep": {"extra": {"a": nested(70)}},
}


@pytest.mark.parametrize("payload", OUTSIDE_I_JSON.values(), ids=OUTSIDE_I_JSON.keys())
def test_what_is_outside_i_json_is_refused(payload: dict[str, Any]):
    _, faults = check(an_op("add_memory", **payload))
    assert faults == [
        (0, "payload", "must be I-JSON: no lone surrogates, no NaN, integers within 2^53-1", "")
    ]


def test_all_faults_of_a_changeset_are_told_in_one_go_in_the_order_of_ops():
    ops, faults = check(
        an_op("add_memory", content=None, confidence=7, surprise=1),
        an_op("correct_memory"),
        an_op("correct_memory", target_event_id=None, title=None),
        "nonsense",
        an_op("set_status", status=None, reason=None),
    )
    assert [op.ordinal for op in ops] == [1]
    assert [(ordinal, field) for ordinal, field, _, _ in faults] == [
        (0, "payload.confidence"),
        (0, "payload.surprise"),
        (0, "payload.content"),
        (2, "target_event_id"),
        (2, "payload"),
        (3, "op"),
        (4, "payload.status"),
        (4, "payload.reason"),
    ]


def test_unknown_keys_are_told_in_one_order():
    strange = {f"k{number}": 1 for number in range(20)}
    _, faults = check({"op_type": "add_memory", "payload": {"content": "x"}, **strange})
    assert [field for _, field, _, _ in faults] == sorted(strange)


CHANNELS = {
    "add by result": ("add_memory", {"resulting_event_id": "m"}, None, "m"),
    "add by memory_id": ("add_memory", {"memory_id": "m"}, None, "m"),
    "add by event_id": ("add_memory", {"event_id": "m"}, None, "m"),
    "add by all three": (
        "add_memory",
        {"resulting_event_id": "m", "memory_id": "m", "event_id": "m"},
        None,
        "m",
    ),
    "add by none": ("add_memory", {}, None, "fresh-0"),
    "add by an empty one": ("add_memory", {"memory_id": ""}, None, "fresh-0"),
    "supersede by memory_id": ("supersede_memory", {"memory_id": "m"}, "a", "m"),
    "supersede by event_id": ("supersede_memory", {"event_id": "m"}, "a", "m"),
    "supersede by none": ("supersede_memory", {}, "a", "fresh-0"),
    "supersede without content": ("supersede_memory", {"content": None}, "a", None),
    "correct in place": ("correct_memory", {}, "a", None),
    "correct by result": ("correct_memory", {"resulting_event_id": "m"}, "a", "m"),
    "duplicate by payload": (
        "mark_duplicate",
        {"target_event_id": None, "resulting_event_id": None, "duplicate_id": "d", "duplicate_of": "c"},
        "d",
        "c",
    ),
    "relationship by payload": (
        "add_relationship",
        {"target_event_id": None, "resulting_event_id": None, "from_memory_id": "f", "to_memory_id": "t"},
        "f",
        "t",
    ),
    "removal by payload": (
        "remove_relationship",
        {"target_event_id": None, "resulting_event_id": None, "from_memory_id": "f", "to_memory_id": "t"},
        "f",
        "t",
    ),
    "decomposed and composed are one id": (
        "add_memory",
        {"resulting_event_id": "cafe\u0301", "memory_id": "caf\u00e9"},
        None,
        "caf\u00e9",
    ),
}


@pytest.mark.parametrize(("op_type", "changes", "target", "result"), CHANNELS.values(), ids=CHANNELS.keys())
def test_identities_move_into_the_op_level_fields(
    op_type: str, changes: dict[str, Any], target: str | None, result: str | None
):
    op = one(op_type, **changes)
    assert (op.target_event_id, op.resulting_event_id) == (target, result)


DISAGREEING = {
    "result and memory_id": (
        "add_memory",
        {"resulting_event_id": "m", "memory_id": "n"},
        "resulting_event_id",
    ),
    "memory_id and event_id": ("add_memory", {"memory_id": "m", "event_id": "n"}, "resulting_event_id"),
    "supersede's result and event_id": (
        "supersede_memory",
        {"resulting_event_id": "m", "event_id": "n"},
        "resulting_event_id",
    ),
    "target and duplicate_id": ("mark_duplicate", {"duplicate_id": "x"}, "target_event_id"),
    "result and duplicate_of": ("mark_duplicate", {"duplicate_of": "x"}, "resulting_event_id"),
    "target and from_memory_id": ("add_relationship", {"from_memory_id": "x"}, "target_event_id"),
    "result and to_memory_id": ("remove_relationship", {"to_memory_id": "x"}, "resulting_event_id"),
}


@pytest.mark.parametrize(("op_type", "changes", "field"), DISAGREEING.values(), ids=DISAGREEING.keys())
def test_identity_channels_that_disagree_are_refused(op_type: str, changes: dict[str, Any], field: str):
    _, faults = check(an_op(op_type, **changes))
    assert [fault[:2] for fault in faults] == [(0, field)]
    assert "disagree" in faults[0][2]


BAD_IDS = {
    "a number": 7,
    "a list": [],
    "a control character": "a\nb",
    "a lone surrogate": "\ud800",
}


@pytest.mark.parametrize("value", BAD_IDS.values(), ids=BAD_IDS.keys())
def test_a_bad_id_is_told_under_the_channel_that_it_came_by(value: Any):
    _, faults = check(an_op("add_memory", memory_id=value))
    assert [fault[1] for fault in faults if "memory id" in fault[2]] == ["payload.memory_id"]


def test_a_payload_is_normalized_so_that_equal_ones_have_equal_bytes():
    op = one(
        "add_memory",
        tags=["b", "a", "b"],
        sources=["z", "y"],
        valid_from="2026-01-02T03:04:05+01:00",
        review_after="",
        title=None,
    )
    assert op.payload["tags"] == ["a", "b"]
    assert op.payload["sources"] == ["y", "z"]
    assert op.payload["valid_from"] == "2026-01-02T02:04:05.000000Z"
    assert op.payload["review_after"] == ""
    nulled, faults = check({"op_type": "add_memory", "payload": {"content": "x", "title": None}})
    assert faults == []
    assert "title" not in nulled[0].payload


def test_content_keeps_every_character_as_it_was_written():
    content = "  cafe\u0301 \u200d\t\r\n end  "
    assert one("add_memory", content=content).payload["content"] == content


def test_clear_names_fields_that_can_be_empty_and_is_a_sorted_set():
    assert one("correct_memory", title=None, clear=sorted(CLEARABLE_KEYS, reverse=True)).payload[
        "clear"
    ] == sorted(CLEARABLE_KEYS)
    for key in ("content", "kind", "visibility", "owner_principal", "memory_id"):
        _, faults = check(an_op("correct_memory", clear=[key]))
        assert [fault[1] for fault in faults] == ["payload.clear"]


CLEARS = {
    "a list in clear": ([["tags"]], "payload.clear"),
    "an object in clear": ([{}], "payload.clear"),
    "clear of text": ("tags", "payload.clear"),
    "assigned and cleared at once": (["title"], "payload.title"),
}


@pytest.mark.parametrize(("clear", "field"), CLEARS.values(), ids=CLEARS.keys())
def test_a_bad_clear_is_a_fault_and_never_a_crash(clear: Any, field: str):
    _, faults = check(an_op("correct_memory", clear=clear))
    assert [fault[1] for fault in faults] == [field]


def test_the_server_assigns_ordinals_whatever_the_client_says():
    ops, _ = check({**an_op("add_memory"), "ordinal": 7}, {**an_op("add_memory"), "ordinal": 7})
    assert [op.ordinal for op in ops] == [0, 1]


def test_what_faulty_ops_would_have_made_is_presumed():
    raw = [
        an_op("add_memory", memory_id="a", confidence=7),
        an_op("add_memory", memory_id="b"),
        an_op("supersede_memory", resulting_event_id="cafe\u0301", confidence=7),
        an_op("mark_duplicate", surprise=1),
        {"op_type": ["add_memory"], "resulting_event_id": "x"},
        "nonsense",
    ]
    _, faults = check_ops(raw, ids())
    assert presumed_ids(raw, faults) == {"a", "caf\u00e9"}
    assert presumed_ids({}, check_ops({}, ids())[1]) == frozenset()


def test_a_key_that_is_shown_is_cut_and_printable():
    _, faults = check(an_op("add_memory", **{"\n" + "k" * 100: 1}))
    assert faults[0][1] == "payload.?" + "k" * 63


def test_a_bad_target_is_one_fault_and_not_also_a_missing_one():
    for value in (7, "a\nb"):
        _, faults = check(an_op("correct_memory", target_event_id=value))
        assert [fault[1] for fault in faults] == ["target_event_id"]


def test_what_disagrees_is_named_by_where_each_stands():
    _, faults = check(an_op("add_memory", resulting_event_id="a", memory_id="b"))
    assert faults[0][2] == "the identity channels resulting_event_id, payload.memory_id disagree"


def test_a_succession_without_content_can_clear_nothing():
    _, faults = check(an_op("supersede_memory", content=None, clear=["tags"]))
    assert [fault[1] for fault in faults] == ["payload.clear"]


def test_an_event_that_a_faulty_op_would_have_adopted_is_presumed_whatever_else_is_wrong():
    named = {"op_type": "add_memory", "payload": {"event_id": "e", "confidence": 7}}
    shapeless = {"op_type": "add_memory", "resulting_event_id": "f", "payload": "text"}
    raw = [named, shapeless]
    assert presumed_ids(raw, check_ops(raw, ids())[1]) == {"e", "f"}


def test_the_bytes_of_a_payload_are_canonical_whatever_numbers_it_holds():
    for changes in (
        {"confidence": 1.0},
        {"confidence": 0.25},
        {"extra": {"n": 2.0, "m": 1e21}},
        {"title": "T"},
    ):
        op = one("add_memory", **changes)
        assert op.payload_bytes() == rfc8785.dumps(dict(op.payload))


FOUND = {
    "a digest of another length": (an_op("detach", attachment_digest="0" * 63), "63 bytes"),
    "a digest that is no text": (an_op("detach", attachment_digest=[]), "a list"),
    "nothing where a list is": ({**an_op("add_memory"), "payload": None}, "null"),
    "a kind that JSON has not": (an_op("add_memory", title={1}), "an unknown kind"),
    "a text of white space": (an_op("add_memory", content="  "), "only white space"),
    "an unknown key": (an_op("add_memory", surprise="secret"), ""),
    "a field that can't be cleared": (an_op("correct_memory", clear=["content"]), ""),
    "what is outside I-JSON": (an_op("add_memory", extra={"a": "\ud800"}), ""),
}


@pytest.mark.parametrize(("raw", "found"), FOUND.values(), ids=FOUND.keys())
def test_a_fault_says_what_kind_or_size_was_found_or_nothing(raw: dict[str, Any], found: str):
    assert [fault[3] for fault in check(raw)[1]][:1] == [found]
