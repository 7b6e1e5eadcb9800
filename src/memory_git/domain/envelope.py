"""The authorization of one protected merge, `memory-git-merge/v2` (5-lethe, protected merges).

What `authorize` asks, in this order; a failure is NotAllowed `invalid_authorization` with the reason here:

1. `bad_form`: the wire text is strict JSON of exactly {envelope, signature}; the envelope has exactly its
   fields, all strings; version, strategy, nonce, digest and times are well formed; expiry is after issue.
2. `unknown_key`: the key id is one of ours.
3. `bad_signature`: HMAC-SHA256 over the canonical envelope, or over its fields in the order of `Envelope`, as the original's
   Charon signs; both compared in constant time.
4. `field_mismatch`: each field that the request states too is equal; else the fact `field` names it.
5. `issued_in_future`: issued at most 60 s ahead of this clock.
6. `expired`: not expired for longer than 60 s.
7. `lifetime_too_long`: it lives at most 15 minutes.

That it is used once is the store's to see to: the nonce is burnt in the merge's own transaction.
"""

from __future__ import annotations

import hmac
import json
import re
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from memory_git.domain.canonical import canonical_bytes, decode, hmac_hex
from memory_git.domain.errors import Invalid, NotAllowed, Refused
from memory_git.domain.ids import is_digest
from memory_git.domain.times import format_time, parse_time

VERSION = "memory-git-merge/v2"
MIN_SECRET_CHARACTERS = 32
MAX_WIRE_CHARACTERS = 16 * 1024
CLOCK_TOLERANCE = timedelta(seconds=60)
MAX_LIFETIME = timedelta(minutes=15)
LIFETIME = timedelta(minutes=2)

Strategy = Literal["fast_forward", "merge_commit", "cherry_pick"]
Reason = Literal[
    "bad_form",
    "unknown_key",
    "bad_signature",
    "field_mismatch",
    "issued_in_future",
    "expired",
    "lifetime_too_long",
]

_NONCE = re.compile(r"[0-9a-f]{32}")
_STRATEGIES = frozenset(get_args(Strategy))


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """What a merge request states outside its envelope."""

    project_id: str
    ref_name: str
    expected_head: str
    new_head: str
    proposal_id: str
    reviewer_principal: str


@dataclass(frozen=True, slots=True)
class Envelope:
    """The signed object. Times are RFC 3339, nonce 32 and proposal_digest 64 lower-case hex digits."""

    version: str
    project_id: str
    ref_name: str
    expected_head: str
    new_head: str
    proposal_id: str
    proposal_digest: str
    reviewer_principal: str
    merger_principal: str
    strategy: Strategy
    issued_at: str
    expires_at: str
    nonce: str
    key_id: str


@dataclass(frozen=True, slots=True, repr=False)
class MergeKeys:
    """The secrets by key id, in order: the first signs, all verify. Never shows a secret."""

    secrets: tuple[tuple[str, str], ...]

    @property
    def signing_key_id(self) -> str:
        """Gives the id of the key that signs."""
        return self.secrets[0][0]

    def secret(self, key_id: str) -> bytes | None:
        """Gives the secret of a key id, or None when there is no such key."""
        for known, secret in self.secrets:
            if known == key_id:
                return secret.encode("utf-8")
        return None

    def __repr__(self) -> str:
        return f"MergeKeys({', '.join(repr(key_id) for key_id, _ in self.secrets)})"


_ENVELOPE_FIELDS = tuple(field.name for field in fields(Envelope))
_REQUEST_FIELDS = tuple(field.name for field in fields(MergeRequest))
_MAY_BE_EMPTY = frozenset({"key_id"})


def parse_merge_keys(
    keys: str | None, key: str | None, fallback: str | None
) -> tuple[MergeKeys | None, tuple[str, ...]]:
    """Gives the merge keys of the three settings (None: no protected merges), and warnings to log.

    `keys` is `id=secret,id2=secret2`; `key` one secret with an empty id, not read when `keys` is set;
    `fallback` likewise, and deprecated. Raises Invalid `bad_merge_keys`, whose message shows no secret.
    """
    if keys:
        warnings = ("CHARON_MERGE_HMAC_KEY is not used: CHARON_MERGE_HMAC_KEYS is set",) if key else ()
        return _checked(tuple(_parse_pair(pair) for pair in keys.split(","))), warnings
    if key:
        return _checked((("", key),)), ()
    if fallback:
        return _checked((("", fallback),)), ("CHARON_HMAC_KEY is deprecated: set CHARON_MERGE_HMAC_KEYS",)
    return None, ("no merge key is set: protected merges are unavailable",)


def issue(
    request: MergeRequest,
    *,
    proposal_digest: str,
    merger_principal: str,
    strategy: Strategy,
    now: datetime,
    nonce: str,
    lifetime: timedelta = LIFETIME,
) -> Envelope:
    """Gives the unsigned envelope for a request; `sign` writes the key id into it."""
    return Envelope(
        version=VERSION,
        **asdict(request),
        proposal_digest=proposal_digest,
        merger_principal=merger_principal,
        strategy=strategy,
        issued_at=format_time(now),
        expires_at=format_time(now + lifetime),
        nonce=nonce,
        key_id="",
    )


def sign(envelope: Envelope, keys: MergeKeys) -> str:
    """Gives the wire text of an envelope, signed with the first key, whose id it states."""
    signed = asdict(replace(envelope, key_id=keys.signing_key_id))
    signature = _signature(signed, keys.secrets[0][1].encode("utf-8"))
    return canonical_bytes({"envelope": signed, "signature": signature}).decode("utf-8")


