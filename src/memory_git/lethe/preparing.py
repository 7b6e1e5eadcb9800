"""What an author is given to sign before a changeset is made, and what comes back with the signature (3-model, FORMAT 6.8).

1. A preparation is `{view, authored_digest, salts, memory_ids, expires_at, seal}`: the authored view of a create request with its parents,
   the salts of its texts, and the ids of the memories that the request left to the store. Nothing is stored for it.
2. The seal is an HMAC with a salt of the project that is never served: ids and salts that this store did not hand out are refused.
   The view names the idempotency key, so that one preparation makes one changeset.
3. The create request brings it back as `authored`. It must say what the request says, word for word, and the signature must hold.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping
from datetime import timedelta
from hashlib import sha256
from itertools import chain
from typing import Any

from memory_git.domain.author_signature import holds
from memory_git.domain.canonical import canonical_bytes, plain_bytes, sha256_hex
from memory_git.domain.changeset import CreateRequest, Salts, authored_view, invalid_changeset
from memory_git.domain.errors import Invalid
from memory_git.domain.ids import is_uuid
from memory_git.domain.times import format_time, parse_time
from memory_git.lethe.session import View
from memory_git.lethe.sources import Sources
from memory_git.lethe.transaction import Transaction

LIFETIME = timedelta(minutes=15)
_SEALED = ("view", "authored_digest", "salts", "memory_ids", "expires_at")
_SALTS = ("message", "evidence", "verification", "ops")


def prepare(view: View, request: CreateRequest, sources: Sources) -> dict[str, Any]:
    """Gives the preparation of a create request; what the state says to it is asked when it is made."""
    if request.faults:
        raise invalid_changeset(request.faults)
    parents = [view.changeset(name) for name in request.parent_names()]
    if not parents:
        raise Invalid("parents_needed", "name the parent changeset(s), or the expected head")
    message, evidence, verification, *of_ops = sources.new_salts(3 + len(request.ops))
    salts = Salts(message, evidence, verification, tuple(of_ops))
    named = request.with_parents([parent.changeset_id for parent in parents])
    authored = authored_view(named, [parent.integrity_digest for parent in parents], salts)
    prepared = {
        "view": authored,
        "authored_digest": sha256_hex(plain_bytes(authored)),
        "salts": {
            "message": message,
            "evidence": evidence,
            "verification": verification,
            "ops": list(of_ops),
        },
        "memory_ids": list(request.drawn_ids),
        "expires_at": format_time(sources.now() + LIFETIME),
    }
    return prepared | {"seal": _seal(view, prepared)}


def ids_for(raw: Mapping[str, Any], fresh_ids: Iterator[str]) -> Iterator[str]:
    """Gives the ids for memories that a request leaves to the store: those of its preparation first."""
    authored = raw.get("authored")
    prepared = authored.get("memory_ids") if isinstance(authored, dict) else None
    if not isinstance(prepared, list) or not all(is_uuid(name) for name in prepared):
        return fresh_ids
    return chain(prepared, fresh_ids)


def salts_of(transaction: Transaction, request: CreateRequest) -> Salts | None:
    """Gives the salts that a request was prepared with, or None for one that was not; refuses what this store did not hand out."""
    prepared = request.authored
    if prepared is None:
        return None
    if prepared.keys() != {*_SEALED, "seal"} or not isinstance(prepared["seal"], str):
        raise _bad("shape", "authored is what /changesets/prepare answered, whole")
    sealed = {name: prepared[name] for name in _SEALED}
    if not hmac.compare_digest(prepared["seal"].encode(), _seal(transaction, sealed).encode()):
        raise _bad("seal", "this store did not hand out these ids and salts")
    expires = parse_time(prepared["expires_at"])
    if expires is None or expires <= transaction.sources.now():
        raise _bad("expired", "the preparation is out of date: prepare again")
    salts = prepared["salts"]
    if len(salts["ops"]) != len(request.ops):
        raise _bad("request", "the request has other ops than the one that was prepared")
    return Salts(salts["message"], salts["evidence"], salts["verification"], tuple(salts["ops"]))


def signature_of(request: CreateRequest, authored: bytes, authored_digest: str) -> str | None:
    """Gives the author's signature as it is stored, or None; refuses one that does not hold, or over another view than the request's."""
    if request.authored is None or request.author_signature is None:
        return None
    if canonical_bytes(request.authored["view"]) != authored:
        raise _bad("request", "the request says something else than the one that was prepared")
    if not holds(request.author_signature, authored_digest):
        raise Invalid(
            "bad_author_signature",
            "the signature is not one of the authored digest under that key",
            authored_digest=authored_digest,
        )
    return signature_text(request.author_signature)


def signature_text(signature: Mapping[str, str]) -> str:
    """Gives the canonical JSON of a signature."""
    return plain_bytes(dict(signature)).decode()


def _seal(view: View, prepared: Mapping[str, Any]) -> str:
    key = bytes.fromhex(view.project.cursor_salt)
    content = canonical_bytes([prepared[name] for name in _SEALED])
    return hmac.new(key, b"memory_git/prepared/v1\0" + content, sha256).hexdigest()


def _bad(reason: str, message: str) -> Invalid:
    return Invalid("bad_preparation", message, reason=reason)
