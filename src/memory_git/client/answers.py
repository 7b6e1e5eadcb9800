"""What the verbs of a client give: dictionaries as the HTTP API answers them, with their members typed."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from memory_git.http.lethe_routes.answers import (
    Changeset,
    Conflict,
    Entry,
    Hits,
    Log,
    Memories,
    MemoryAt,
    MemoryVersions,
    Ref,
    Relationship,
)

__all__ = [
    "Changeset",
    "Committed",
    "Conflict",
    "Context",
    "Diff",
    "Entry",
    "Hits",
    "Identity",
    "Log",
    "Memories",
    "MemoryAt",
    "MemoryVersions",
    "Proposal",
    "Proposals",
    "Ref",
    "Status",
]
Object = dict[str, Any]


class Identity(TypedDict):
    """Who a client is, and what it may do."""

    principal_id: str
    kind: str
    scopes: list[str]
    grants: list[Object]
    actor_ids: list[str]
    default_project: str | None
    working_ref: str | None


class Status(TypedDict):
    """Where the working branch stands against accepted memory."""

    project: str
    principal: str
    working_ref: str | None
    working_head: str | None
    shared_head: str
    ahead: int
    behind: int
    open_proposals: int
    open_conflicts: int
    total_active: int
    recovery_readonly: bool


class Committed(TypedDict):
    """A commit: what was stored, where the ref stands now, whether an earlier equal call had done it."""

    changeset: Changeset
    ref: Ref
    replayed: bool


class Context(TypedDict):
    """Accepted memory for a prompt (7-context)."""

    project_id: str
    ref_name: str
    head_changeset_id: str
    memories: list[Entry]
    relationships: list[Relationship]
    unresolved_conflicts: list[Object]
    exclusion_reasons: dict[str, str]
    total_active: int
    manifest_id: NotRequired[str | None]


class Diff(TypedDict):
    """What changed between two states, by meaning; lists of what changed are named by it (`memories_added` ...)."""

    base_changeset_id: str
    target_changeset_id: str
    memories_added: list[Object]
    page: NotRequired[Object]


class Proposal(TypedDict):
    """A proposal with its diff, conflicts and reviews; `verdict` says whether it can be merged, and what is missing."""

    proposal_id: str
    project_id: str
    title: str
    message: str
    status: str
    originator: str
    target_ref: str
    head_changeset_id: str
    judged_digest: str
    stale: bool
    current_head: str
    conflicts: list[Object]
    reviews: list[Object]
    verdict: Object
    merged_changeset_id: NotRequired[str | None]
    merged_head: NotRequired[str | None]


class Proposals(TypedDict):
    """A page of proposals, newest first."""

    proposals: list[Object]
    next: NotRequired[str]
