"""The shapes of Lethe's answers, for its OpenAPI document; the protocol's docstring says the same in words."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

Object = dict[str, Any]


class Ref(TypedDict):
    """A named head."""

    project_id: str
    ref_name: str
    head_changeset_id: str
    protected: bool
    created_at: str
    updated_at: str
    updated_by: str
    version: int


class RefMove(TypedDict):
    """One move of a ref."""

    seq: int
    from_head: NotRequired[str | None]
    to_head: str
    principal: str
    reason: str
    at: str
    digest: str


class Op(TypedDict):
    """One operation; a withheld or redacted one shows its digest alone."""

    ordinal: int
    op_digest: str
    op_type: NotRequired[str]
    target_event_id: NotRequired[str | None]
    resulting_event_id: NotRequired[str | None]
    payload: NotRequired[Object]
    op_salt: NotRequired[str | None]
    withheld: NotRequired[bool]
    redacted: NotRequired[bool]


class Changeset(TypedDict):
    """One changeset (3-model)."""

    changeset_id: str
    schema_version: str
    project_id: str
    ref_name: str
    parent_ids: list[str]
    author_principal: str
    message: str | None
    created_at: str
    idempotency_key: str
    ops: list[Op]
    evidence: list[Object]
    verification: list[Object]
    state_root: str
    authored_digest: str
    integrity_digest: str
    digest_version: int | str
    persona_id: NotRequired[str | None]
    actor_id: NotRequired[str | None]
    surface: NotRequired[str | None]
    model: NotRequired[str | None]
    environment: NotRequired[Any]
    session_id: NotRequired[str | None]
    topic_id: NotRequired[str | None]
    context_manifest_id: NotRequired[str | None]
    message_salt: NotRequired[str | None]
    message_digest: str
    evidence_salt: NotRequired[str | None]
    evidence_digests: list[str]
    verification_salt: NotRequired[str | None]
    verification_digests: list[str]
    author_signature: NotRequired[Any]
    originals: NotRequired[list[Object]]


class Salts(TypedDict):
    """The salts of one changeset's own texts."""

    message: str
    evidence: str
    verification: str
    ops: list[str]


class Preparation(TypedDict):
    """What an author signs, and sends back whole as `authored` (FORMAT 6.8)."""

    view: Object
    authored_digest: str
    salts: Salts
    memory_ids: list[str]
    expires_at: str
    seal: str


class Entry(TypedDict):
    """One memory at a state."""

    memory_id: str
    record: Object
    record_digest: str
    salt: NotRequired[str | None]
    version: int
    introduced_by: str
    changed_by: str


class Relationship(TypedDict):
    """One edge."""

    from_memory_id: str
    kind: str
    to_memory_id: str


class Conflict(TypedDict):
    """Two sides that can't both stand; a stored one has its status beside."""

    conflict_id: str
    conflict_type: str
    severity: str
    project_id: str
    base_changeset_id: str
    left_changeset_id: str
    right_changeset_id: str
    memory_ids: list[str]
    identity: NotRequired[Any]
    left: list[Object]
    right: list[Object]
    detail: NotRequired[Any]
    similarity: NotRequired[float | None]
    proposal_id: NotRequired[str | None]
    status: NotRequired[str]
    outcome: NotRequired[str | None]
    resolution_note: NotRequired[str | None]
    resolved_by: NotRequired[str | None]
    created_at: NotRequired[str]
    updated_at: NotRequired[str]


class Event(TypedDict):
    """One event."""

    event_id: str
    project_id: str
    seq: int
    event_type: str
    content: NotRequired[str | None]
    content_digest: str
    memory_id: NotRequired[str | None]
    changeset_id: NotRequired[str | None]
    record_digest: NotRequired[str | None]
    actor: NotRequired[str | None]
    created_at: str
    salt: NotRequired[str | None]
    event_digest: str


class Project(TypedDict):
    """A project."""

    project_id: str
    name: str


class Projects(TypedDict):
    """The projects, by id."""

    projects: list[Project]


class ProjectStart(TypedDict):
    """A project's root and its first ref."""

    changeset: Changeset
    ref: Ref


class RefLog(TypedDict):
    """A page of the moves of a ref, oldest first."""

    moves: list[RefMove]
    next: NotRequired[int]


class Log(TypedDict):
    """A page of history."""

    changesets: list[Changeset]
    project: str
    ref: NotRequired[str | None]
    next: NotRequired[str | None]


class IsAncestor(TypedDict):
    """Whether one changeset is reachable from another."""

    is_ancestor: bool


class Bases(TypedDict):
    """All best common ancestors."""

    merge_base: list[str]


class Authors(TypedDict):
    """Author principals."""

    authors: list[str]


class Memories(TypedDict):
    """A page of a state."""

    memories: list[Entry]
    relationships: list[Relationship]
    next: NotRequired[str | None]
    total: int


class Hit(Entry):
    """A memory that was found."""

    score: float


class Hits(TypedDict):
    """What a search found, best first."""

    hits: list[Hit]
    total: int


class MemoryAt(Entry):
    """A memory with its edges and the proof of its presence."""

    relationships: list[Relationship]
    proof: Any


class MemoryVersions(TypedDict):
    """The versions of a memory, newest first."""

    memory_id: str
    versions: list[Object]


class Conflicts(TypedDict):
    """Conflicts, stored or found, and how many."""

    conflicts: list[Conflict]
    count: int


class Persisted(TypedDict):
    """How many conflicts were stored."""

    persisted: int
    proposal_id: str


class Retired(TypedDict):
    """How many conflicts were retired."""

    retired: int
    proposal_id: str
    status: str


class Resolved(TypedDict):
    """The conflict with its resolution."""

    resolved: Conflict


class Events(TypedDict):
    """Events by seq."""

    events: list[Event]


class Assemblies(TypedDict):
    """A session's assemblies, oldest first."""

    assemblies: list[Object]


class Advances(TypedDict):
    """The protected advances."""

    advances: list[Object]
    next: NotRequired[int]


class Verification(TypedDict):
    """What a verification found."""

    ok: bool
    project_id: str
    checked: dict[str, int]
    faults: list[Object]


class Health(TypedDict):
    """The process lives."""

    status: str
    mode: Literal["git"]
    version: NotRequired[str]


class Readiness(TypedDict):
    """The store can be used."""

    status: str
    mode: Literal["git"]
    engine: NotRequired[str]
    schema_version: NotRequired[int]
    durability: NotRequired[Any]
