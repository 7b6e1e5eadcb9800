"""The value of a memory at a state, and what hangs on it (3-model, record).

A record's JSON leaves out what is unset, so a field that is added later changes no digest of before. `memory_id`, `kind`, `content`,
`visibility` and `status` always stand. Author and time belong to the changeset, the version to the leaf entry: they are not in it.

Records are msgspec structs, since millions of them are made, written and read: msgspec writes what RFC 8785 does as long as no
number and no free object is inside (`Record.to_bytes`); a property test holds the two against each other.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import msgspec

from memory_git.domain.canonical import canonical_bytes, digest
from memory_git.domain.errors import Invalid

APPROVED_FIELDS = frozenset(
    {
        "content",
        "title",
        "summary",
        "kind",
        "type",
        "event_type",
        "scope",
        "subject",
        "fact_key",
        "valid_from",
        "valid_to",
        "confidence",
    }
)
"""What a person's approval covers: when one of these changes, the approval is gone."""
ACTIVE_STATUSES = frozenset({"active", "deprecation_proposed", "deprecated", "disputed"})
RETIRED_STATUSES = frozenset({"corrected", "superseded", "duplicate", "retracted"})
STATUSES = ACTIVE_STATUSES | RETIRED_STATUSES


class Lineage(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """How a memory stands to others: memory ids; the lists are sorted sets."""

    corrected_from: tuple[str, ...] = ()
    corrected_by: str | None = None
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    duplicate_of: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Gives the set fields only; empty when there is no lineage."""
        return cast("dict[str, Any]", msgspec.json.decode(msgspec.json.encode(self)))

    def relatives(self) -> frozenset[str]:
        """Gives the memory ids that this lineage names."""
        named = (
            *self.corrected_from,
            *self.supersedes,
            self.corrected_by,
            self.superseded_by,
            self.duplicate_of,
        )
        return frozenset(name for name in named if name)

    def successor(self) -> str | None:
        """Gives the memory that took this one's place, if any."""
        return self.corrected_by or self.superseded_by or self.duplicate_of

    def heirs(self) -> tuple[str, ...]:
        """Gives the memories that carry this one's value on; a merge may leave two. What it duplicates is none."""
        return tuple(name for name in (self.corrected_by, self.superseded_by) if name)

    def without_successor(self) -> Lineage:
        """Gives where the memory came from, without what took its place."""
        return Lineage(corrected_from=self.corrected_from, supersedes=self.supersedes)


NO_LINEAGE = Lineage()

Attachment = Mapping[str, str]
"""{kind?, source?, note?, status?, summary?}: a piece of evidence or a verification, without provenance."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """The value of one memory at one state. Tags and sources are sorted sets; times are in the wire form."""

    memory_id: str
    content: str
    # A default that is made is never left out of the JSON.
    kind: str = msgspec.field(default_factory=lambda: "observation")
    visibility: str = msgspec.field(default_factory=lambda: "internal")
    status: str = msgspec.field(default_factory=lambda: "active")
    event_type: str | None = None
    type: str | None = None
    title: str | None = None
    summary: str | None = None
    scope: str | None = None
    subject: str | None = None
    fact_key: str | None = None
    tags: tuple[str, ...] = ()
    owner_principal: str | None = None
    confidence: float | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    review_after: str | None = None
    protected: bool = False
    approval: str | None = None
    source_trust: str | None = None
    status_reason: str | None = None
    pinned: bool = False
    sources: tuple[str, ...] = ()
    extra: Mapping[str, Any] | None = None
    lineage: Lineage = NO_LINEAGE
    evidence: tuple[Attachment, ...] = ()
    verification: tuple[Attachment, ...] = ()

    @property
    def is_active(self) -> bool:
        """Says whether the record is part of active memory."""
        return self.status in ACTIVE_STATUSES

    @property
    def is_retracted(self) -> bool:
        """Says whether the record is a tombstone of its value (8-lifecycle)."""
        return self.status == "retracted"

    @property
    def is_user_approved(self) -> bool:
        """Says whether a person stands behind the record."""
        return self.approval == "user_approved" or self.source_trust == "user_approved"

    def to_json(self) -> dict[str, Any]:
        """Gives the closed JSON form, without what is unset."""
        return cast("dict[str, Any]", msgspec.json.decode(msgspec.json.encode(self._normal())))

    def to_bytes(self) -> bytes:
        """Gives the canonical bytes: what the store keeps and the digest covers."""
        if self.confidence is not None or self.extra is not None:
            return canonical_bytes(self.to_json())
        try:
            return _ENCODER.encode(self._normal())
        except UnicodeEncodeError as error:
            raise Invalid("not_i_json", "the value is outside I-JSON (RFC 7493)") from error

    def _normal(self) -> Record:
        """Gives the record with no lineage rather than an empty one."""
        is_empty = self.lineage is not NO_LINEAGE and self.lineage == NO_LINEAGE
        return msgspec.structs.replace(self, lineage=NO_LINEAGE) if is_empty else self


FIELD_NAMES = Record.__struct_fields__
_ENCODER = msgspec.json.Encoder(order="sorted")
_DECODER = msgspec.json.Decoder(Record)


def record_from_json(shown: Mapping[str, Any]) -> Record:
    """Reads a record's JSON form, as `Record.to_json` gives it."""
    return msgspec.convert(shown, Record)


def record_from_bytes(body: bytes) -> Record:
    """Reads a record from its canonical bytes, after they were verified against its digest."""
    return _DECODER.decode(body)


def record_digest(salt: str, record: Record) -> str:
    """Gives SHA-256 of canonical JSON `[salt, record]` (FORMAT §4); equal records of one memory have equal digests."""
    return record_bytes_digest(salt, record.to_bytes())


def record_bytes_digest(salt: str, body: bytes) -> str:
    """Gives the record digest from the stored canonical bytes, without serialising anew; the salt is hex text."""
    return record_bytes_sha256(salt, body).hex()


def record_bytes_sha256(salt: str, body: bytes) -> bytes:
    """Gives the record digest as 32 bytes: what a leaf entry holds."""
    return hashlib.sha256(b'["%s",%s]' % (salt.encode("ascii"), body)).digest()


def attachment_digest(salt: str, attachment: Attachment) -> str:
    """Gives SHA-256 of canonical JSON `[memory salt, attachment]` (FORMAT §4)."""
    return digest([salt, dict(attachment)])


def sorted_attachments(attachments: Iterable[Attachment]) -> tuple[Attachment, ...]:
    """Gives attachments as a sorted set, by their canonical bytes."""
    unique = {canonical_bytes(dict(item)): dict(item) for item in attachments}
    return tuple(unique[key] for key in sorted(unique))


def with_attachment(attachments: tuple[Attachment, ...], item: Attachment) -> tuple[Attachment, ...]:
    """Gives a sorted set of attachments with one more; looks at few of them, so that thousands may be added in turn."""
    at = _place(attachments, item)
    if at < len(attachments) and attachments[at] == item:
        return attachments
    return (*attachments[:at], dict(item), *attachments[at:])


def without_attachment(attachments: tuple[Attachment, ...], item: Attachment) -> tuple[Attachment, ...]:
    """Gives a sorted set of attachments without one of them."""
    at = _place(attachments, item)
    is_there = at < len(attachments) and attachments[at] == item
    return (*attachments[:at], *attachments[at + 1 :]) if is_there else attachments


def _place(attachments: tuple[Attachment, ...], item: Attachment) -> int:
    return bisect_left(
        attachments, canonical_bytes(dict(item)), key=lambda other: canonical_bytes(dict(other))
    )


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """A relationship between two memories."""

    from_memory_id: str
    kind: str
    to_memory_id: str

    def to_json(self) -> dict[str, str]:
        """Gives the wire form."""
        return {"from_memory_id": self.from_memory_id, "kind": self.kind, "to_memory_id": self.to_memory_id}


def edge_digest(edge: Edge) -> str:
    """Gives SHA-256 of canonical JSON `[from, kind, to]` (FORMAT §4)."""
    return digest([edge.from_memory_id, edge.kind, edge.to_memory_id])


@dataclass(frozen=True, slots=True)
class Conflicted:
    """A key on which two sides of a merge disagree. It has no record until ops of the merge changeset settle it.

    `fields` are those still open; `merged` holds the agreed fields, and the first side's value in the open ones.
    """

    memory_id: str
    base: Record | None
    left: Record
    right: Record
    fields: frozenset[str]
    merged: Record

    @property
    def is_user_approved(self) -> bool:
        """Says whether a person stands behind one of the sides."""
        return self.left.is_user_approved or self.right.is_user_approved

    @property
    def is_retracted(self) -> bool:
        """Says whether one of the sides retracted the memory."""
        return self.left.is_retracted or self.right.is_retracted

    def settle(self, assigned: frozenset[str], record: Record) -> Record | Conflicted:
        """Gives the record when no field is open any more, else what is left of the conflict."""
        left = self.fields - assigned
        return replace(self, fields=left, merged=record) if left else record
