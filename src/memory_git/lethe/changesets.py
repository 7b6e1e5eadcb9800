"""Stored changesets in the wire form, verified as they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from memory_git.domain.author_signature import faults_of, holds
from memory_git.domain.canonical import decode, plain_bytes, sha256_hex
from memory_git.domain.changeset import (
    OPTIONAL_NAMES,
    SCHEMA_VERSION,
    CreateRequest,
    integrity_digest,
    op_digest,
    salted_digest,
)
from memory_git.domain.conflict import Authored
from memory_git.domain.errors import Corrupt, Invalid
from memory_git.domain.ops import Op, op_from_json
from memory_git.domain.policy import Audience
from memory_git.lethe.session import View
from memory_git.storage import lethe_history
from memory_git.storage.lethe_history import ChangesetRow, OpRow

MOST_KEPT_OPS = 1_000
"""Longer changesets are read anew each time: there are few, and they would fill the cache."""


def shown_changeset(view: View, row: ChangesetRow, audience: Audience | None = None) -> dict[str, Any]:
    """Gives a changeset in the wire form; ops that the audience may not see are `withheld`, their digests shown.

    Message, evidence and verification speak of all its ops: who may not see each op may not see them, but their digests, which
    `authored_digest` is recomputed from.
    """
    authored = check_changeset(row)
    ops = stored_ops(view, row, audience)
    return _shown(row, authored, ops, told=not any(op.get("withheld") for op in ops))


def _shown(
    row: ChangesetRow, authored: Mapping[str, Any], ops: list[dict[str, Any]], *, told: bool
) -> dict[str, Any]:
    return {
        "changeset_id": row.changeset_id,
        "schema_version": SCHEMA_VERSION,
        "project_id": row.project_id,
        "ref_name": row.ref_name,
        "parent_ids": list(row.parents),
        "author_principal": row.author_principal,
        **{name: authored[name] for name in OPTIONAL_NAMES},
        "message": row.message if told else None,
        "message_salt": row.message_salt if told else None,
        "message_digest": authored["message_digest"],
        "created_at": row.created_at,
        "idempotency_key": row.idempotency_key,
        "ops": ops,
        "evidence": orjson.loads(row.evidence) if row.evidence and told else [],
        "evidence_salt": row.evidence_salt if told else None,
        "evidence_digests": authored["evidence_digests"],
        "verification": orjson.loads(row.verification) if row.verification and told else [],
        "verification_salt": row.verification_salt if told else None,
        "verification_digests": authored["verification_digests"],
        "state_root": row.state_root,
        "authored_digest": row.authored_digest,
        "integrity_digest": row.integrity_digest,
        "digest_version": row.digest_version,
        "author_signature": orjson.loads(row.author_signature) if row.author_signature else None,
    }


def created_changeset(row: ChangesetRow, request: CreateRequest, ops: Sequence[OpRow]) -> dict[str, Any]:
    """Gives a changeset that was just stored in the wire form, from what was stored."""
    shown = [
        {**op.to_json(), "op_digest": stored.op_digest, "op_salt": stored.salt}
        for op, stored in zip(request.ops, ops, strict=True)
    ]
    return _shown(row, orjson.loads(row.authored_view), shown, told=True)


def check_changeset(row: ChangesetRow) -> dict[str, Any]:
    """Verifies a changeset's own digests and gives its authored view; raises Corrupt naming what does not agree.

    A signature that does not hold is refused at the door: one that is stored was altered since.
    """
    if not signature_holds(row):
        raise _corrupt(row, "the author's signature does not hold")
    if sha256_hex(row.authored_view) != row.authored_digest:
        raise _corrupt(row, "the authored view does not agree with its digest")
    view: dict[str, Any] = decode(row.authored_view)
    expected = integrity_digest(row.authored_digest, row.changeset_id, row.created_at, row.state_root)
    if expected != row.integrity_digest:
        raise _corrupt(row, "the integrity digest does not agree")
    same = (
        view["project_id"] == row.project_id
        and view["ref_name"] == row.ref_name
        and view["author_principal"] == row.author_principal
        and view["idempotency_key"] == row.idempotency_key
        and [parent["changeset_id"] for parent in view["parents"]] == list(row.parents)
    )
    if not same:
        raise _corrupt(row, "a column does not agree with the authored view")
    if (
        row.message is not None
        and salted_digest(row.message_salt or "", row.message) != view["message_digest"]
    ):
        raise _corrupt(row, "the message does not agree with its digest")
    for name, stored, salt in (
        ("evidence", row.evidence, row.evidence_salt),
        ("verification", row.verification, row.verification_salt),
    ):
        if stored is not None:
            found = [salted_digest(salt or "", item) for item in decode(stored)]
            if found != view[f"{name}_digests"]:
                raise _corrupt(row, f"the {name} does not agree with its digests")
    return view


def signature_holds(row: ChangesetRow) -> bool:
    """Decides whether the author's signature holds; a changeset without one was not signed."""
    if row.author_signature is None:
        return True
    try:
        signature = decode(row.author_signature)
    except Invalid:
        return False
    return (
        not faults_of(signature)
        and plain_bytes(signature).decode() == row.author_signature
        and holds(signature, row.authored_digest)
    )


def authored_name(row: ChangesetRow, name: str) -> str | None:
    """Gives one of the optional names of a changeset (actor, topic, session …), or None."""
    found: str | None = decode(row.authored_view).get(name)
    return found


def authored(view: View, changeset_id: str) -> Authored:
    """Gives what its author wrote of a changeset, as far as it is not erased; read and verified once."""
    place = (view.epoch, view.project_id, changeset_id)
    kept = view.caches.authored.get(place)
    if kept is not None:
        return kept
    row = view.changeset(changeset_id)
    ops = tuple(op_from_json(op) for op in stored_ops(view, row) if "payload" in op)
    actor, topic = authored_name(row, "actor_id"), authored_name(row, "topic_id")
    found = Authored(changeset_id, row.project_id, row.ref_name, actor, topic, ops)
    if len(ops) <= MOST_KEPT_OPS:
        view.caches.authored.put(place, found)
    return found


def stored_ops(view: View, row: ChangesetRow, audience: Audience | None = None) -> list[dict[str, Any]]:
    """Gives a changeset's ops in the wire form, each verified against the authored view."""
    rows = lethe_history.ops_of(view.connection, view.project_id, row.id)
    if [op.op_digest for op in rows] != decode(row.authored_view)["op_digests"]:
        raise _corrupt(row, "the ops do not agree with the authored view")
    return [_shown_op(row, op, audience) for op in rows]


def _shown_op(row: ChangesetRow, op: OpRow, audience: Audience | None) -> dict[str, Any]:
    if op.payload is None:
        return {"ordinal": op.ordinal, "op_digest": op.op_digest, "redacted": True}
    if audience is not None and not audience.admits(op.visibility, op.owner_principal or None):
        return {"ordinal": op.ordinal, "op_digest": op.op_digest, "withheld": True}
    payload = decode(op.payload)
    read = Op(op.ordinal, op.op_type, op.target_event_id, op.resulting_event_id, payload, op.payload)
    if op_digest(op.salt or "", read) != op.op_digest:
        raise _corrupt(row, f"op {op.ordinal} does not agree with its digest")
    return {**read.to_json(), "op_digest": op.op_digest, "op_salt": op.salt}


def _corrupt(row: ChangesetRow, why: str) -> Corrupt:
    return Corrupt("changeset", row.changeset_id, why)
