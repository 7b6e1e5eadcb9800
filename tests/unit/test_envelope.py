"""The authorization of a protected merge: every rule of `authorize`, and the settings of merge keys."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_git.domain.canonical import canonical_bytes, hmac_hex
from memory_git.domain.envelope import (
    Envelope,
    MergeKeys,
    MergeRequest,
    authorize,
    issue,
    parse_merge_keys,
    sign,
    signature_holds,
)
from memory_git.domain.errors import Invalid, NotAllowed

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
SECRET, OTHER_SECRET = "s" * 32, "o" * 40
KEYS = MergeKeys((("k1", SECRET), ("k2", OTHER_SECRET)))
REQUEST = MergeRequest(
    project_id="atlas",
    ref_name="refs/shared/main",
    expected_head="01890a5d-ac96-774b-bcce-b302099a8057",
    new_head="01890a5d-ac96-774b-bcce-b302099a8058",
    proposal_id="01890a5d-ac96-774b-bcce-b302099a8059",
    reviewer_principal="lead-reviewer",
)
ENVELOPE = issue(
    REQUEST,
    proposal_digest="ab" * 32,
    merger_principal="release-desk",
    strategy="merge_commit",
    now=NOW,
    nonce="0f" * 16,
)
FIELDS = tuple(asdict(ENVELOPE))


def wire_of(signed: object, secret: str = SECRET) -> str:
    signature = hmac_hex(secret.encode(), canonical_bytes(signed))
    return json.dumps({"envelope": signed, "signature": signature})


def signed_fields(**changes: object) -> dict[str, object]:
    return {**asdict(ENVELOPE), "key_id": "k1", **changes}


def reason_of(
    wire: object, now: datetime = NOW, keys: MergeKeys = KEYS, request: MergeRequest = REQUEST
) -> str:
    with pytest.raises(NotAllowed) as caught:
        authorize(wire, request, keys, now)
    assert caught.value.code == "invalid_authorization"
    assert caught.value.status == 403
    assert SECRET not in str(caught.value.to_problem())
    return str(caught.value.facts["reason"])


def test_a_signed_envelope_allows_its_request() -> None:
    assert authorize(sign(ENVELOPE, KEYS), REQUEST, KEYS, NOW) == replace(ENVELOPE, key_id="k1")


def test_the_wire_text_is_the_canonical_json_of_envelope_and_signature() -> None:
    wire = sign(ENVELOPE, KEYS)
    assert wire == canonical_bytes(json.loads(wire)).decode()
    assert json.loads(wire)["signature"] == hmac_hex(SECRET.encode(), canonical_bytes(signed_fields()))


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_changed_after_signing_is_refused(name: str) -> None:
    found = json.loads(sign(ENVELOPE, KEYS))
    found["envelope"][name] = {
        "version": "memory-git-merge/v1",
        "strategy": "fast_forward",
        "nonce": "1f" * 16,
        "proposal_digest": "ac" * 32,
        "issued_at": "2026-03-04T05:06:06.000000Z",
        "expires_at": "2026-03-04T05:09:00.000000Z",
        "key_id": "k2",
    }.get(name, found["envelope"][name] + "x")
    assert reason_of(json.dumps(found)) == ("bad_form" if name == "version" else "bad_signature")


@pytest.mark.parametrize("name", tuple(asdict(REQUEST)))
def test_a_request_that_differs_in_one_field_is_refused_with_the_field_named(name: str) -> None:
    request = replace(REQUEST, **{name: "something-else"})
    with pytest.raises(NotAllowed) as caught:
        authorize(sign(ENVELOPE, KEYS), request, KEYS, NOW)
    assert caught.value.facts == {"reason": "field_mismatch", "field": name}


@pytest.mark.parametrize("name", FIELDS)
def test_an_envelope_without_a_field_is_malformed(name: str) -> None:
    signed = signed_fields()
    del signed[name]
    assert reason_of(wire_of(signed)) == "bad_form"


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("value", [None, 7, True, [], {}, ["x"]], ids=repr)
def test_a_field_of_another_type_is_malformed_even_when_signed(name: str, value: object) -> None:
    assert reason_of(wire_of(signed_fields(**{name: value}))) == "bad_form"


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "key_id"])
def test_an_empty_field_is_malformed(name: str) -> None:
    assert reason_of(wire_of(signed_fields(**{name: ""}))) == "bad_form"


MALFORMED = {
    "an upper-case nonce": {"nonce": "0F" * 16},
    "a short nonce": {"nonce": "0f" * 15},
    "a nonce with a line break": {"nonce": "0f" * 16 + "\n"},
    "a short digest": {"proposal_digest": "ab" * 31},
    "an upper-case digest": {"proposal_digest": "AB" * 32},
    "an unknown strategy": {"strategy": "rebase"},
    "another version": {"version": "memory-git-merge/v3"},
    "a time without a zone": {"issued_at": "2026-03-04T05:06:07"},
    "a date only": {"expires_at": "2026-03-05"},
    "a thirteenth month": {"issued_at": "2026-13-04T05:06:07Z"},
    "expiry before issue": {"expires_at": "2026-03-04T05:06:06Z"},
    "expiry at issue": {"expires_at": "2026-03-04T05:06:07Z"},
    "a field too many": {"comment": "x"},
}


@pytest.mark.parametrize("changes", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_badly_formed_envelope_is_refused_even_when_signed(changes: dict[str, object]) -> None:
    assert reason_of(wire_of(signed_fields(**changes))) == "bad_form"


NOT_WIRE: dict[str, object] = {
    "nothing": None,
    "bytes": b"{}",
    "an object": {"envelope": {}, "signature": ""},
    "an empty text": "",
    "no JSON": "{",
    "an array": "[]",
    "a number": "1",
    "NaN": '{"envelope":NaN,"signature":"' + "0" * 64 + '"}',
    "a lone surrogate": '{"envelope":"\\ud800","signature":"' + "0" * 64 + '"}',
    "a surrogate in the text": "\ud800",
    "no signature": json.dumps({"envelope": signed_fields()}),
    "a key too many": json.dumps({"envelope": signed_fields(), "signature": "0" * 64, "alg": "none"}),
    "an upper-case signature": sign(ENVELOPE, KEYS)[:-66] + sign(ENVELOPE, KEYS)[-66:].upper(),
    "an empty signature": json.dumps({"envelope": signed_fields(), "signature": ""}),
    "a signature of another type": json.dumps({"envelope": signed_fields(), "signature": 1}),
    "the envelope twice": sign(ENVELOPE, KEYS).replace('{"envelope"', '{"envelope":{},"envelope"', 1),
    "a text beyond the cap": sign(ENVELOPE, KEYS) + " " * 16384,
    "deep nesting": "[" * 5000 + "]" * 5000,
}


@pytest.mark.parametrize("wire", NOT_WIRE.values(), ids=NOT_WIRE.keys())
def test_what_is_no_wire_text_is_malformed(wire: object) -> None:
    assert reason_of(wire) == "bad_form"


def test_the_second_key_verifies_but_does_not_sign() -> None:
    rotated = MergeKeys((("k2", OTHER_SECRET), ("k1", SECRET)))
    assert authorize(sign(ENVELOPE, rotated), REQUEST, KEYS, NOW).key_id == "k2"
    assert json.loads(sign(ENVELOPE, KEYS))["envelope"]["key_id"] == "k1"


def test_a_key_that_was_taken_out_is_unknown() -> None:
    assert reason_of(sign(ENVELOPE, KEYS), keys=MergeKeys((("k2", OTHER_SECRET),))) == "unknown_key"


def test_another_secret_under_the_same_id_does_not_verify() -> None:
    assert reason_of(sign(ENVELOPE, KEYS), keys=MergeKeys((("k1", OTHER_SECRET),))) == "bad_signature"


CLOCK = {
    "60 s ahead": (-60, 120, None),
    "61 s ahead": (-61, 120, "issued_in_future"),
    "60 s past expiry": (180, 120, None),
    "61 s past expiry": (181, 120, "expired"),
    "a lifetime of 15 minutes": (0, 900, None),
    "a lifetime of a second more": (0, 901, "lifetime_too_long"),
    "ahead and too long: the first rule speaks": (-61, 901, "issued_in_future"),
    "expired and too long: the first rule speaks": (1000, 901, "expired"),
}


@pytest.mark.parametrize(("since_issue_s", "lifetime_s", "reason"), CLOCK.values(), ids=CLOCK.keys())
def test_the_clock_decides_within_its_tolerance(
    since_issue_s: int, lifetime_s: int, reason: str | None
) -> None:
    expires = NOW + timedelta(seconds=lifetime_s)
    wire = sign(replace(ENVELOPE, expires_at=expires.isoformat().replace("+00:00", "Z")), KEYS)
    now = NOW + timedelta(seconds=since_issue_s)
    if reason is None:
        assert authorize(wire, REQUEST, KEYS, now).nonce == ENVELOPE.nonce
    else:
        assert reason_of(wire, now) == reason


def test_the_rules_speak_in_the_order_of_the_chapter() -> None:
    stale = NOW + timedelta(hours=1)
    other = replace(REQUEST, project_id="other")
    long = signed_fields(expires_at="2026-03-04T05:30:00Z")
    assert reason_of(wire_of({**long, "key_id": "k9", "nonce": "x"}), stale, request=other) == "bad_form"
    assert reason_of(wire_of({**long, "key_id": "k9"}, "w" * 32), stale, request=other) == "unknown_key"
    assert reason_of(wire_of(long, "w" * 32), stale, request=other) == "bad_signature"
    assert reason_of(wire_of(long), stale, request=other) == "field_mismatch"
    assert reason_of(wire_of(long), stale) == "expired"
    assert reason_of(wire_of(long)) == "lifetime_too_long"


@given(
    st.text()
    | st.recursive(st.none() | st.text(), lambda inner: st.dictionaries(st.text(), inner)).map(json.dumps)
)
def test_no_text_is_answered_with_anything_but_a_refusal(wire: str) -> None:
    assert reason_of(wire) == "bad_form"


@given(st.dictionaries(st.sampled_from(FIELDS), st.text(max_size=80), min_size=1))
def test_no_signed_change_of_fields_is_allowed_unless_it_is_the_same(changes: dict[str, str]) -> None:
    signed = signed_fields(**changes)
    try:
        allowed = authorize(wire_of(signed), REQUEST, KEYS, NOW)
    except NotAllowed:
        return
    assert isinstance(allowed, Envelope)
    assert all(asdict(allowed)[name] == value for name, value in asdict(REQUEST).items())


@given(st.integers(0, 10_000), st.integers(0, 127))
def test_no_byte_of_the_wire_text_can_be_changed(place: int, byte: int) -> None:
    wire = sign(ENVELOPE, KEYS)
    place %= len(wire)
    changed = wire[:place] + chr(byte) + wire[place + 1 :]
    if changed != wire:
        assert reason_of(changed) in {"bad_form", "unknown_key", "bad_signature"}


def test_a_key_list_is_read_in_order_and_a_secret_may_hold_an_equals_sign() -> None:
    keys, warnings = parse_merge_keys(f"k1={SECRET}=, k2={OTHER_SECRET}", None, None)
    assert keys == MergeKeys((("k1", SECRET + "="), ("k2", OTHER_SECRET)))
    assert warnings == ()


def test_a_single_secret_has_an_empty_key_id() -> None:
    keys, warnings = parse_merge_keys(None, SECRET, OTHER_SECRET)
    assert keys == MergeKeys((("", SECRET),))
    assert warnings == ()
    assert authorize(sign(ENVELOPE, keys), REQUEST, keys, NOW).key_id == ""


def test_the_fallback_counts_only_when_neither_is_set_and_warns() -> None:
    keys, warnings = parse_merge_keys("", "", SECRET)
    assert keys == MergeKeys((("", SECRET),))
    assert any("deprecated" in warning for warning in warnings)


def test_a_list_beside_a_single_secret_wins_and_warns() -> None:
    keys, warnings = parse_merge_keys(f"k1={SECRET}", OTHER_SECRET, None)
    assert keys == MergeKeys((("k1", SECRET),))
    assert len(warnings) == 1


def test_no_key_means_no_protected_merges_and_says_so() -> None:
    keys, warnings = parse_merge_keys(None, None, None)
    assert keys is None
    assert "unavailable" in warnings[0]


BAD_KEYS = {
    "a short secret": "k1=" + "x" * 31,
    "a second short secret": f"k1={SECRET},k2=short-and-secret",
    "no id": f"={SECRET}",
    "no equals sign": SECRET,
    "a trailing comma": f"k1={SECRET},",
    "the same id twice": f"k1={SECRET},k1={OTHER_SECRET}",
}


@pytest.mark.parametrize("keys", BAD_KEYS.values(), ids=BAD_KEYS.keys())
def test_a_bad_key_list_is_refused_without_showing_a_secret(keys: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_merge_keys(keys, None, None)
    assert caught.value.code == "bad_merge_keys"
    for secret in (SECRET, OTHER_SECRET, "x" * 31, "short-and-secret"):
        assert secret not in str(caught.value.to_problem())


def test_merge_keys_never_show_a_secret() -> None:
    assert repr(KEYS) == "MergeKeys('k1', 'k2')"


ORIGINALS = {
    "version": "memory-git-merge/v2",
    "project_id": "atlas",
    "ref_name": "refs/shared/main",
    "expected_head": "018f0000-0000-7000-8000-000000000001",
    "new_head": "018f0000-0000-7000-8000-000000000002",
    "proposal_id": "018f0000-0000-7000-8000-000000000003",
    "proposal_digest": "a" * 64,
    "reviewer_principal": "rev <é>\u2028",
    "merger_principal": "mer",
    "strategy": "fast_forward",
    "issued_at": "2026-02-03T04:05:06Z",
    "expires_at": "2026-02-03T04:07:06Z",
    "nonce": "0123456789abcdef0123456789abcdef",
    "key_id": "k1",
}
SIGNED_BY_THE_ORIGINAL = "a51fea2541a0bedc57479fdfe030ae44cde14579bb3cb5817519b9ae848a0cb8"
"""What the original's program gave for these fields under the key below (docs/COMPATIBILITY.md)."""
ORIGINALS_KEYS = MergeKeys((("k1", "a-merge-key-of-more-than-32-characters"),))
ORIGINALS_REQUEST = MergeRequest(**{name: ORIGINALS[name] for name in asdict(REQUEST)})
ORIGINALS_TIME = datetime(2026, 2, 3, 4, 5, 30, tzinfo=UTC)


