"""The semantic operations: their types, their closed payload keys, and what each key may hold (3-model, operations).

The tables are the rules: `PAYLOAD_KEYS` says which key stands on which op, `KEY_RULES` what a key's value must be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memory_git.domain.canonical import canonical_bytes, plain_bytes

KIB = 1024
MAX_PAYLOAD_BYTES = 64 * KIB
MAX_CONTENT_BYTES = 16 * KIB
MAX_NOTE_BYTES = 4 * KIB
MAX_STRING_BYTES = 1 * KIB
MAX_EXTRA_BYTES = 4 * KIB
MAX_TAGS = 64
MAX_TAG_BYTES = 128
MAX_SOURCES = 64
MAX_OPS = 10_000
MAX_CHANGESET_BYTES = 8 * KIB * KIB

KINDS = ("observation", "fact", "decision", "task", "flag", "record")
TRUSTS = ("model_inference", "inference", "verified", "human", "user_approved")
"""From the least to the most."""
INFERENCES = frozenset({"inference", "model_inference"})
ASSIGNABLE_STATUSES = ("active", "deprecated", "disputed", "retracted")

PROVENANCE_KEYS = frozenset(
    {
        "reviewer",
        "proposal_id",
        "source_changeset_id",
        "rejected_from",
        "cherrypicked_from",
        "left_branch",
        "right_branch",
    }
)
COMMON_KEYS = PROVENANCE_KEYS | {
    "summary",
    "op_note",
    "project_id",
    "topic_id",
    "actor_id",
    "from_visibility",
    "to_visibility",
}
CONTENT_KEYS = frozenset(
    {
        "content",
        "kind",
        "event_type",
        "scope",
        "visibility",
        "tags",
        "confidence",
        "fact_key",
        "subject",
        "valid_from",
        "valid_to",
        "review_after",
        "protected",
        "approval",
        "title",
        "type",
        "pinned",
        "sources",
        "extra",
    }
)
RECORD_KEYS = CONTENT_KEYS | {"summary"}
"""What a correction may assign or clear."""
CLEARABLE_KEYS = RECORD_KEYS - {"content", "kind", "visibility"}

PAYLOAD_KEYS: dict[str, frozenset[str]] = {
    "add_memory": COMMON_KEYS
    | CONTENT_KEYS
    | {"memory_id", "event_id", "source_trust", "owner_principal", "revive"},
    "correct_memory": COMMON_KEYS
    | CONTENT_KEYS
    | {"target_trust", "source_trust", "clear", "revive", "owner_principal"},
    "supersede_memory": COMMON_KEYS
    | CONTENT_KEYS
    | {"target_trust", "source_trust", "clear", "revive", "memory_id", "event_id", "owner_principal"},
    "mark_duplicate": COMMON_KEYS | {"duplicate_id", "duplicate_of", "source_trust"},
    "add_relationship": COMMON_KEYS | {"kind", "from_memory_id", "to_memory_id"},
    "remove_relationship": COMMON_KEYS | {"kind", "from_memory_id", "to_memory_id"},
    "propose_deprecation": COMMON_KEYS | {"reason", "source_trust"},
    "attach_evidence": COMMON_KEYS | {"kind", "source", "note", "status"},
    "attach_verification": COMMON_KEYS | {"kind", "source", "note", "status"},
    "set_status": COMMON_KEYS | {"status", "reason", "revive", "source_trust"},
    "detach": COMMON_KEYS | {"attachment_digest", "reason"},
}
OP_TYPES = tuple(PAYLOAD_KEYS)
ATTACH_OPS = frozenset({"attach_evidence", "attach_verification"})
ATTACHMENT_KEYS = ("kind", "source", "note", "status", "summary")
"""What of an attach op's payload goes into the attachment."""
RELATIONSHIP_OPS = frozenset({"add_relationship", "remove_relationship"})
ADDING_OPS = frozenset({"add_memory", "correct_memory", "supersede_memory"})
"""The ops that can bring a record into being."""

TARGET_CHANNELS: dict[str, str] = {
    "mark_duplicate": "duplicate_id",
    "add_relationship": "from_memory_id",
    "remove_relationship": "from_memory_id",
}
RESULT_CHANNELS: dict[str, tuple[str, ...]] = {
    "add_memory": ("memory_id", "event_id"),
    "supersede_memory": ("memory_id", "event_id"),
    "mark_duplicate": ("duplicate_of",),
    "add_relationship": ("to_memory_id",),
    "remove_relationship": ("to_memory_id",),
}

