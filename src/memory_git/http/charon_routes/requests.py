"""The shapes of Charon's request bodies: exact types, unknown fields refused; field names are those of the verbs."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from memory_git.http.lethe_routes.requests import Object, Objects, Ops
from memory_git.http.strict import Body


class ProjectRequest(Body):
    """A project to start."""

    project: str


class BranchRequest(Body):
    """A ref to create: at the head of another ref, or at a changeset."""

    ref_name: str
    from_ref: str | None = None
    head: str | None = None


class CommitRequest(Body):
    """A changeset; author, actor and trust are the caller's own and can't be sent."""

    message: str
    ops: Ops
    ref: str | None = None
    expected_head: str | None = None
    read_head: bool = False
    parent_ids: list[str] | None = None
    idempotency_key: str | None = None
    model: str | None = None
    session_id: str | None = None
    topic_id: str | None = None
    context_manifest_id: str | None = None
    evidence: Objects | None = None
    verification: Objects | None = None


class ContextRequest(Body):
    """What context is asked for (7-context)."""

    ref: str | None = None
    head: str | None = None
    query: str | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    session_id: str | None = None
    create_manifest: bool = False
    now: str | None = None


class ResolveRequest(Body):
    """A resolution with its reason."""

    outcome: str
    note: str


class ProposeRequest(Body):
    """Work to be reviewed: a source ref, or a head."""

    message: str
    title: str = ""
    target_ref: str = "refs/shared/main"
    source_ref: str | None = None
    head_changeset_id: str | None = None
    base_changeset_id: str | None = None
    kind: str = "merge_request"
    idempotency_key: str | None = None
    selected_ops: list[Object] | None = None
    lifetime_s: Annotated[int, Field(ge=1)] | None = None


class RebaseRequest(Body):
    """A ref of one's own to replay on another."""

    ref_name: str
    onto: str = "refs/shared/main"


class RedactRequest(Body):
    """A memory to erase for good, and why."""

    memory_id: str
    reason: str


class RevertRequest(Body):
    """A changeset to take back, by a proposal; or all after `from_changeset_id`, by first parents, up to it."""

    changeset_id: str
    from_changeset_id: str | None = None
    target_ref: str = "refs/shared/main"
    mainline: Annotated[int, Field(ge=1, le=2)] | None = None
    title: str = ""
    message: str | None = None
    idempotency_key: str | None = None


class ReviewRequest(Body):
    """A verdict: approve, request_changes or reject."""

    verdict: str
    comment: str = ""
    findings: list[Object] = Field(default_factory=list)
    severity: str | None = None
    judged_digest: str | None = None


class MergeRequest(Body):
    """How to merge."""

    idempotency_key: str | None = None
    strategy: str | None = None
    resolutions: list[Any] | None = None


class PrincipalRequest(Body):
    """A principal to add; by default it owns one actor of its own name."""

    principal_id: str
    kind: str
    display_name: str = ""
    profile: str = "propose"
    actor_ids: list[str] | None = None
    scopes: list[str] = Field(default_factory=list)


class ActorRequest(Body):
    """An actor for a principal to own."""

    actor_id: str


class ObolRequest(Body):
    """A token to mint."""

    principal_id: str
    expires_s: Annotated[int, Field(ge=1)] | None = None
    scopes: list[str] | None = None
    project: str | None = None


class GrantRequest(Body):
    """What a principal may do in a project."""

    principal_id: str
    project: str
    scopes: list[str] | None = None
    refs: list[str] = Field(default_factory=list)


class GrantName(Body):
    """Which grant."""

    principal_id: str
    project: str


class PolicyRequest(Body):
    """Fields of a policy to set."""

    changes: Object
