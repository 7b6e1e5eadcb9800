"""The shapes of Lethe's request bodies.

1. A body that becomes the arguments of a verb is checked here: exact types, unknown fields refused.
2. A body that a verb takes whole is described here and checked by the store alone, which finds all faults at once;
   so the same request is refused in the same words with and without HTTP between.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from memory_git.domain.conflicts import OUTCOMES
from memory_git.http.forms import Name, ProjectId, RefName, RefNameOrNone
from memory_git.http.strict import Body
from memory_git.lethe.assemblies import VERDICTS
from memory_git.lethe.conflict_rows import CLOSING_STATUSES

_OP_SCHEMA = {
    "type": "object",
    "required": ["op_type"],
    "properties": {
        "op_type": {"type": "string"},
        "target_event_id": {"type": ["string", "null"]},
        "resulting_event_id": {"type": ["string", "null"]},
        "payload": {"type": "object", "description": "Closed keys per op_type (3-model, operations)"},
    },
}
Object = dict[str, Any]
Ops = Annotated[list[Any], WithJsonSchema({"type": "array", "maxItems": 10_000, "items": _OP_SCHEMA})]
Objects = Annotated[list[Any], WithJsonSchema({"type": "array", "items": {"type": "object"}})]


class _CreateRequest(Body):
    """A changeset to store (3-model, changeset)."""

    project_id: ProjectId
    ref_name: RefName
    parent_ids: list[str]
    author_principal: Name
    message: str
    idempotency_key: str
    ops: Ops
    persona_id: str | None = None
    actor_id: str | None = None
    surface: str | None = None
    model: str | None = None
    environment: Any = None
    session_id: str | None = None
    topic_id: str | None = None
    context_manifest_id: str | None = None
    evidence: Objects | None = None
    verification: Objects | None = None
    expected_head: str | None = None
    advance_ref: bool | None = None
    create_ref_if_missing: bool | None = None
    protected: bool | None = None
    authored: Object | None = None
    author_signature: Object | None = None


class BranchRequest(Body):
    """A ref to create."""

    ref_name: RefName
    head_changeset_id: str
    principal: Name
    protected: bool = False


class AdvanceRequest(Body):
    """A move of an unprotected ref."""

    ref_name: RefName
    expected_head: str
    new_head: str
    principal: str = "system"


class _MergeRequest(Body):
    """A move of a protected ref; `merge_authorization` is the JSON text of `{envelope, signature}`."""

    ref_name: RefName
    expected_head: str
    new_head: str
    merge_proposal_id: str
    reviewer_principal: str
    merge_authorization: str
    proposal_state: Object | None = None


class DiffRequest(Body):
    """What a diff is against; the first parent when absent."""

    base_changeset_id: str | None = None


class DetectRequest(Body):
    """Two heads and their base."""

    base_changeset_id: str
    left_changeset_id: str
    right_changeset_id: str


class PersistRequest(Body):
    """Found conflicts, to be bound to a proposal."""

    proposal_id: str
    conflicts: list[Object]


class RedactRequest(Body):
    """A memory to erase, on whose order, and why."""

    memory_id: str
    principal: Name
    reason: Name


class RetireRequest(Body):
    """A proposal whose open conflicts end."""

    proposal_id: str
    status: Annotated[str, Field(json_schema_extra={"enum": list(CLOSING_STATUSES)})]


class ResolveRequest(Body):
    """A resolution with its reason."""

    outcome: Annotated[str, Field(json_schema_extra={"enum": list(OUTCOMES)})]
    resolution_note: Name
    principal: Name


class MergePlanRequest(Body):
    """What to bring where."""

    target: str
    source: str


class RebasePlanRequest(Body):
    """What to replay where."""

    head: str
    onto: str


class CherryPickPlanRequest(Body):
    """Selected ops, as `{changeset_id, ordinal}`, and the head to copy them on."""

    selected: list[Object]
    onto: str


class RevertPlanRequest(Body):
    """What to take back where; `mainline` is the parent (1 or 2) that a merge is reverted to.

    With `from_changeset_id`, an ancestor by first parents, all that came after it is taken back, up to the changeset.
    """

    changeset_id: str
    onto: str
    mainline: Annotated[int, Field(ge=1, le=2)] | None = None
    from_changeset_id: str | None = None


class _ContextRequest(Body):
    """What context is asked for (7-context); of refs/shared/main when no ref is named."""

    ref_name: RefNameOrNone | None = None
    head_changeset_id: str | None = None
    query: str | None = None
    limit: Annotated[int, Field(ge=1, le=100)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    session_id: str | None = None
    actor_id: str | None = None
    principal: str | None = None
    create_manifest: bool | None = None
    now: str | None = None


class _EventRequest(Body):
    """An event to append."""

    project_id: ProjectId
    event_type: str
    content: Any
    memory_id: str | None = None
    actor: str | None = None
    event_id: str | None = None


class _AssemblyRequest(Body):
    """What a model call was given."""

    project_id: ProjectId
    manifest_id: str | None = None
    head_changeset_id: str
    items: Objects
    token_counts: Object | None = None
    model: str | None = None


class FeedbackRequest(Body):
    """A verdict on an assembly."""

    verdict: Annotated[str, Field(json_schema_extra={"enum": list(VERDICTS)})]
    note: Annotated[str, Field(json_schema_extra={"maxLength": 4096})] = ""


class BackupRequest(Body):
    """A directory of the server's machine."""

    to_directory: str


class _ManifestRequest(Body):
    """A manifest to store (7-context); `direction` is the original's name of `kind`."""

    model_config = ConfigDict(extra="allow")

    project_id: ProjectId
    kind: Literal["input", "output"] | None = None
    direction: Literal["input", "output"] | None = None


def _described(model: type[BaseModel]) -> WithJsonSchema:
    return WithJsonSchema({**model.model_json_schema(), "title": model.__name__.removeprefix("_")})


CreateRequest = Annotated[Object, _described(_CreateRequest)]
MergeRequest = Annotated[Object, _described(_MergeRequest)]
ContextRequest = Annotated[Object, _described(_ContextRequest)]
ManifestRequest = Annotated[Object, _described(_ManifestRequest)]
EventRequest = Annotated[Object, _described(_EventRequest)]
AssemblyRequest = Annotated[Object, _described(_AssemblyRequest)]
