"""A conflict as a value: its type, its parties, and the id by which equivalent retries meet (4-history, conflicts)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memory_git.domain.canonical import canonical_bytes, digest
from memory_git.domain.change import Change
from memory_git.domain.claims import Claims
from memory_git.domain.diff import shorten
from memory_git.domain.ops import Op
from memory_git.domain.record import Record

BLOCKING, WARNING, INFO = "blocking", "warning", "info"
SYMMETRIC_TYPES = frozenset(
    {
        "concurrent_change",
        "incompatible_fact",
        "contradictory_decision",
        "protected_decision",
        "duplicate_content",
        "stale_base",
    }
)
CONFLICT_TYPES = SYMMETRIC_TYPES | {"trust_downgrade", "boundary_violation", "scope_flow"}
OUTCOMES = ("keep_left", "keep_right", "both", "edited")


@dataclass(frozen=True, slots=True)
class Authored:
    """What detection needs of one changeset of a delta."""

    changeset_id: str
    project_id: str
    ref_name: str
    actor_id: str | None
    topic_id: str | None
    ops: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class Party:
    """A record's part in a conflict; digest and changeset are of the version that stands at its head."""

    memory_id: str
    record_digest: str | None
    summary: str
    changeset_id: str | None

    def to_json(self) -> dict[str, Any]:
        """Gives the wire form."""
        return {
            "memory_id": self.memory_id,
            "record_digest": self.record_digest,
            "summary": self.summary,
            "changeset_id": self.changeset_id,
        }


@dataclass(frozen=True, slots=True)
class Side:
    """One head against the base: its whole delta, the changesets that made it, and a look-up into its state."""

    head: str
    changes: Mapping[str, Change]
    changesets: tuple[Authored, ...]
    claims: Claims
    record: Callable[[str], Record | None]
    base_is_ancestor: bool = True
    digest_of: Callable[[str], str | None] = lambda _: None
    """Gives the digest of a memory's record at this head; asked for records that the side did not change."""

    def party(self, record: Record) -> Party:
        """Gives a record of this side as a party of a conflict."""
        change = self.changes.get(record.memory_id)
        return Party(
            record.memory_id,
            change.after_digest if change else self.digest_of(record.memory_id),
            shorten(record.summary or record.title or record.content),
            change.by.changeset_id if change else None,
        )


@dataclass(frozen=True, slots=True)
class Conflict:
    """A typed, deterministic finding about two heads and their base."""

    conflict_type: str
    severity: str
    identity: Mapping[str, Any]
    memory_ids: tuple[str, ...]
    left: tuple[Party, ...]
    right: tuple[Party, ...]
    detail: str
    similarity: float | None = None

    def to_json(self, project_id: str, base: str, left: str, right: str) -> dict[str, Any]:
        """Gives the wire form, with the id and the identity digest by which a resolution carries over."""
        shown: dict[str, Any] = {
            "conflict_id": conflict_id(project_id, base, left, right, self.conflict_type, self.identity),
            "conflict_type": self.conflict_type,
            "severity": self.severity,
            "project_id": project_id,
            "base_changeset_id": base,
            "left_changeset_id": left,
            "right_changeset_id": right,
            "identity": dict(self.identity),
            "identity_digest": self.identity_digest(),
            "memory_ids": list(self.memory_ids),
            "left": [party.to_json() for party in self.left],
            "right": [party.to_json() for party in self.right],
            "detail": self.detail,
        }
        if self.similarity is not None:
            shown["similarity"] = self.similarity
        return shown

    def joined(self, other: Conflict) -> Conflict:
        """Gives this conflict and an equal one as one, with the parties of both."""
        return replace(
            self,
            left=_united(self.left, other.left),
            right=_united(self.right, other.right),
            detail=min(self.detail, other.detail),
        )

    def identity_digest(self) -> str:
        """Gives what stays the same when heads move: type, identity, and the record digests of both sides."""
        sides = [
            sorted(party.record_digest or "" for party in parties) for parties in (self.left, self.right)
        ]
        if self.conflict_type in SYMMETRIC_TYPES:
            sides.sort()
        return digest([self.conflict_type, self.identity, sides])


def _united(one: tuple[Party, ...], two: tuple[Party, ...]) -> tuple[Party, ...]:
    by_memory = {party.memory_id: party for party in (*one, *two)}
    return tuple(by_memory[name] for name in sorted(by_memory))


def conflict_id(
    project_id: str, base: str, left: str, right: str, conflict_type: str, identity: Mapping[str, Any]
) -> str:
    """Gives the deterministic id of a conflict (FORMAT §9); for symmetric types left and right are sorted first."""
    if conflict_type in SYMMETRIC_TYPES:
        left, right = sorted((left, right))
    view = {
        "project_id": project_id,
        "base": base,
        "left": left,
        "right": right,
        "conflict_type": conflict_type,
        "identity": identity,
    }
    return hashlib.sha256(b"lethe/memory-conflict/v1\n" + canonical_bytes(view)).hexdigest()