@pytest.mark.parametrize("turned", [False, True], ids=["in its order", "in another order"])
def test_what_the_originals_charon_signed_is_allowed_in_whatever_order_it_comes(turned: bool) -> None:
    fields = dict(reversed(ORIGINALS.items())) if turned else ORIGINALS
    wire = json.dumps({"envelope": fields, "signature": SIGNED_BY_THE_ORIGINAL})
    found = authorize(wire, ORIGINALS_REQUEST, ORIGINALS_KEYS, ORIGINALS_TIME)
    assert asdict(found) == ORIGINALS
    assert signature_holds(wire, ORIGINALS_KEYS)


@pytest.mark.parametrize("name", [name for name in ORIGINALS if name not in ("version", "key_id")])
def test_a_changed_field_breaks_the_originals_signature_too(name: str) -> None:
    value = ORIGINALS[name]
    changed = {**ORIGINALS, name: value[:-2] + ("1Z" if value.endswith("Z") else "bb")}
    if name == "strategy":
        changed[name] = "cherry_pick"
    wire = json.dumps({"envelope": changed, "signature": SIGNED_BY_THE_ORIGINAL})
    assert reason_of(wire, ORIGINALS_TIME, ORIGINALS_KEYS, ORIGINALS_REQUEST) == "bad_signature"