def authorize(wire: object, request: MergeRequest, keys: MergeKeys, now: datetime) -> Envelope:
    """Gives the envelope of a wire text that allows the request at `now`, or raises NotAllowed."""
    signed, signature = _parse_wire(wire)
    envelope = Envelope(**signed)
    issued_at, expires_at = _parse_times(envelope)
    secret = keys.secret(envelope.key_id)
    if secret is None:
        raise _refusal("unknown_key", "the envelope's key id is not known")
    if not _is_signed(signed, secret, signature):
        raise _refusal("bad_signature", "the signature is not that of the envelope")
    for name in _REQUEST_FIELDS:
        if signed[name] != getattr(request, name):
            raise _refusal("field_mismatch", f"{name} differs from the request", field=name)
    _check_clock(issued_at, expires_at, now)
    return envelope


def signature_holds(wire: object, keys: MergeKeys) -> bool:
    """Decides whether a wire text is well formed and signed by one of the keys, whatever it allows and when."""
    try:
        signed, signature = _parse_wire(wire)
    except NotAllowed:
        return False
    secret = keys.secret(signed["key_id"])
    return secret is not None and _is_signed(signed, secret, signature)


def _check_clock(issued_at: datetime, expires_at: datetime, now: datetime) -> None:
    if issued_at - now > CLOCK_TOLERANCE:
        raise _refusal("issued_in_future", "issued more than 60 s ahead of this clock")
    if now - expires_at > CLOCK_TOLERANCE:
        raise _refusal("expired", "expired more than 60 s ago")
    if expires_at - issued_at > MAX_LIFETIME:
        raise _refusal("lifetime_too_long", "lives longer than 15 minutes")


def _parse_wire(wire: object) -> tuple[dict[str, Any], str]:
    """Gives the envelope's fields and the signature, both well formed."""
    if not isinstance(wire, str) or len(wire) > MAX_WIRE_CHARACTERS:
        raise _refusal("bad_form", f"the authorization is a string of up to {MAX_WIRE_CHARACTERS} characters")
    try:
        found = decode(wire)
    except Refused:
        raise _refusal("bad_form", "the authorization is not strict JSON") from None
    if not isinstance(found, dict) or found.keys() != {"envelope", "signature"}:
        raise _refusal("bad_form", "the authorization is an object of envelope and signature")
    signed, signature = found["envelope"], found["signature"]
    if not is_digest(signature):
        raise _refusal("bad_form", "signature is 64 lower-case hex digits")
    if not isinstance(signed, dict) or signed.keys() != set(_ENVELOPE_FIELDS):
        raise _refusal("bad_form", f"an envelope has exactly {', '.join(_ENVELOPE_FIELDS)}")
    _check_fields(signed)
    return signed, signature


def _check_fields(signed: dict[str, Any]) -> None:
    for name in _ENVELOPE_FIELDS:
        if not isinstance(signed[name], str) or not (signed[name] or name in _MAY_BE_EMPTY):
            raise _refusal("bad_form", f"{name} is a non-empty string", field=name)
    if signed["version"] != VERSION:
        raise _refusal("bad_form", f"version is {VERSION}", field="version")
    if signed["strategy"] not in _STRATEGIES:
        raise _refusal("bad_form", f"strategy is one of {', '.join(sorted(_STRATEGIES))}", field="strategy")
    if not _NONCE.fullmatch(signed["nonce"]):
        raise _refusal("bad_form", "nonce is 32 lower-case hex digits", field="nonce")
    if not is_digest(signed["proposal_digest"]):
        raise _refusal("bad_form", "proposal_digest is 64 lower-case hex digits", field="proposal_digest")


def _parse_times(envelope: Envelope) -> tuple[datetime, datetime]:
    issued_at, expires_at = parse_time(envelope.issued_at), parse_time(envelope.expires_at)
    if issued_at is None or expires_at is None:
        field = "issued_at" if issued_at is None else "expires_at"
        raise _refusal("bad_form", f"{field} is an RFC 3339 time", field=field)
    if expires_at <= issued_at:
        raise _refusal("bad_form", "expires_at is after issued_at", field="expires_at")
    return issued_at, expires_at


def _is_signed(signed: dict[str, Any], secret: bytes, signature: str) -> bool:
    """Decides whether a signature is of an envelope, in one of the two forms that are signed; both are always computed."""
    ours = hmac.compare_digest(_signature(signed, secret), signature)
    theirs = hmac.compare_digest(hmac_hex(secret, _in_order(signed)), signature)
    return ours or theirs


def _in_order(signed: dict[str, Any]) -> bytes:
    """Gives an envelope's bytes with its fields in the order of `Envelope`."""
    ordered = {name: signed[name] for name in _ENVELOPE_FIELDS}
    text = json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").encode("utf-8")


def _signature(signed: dict[str, Any], secret: bytes) -> str:
    return hmac_hex(secret, canonical_bytes(signed))


def _parse_pair(pair: str) -> tuple[str, str]:
    key_id, mark, secret = pair.strip().partition("=")
    if not mark or not key_id:
        raise Invalid("bad_merge_keys", "merge keys are written id=secret,id2=secret2")
    return key_id, secret


def _checked(secrets: tuple[tuple[str, str], ...]) -> MergeKeys:
    for key_id, secret in secrets:
        if len(secret) < MIN_SECRET_CHARACTERS:
            raise Invalid(
                "bad_merge_keys", f"merge key '{key_id}' has fewer than {MIN_SECRET_CHARACTERS} characters"
            )
    if len({key_id for key_id, _ in secrets}) != len(secrets):
        raise Invalid("bad_merge_keys", "a merge key id stands twice")
    return MergeKeys(secrets)


def _refusal(reason: Reason, message: str, **facts: str) -> NotAllowed:
    return NotAllowed("invalid_authorization", message, reason=reason, **facts)