KEY_RULES: dict[str, str] = {
    "content": "content",
    "summary": "note",
    "reason": "note",
    "note": "note",
    "tags": "tags",
    "sources": "sources",
    "extra": "extra",
    "clear": "clear",
    "confidence": "confidence",
    "visibility": "visibility",
    "from_visibility": "visibility",
    "to_visibility": "visibility",
    "valid_from": "time",
    "valid_to": "time",
    "review_after": "time",
    "protected": "flag",
    "pinned": "flag",
    "revive": "flag",
    "approval": "approval",
    "source_trust": "trust",
    "target_trust": "trust",
    "memory_id": "memory_id",
    "event_id": "memory_id",
    "duplicate_id": "memory_id",
    "duplicate_of": "memory_id",
    "from_memory_id": "memory_id",
    "to_memory_id": "memory_id",
    "attachment_digest": "digest",
}
"""Which rule of `validate` a key's value must meet; a key that is not here is a string of up to 1 KiB."""


@dataclass(frozen=True, slots=True)
class Op:
    """One semantic change, normalized: the identities stand in the op-level fields whatever channel they came by."""

    ordinal: int
    op_type: str
    target_event_id: str | None
    resulting_event_id: str | None
    payload: Mapping[str, Any]
    known_bytes: bytes | None = field(default=None, compare=False, repr=False)
    """The payload's canonical bytes, where they were written or read before."""

    def payload_bytes(self) -> bytes:
        """Gives the payload's canonical bytes: what the store keeps."""
        return canonical_bytes(dict(self.payload)) if self.known_bytes is None else self.known_bytes

    def view_bytes(self) -> bytes:
        """Gives the canonical bytes of `digest_view`."""
        return b'{"op_type":"%s","payload":%s,"resulting_event_id":%s,"target_event_id":%s}' % (
            self.op_type.encode(),
            self.payload_bytes(),
            plain_bytes(self.resulting_event_id),
            plain_bytes(self.target_event_id),
        )

    def digest_view(self) -> dict[str, Any]:
        """Gives what an op's digest covers, besides its salt (FORMAT §5)."""
        return {
            "op_type": self.op_type,
            "payload": self.payload,
            "resulting_event_id": self.resulting_event_id,
            "target_event_id": self.target_event_id,
        }

    def to_json(self) -> dict[str, Any]:
        """Gives the wire form."""
        return {
            "ordinal": self.ordinal,
            "op_type": self.op_type,
            "target_event_id": self.target_event_id,
            "resulting_event_id": self.resulting_event_id,
            "payload": dict(self.payload),
        }

    def memory_ids(self) -> tuple[str, ...]:
        """Gives the memories that the op names, target first."""
        target, result = self.target_event_id, self.resulting_event_id
        if target is None or result is None or target == result:
            name = result if target is None else target
            return () if name is None else (name,)
        return (target, result)

    def with_payload(self, **changes: Any) -> Op:
        """Gives the op with some payload keys set."""
        return replace(self, payload={**self.payload, **changes}, known_bytes=None)


def op_from_json(stored: Mapping[str, Any]) -> Op:
    """Reads an op that was validated before; for what comes from outside there is `validate.check_ops`."""
    return Op(
        stored["ordinal"],
        stored["op_type"],
        stored.get("target_event_id"),
        stored.get("resulting_event_id"),
        stored["payload"],
    )


def trust_of(op: Op) -> str:
    """Gives what an op rests on; one that says nothing rests on an inference (3-model, authority is not a payload)."""
    stated: str = op.payload.get("source_trust", "inference")
    return stated


def is_inference(op: Op) -> bool:
    """Decides whether an op rests on an inference: it says so, or says nothing of its trust."""
    return trust_of(op) in INFERENCES


def least_trust(*trusts: str | None) -> str | None:
    """Gives the least of the trusts that are known; None when none is.

    >>> least_trust("human", None, "inference")
    'inference'
    """
    known = [trust for trust in trusts if trust]
    return min(known, key=TRUSTS.index) if known else None
