"""What a database of the original holds, project by project, in plain values; nothing is decided here but what can't be read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memory_git.domain.errors import Invalid
from memory_git.interchange.original.cells import (
    cell,
    listed,
    malformed,
    moment,
    names_in,
    optional,
    parse_moment,
    plain,
    typed,
    unique,
)
from memory_git.storage.original import OriginalFile, Row

OPTIONAL = (
    *("persona_id", "actor_id", "surface", "model", "environment", "session_id", "topic_id"),
    "context_manifest_id",
)
ROOT_KEY = "legacy-root"
NEWEST_SCHEMA = 13
MOST_CONTENT = 1 << 20
"""The original took no larger request."""
DIGESTS_V2 = "011_changeset_digests_v2"
_MIGRATION = re.compile(r"(\d{3})_")
_CORE = {
    "projects": ("project_id",),
    "sessions": ("session_id", "agent_id", "project_id"),
    "events": ("event_id", "session_id", "event_type", "content", "created_at"),
}
_MEMORY_GIT = {
    "memory_changesets": (
        *("changeset_id", "schema_version", "project_id", "ref_name", "parent_ids_json", "author_principal"),
        *(*OPTIONAL, "message", "created_at", "idempotency_key", "evidence_json", "verification_json"),
        "integrity_digest",
    ),
    "memory_changeset_ops": (
        *("changeset_id", "ordinal", "op_type", "target_event_id", "resulting_event_id"),
        "payload_json",
    ),
    "memory_refs": (
        *("project_id", "ref_name", "head_changeset_id", "protected", "created_at", "updated_at"),
        "created_by_principal",
    ),
    "memory_manifests": (
        *("manifest_id", "direction", "project_id", "ref_name", "head_changeset_id", "created_at"),
        *("selected_memory_ids_json", "inclusion_reasons_json", "exclusion_reasons_json"),
    ),
    "memory_conflicts": (
        *("conflict_id", "project_id", "left_changeset_id", "right_changeset_id", "conflict_type", "status"),
        "created_at",
    ),
}
_NAMED_ONLY = {
    "memory_legacy_baselines": ("project_id", "root_changeset_id", "event_ids_json"),
    "memory_merge_authorizations": ("nonce", "project_id", "merge_proposal_id", "consumed_at"),
    "memory_protected_ref_advances": (
        *("advance_id", "project_id", "ref_name", "expected_head", "new_head", "merge_proposal_id"),
        *("reviewer_principal", "merger_principal", "strategy", "authorization_nonce", "created_at"),
    ),
    "context_assemblies": ("assembly_id", "session_id", "project_id", "created_at"),
    "context_assembly_items": ("assembly_id", "ordinal", "item_kind", "content_sha256"),
}
_TYPES: dict[str, dict[str, tuple[str, ...]]] = {
    "sessions": {"text": ("session_id", "agent_id", "project_id"), "maybe": ("session_key",)},
    "memory_refs": {
        "text": ("ref_name", "head_changeset_id"),
        "maybe": ("created_by_principal",),
        "time": ("created_at",),
    },
    "memory_legacy_baselines": {"text": ("root_changeset_id",), "names": ("event_ids_json",)},
    "memory_manifests": {
        "text": ("manifest_id", "direction", "ref_name", "head_changeset_id"),
        "maybe": (
            *("base_changeset_id", "resulting_changeset_id", "proposed_target_ref", "merge_proposal_id"),
            *("session_id", "actor_id"),
        ),
        "time": ("created_at",),
        "names": ("selected_memory_ids_json", "unresolved_conflicts_json"),
        "texts": ("inclusion_reasons_json", "exclusion_reasons_json"),
    },
    "memory_conflicts": {
        "text": ("conflict_id", "left_changeset_id", "right_changeset_id", "conflict_type", "status"),
        "maybe": ("proposal_id",),
    },
    "memory_merge_authorizations": {"text": ("nonce", "merge_proposal_id"), "time": ("consumed_at",)},
    "memory_protected_ref_advances": {
        "text": (
            *("advance_id", "ref_name", "expected_head", "new_head", "merge_proposal_id", "strategy"),
            *("reviewer_principal", "merger_principal", "authorization_nonce"),
        ),
        "maybe": ("proposal_digest",),
        "time": ("created_at",),
    },
    "context_assemblies": {
        "text": ("assembly_id", "session_id"),
        "maybe": ("memory_head_changeset_id",),
        "time": ("created_at",),
    },
    "context_assembly_items": {
        "text": ("assembly_id", "item_kind", "content_sha256"),
        "maybe": ("event_id",),
    },
    "context_assembly_feedback": {"text": ("feedback_id", "assembly_id", "verdict"), "maybe": ("note",)},
}
_OBJECTS = {
    "events": "event_id",
    "memory_changesets": "changeset_id",
    "memory_manifests": "manifest_id",
    "context_assemblies": "assembly_id",
}
"""What has an id of its own here, whatever its project."""


@dataclass(frozen=True, slots=True)
class OriginalOp:
    """One op, as it was written."""

    ordinal: int
    op_type: str
    target: str
    result: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OriginalChangeset:
    """One changeset; `evidence` and `verification` are None where the original had none at all."""

    changeset_id: str
    schema_version: str
    project_id: str
    ref_name: str
    parent_ids: tuple[str, ...]
    author: str
    optional: dict[str, str]
    message: str
    created_at: datetime
    idempotency_key: str
    evidence: list[Any] | None
    verification: list[Any] | None
    integrity_digest: str
    request_digest: str
    ops: tuple[OriginalOp, ...]


@dataclass(frozen=True, slots=True)
class OriginalEvent:
    """One event; `row` has all its columns."""

    event_id: str
    event_type: str
    content: str
    session_id: str | None
    created_at: datetime
    row: Row


@dataclass(frozen=True, slots=True)
class Beside:
    """A row that has no place of its own here: it is kept as an event, word for word."""

    table: str
    key: str
    row: Row
    at: datetime | None


@dataclass(slots=True)
class OriginalProject:
    """All that a database holds of one project, in the order in which it was written."""

    project_id: str
    events: list[OriginalEvent] = field(default_factory=list)
    changesets: list[OriginalChangeset] = field(default_factory=list)
    refs: list[Row] = field(default_factory=list)
    baseline: Row | None = None
    manifests: list[Row] = field(default_factory=list)
    conflicts: list[Row] = field(default_factory=list)
    authorizations: list[Row] = field(default_factory=list)
    advances: list[Row] = field(default_factory=list)
    assemblies: list[Row] = field(default_factory=list)
    agents_of_sessions: dict[str, str] = field(default_factory=dict)
    keys_of_sessions: dict[str, str] = field(default_factory=dict)
    beside: list[Beside] = field(default_factory=list)


class Source:
    """One database of the original, with its tables and columns known to be there."""

    def __init__(self, file: OriginalFile) -> None:
        self._file = file
        self.schema, self.digests_v2 = _schema(file)
        _require(file, _CORE)
        if "memory_changesets" in file.tables:
            _require(file, _MEMORY_GIT)
        _require(file, {name: columns for name, columns in _NAMED_ONLY.items() if name in file.tables})
        self._sessions = unique(self._typed("sessions"), "sessions", "session_id")
        self._project_of_session = {
            cell(row, "sessions", "session_id"): cell(row, "sessions", "project_id") for row in self._sessions
        }

    def _typed(self, table: str, project_id: str | None = None) -> list[Row]:
        """Gives the rows of a table, or those of a project, in their types."""
        where = None if project_id is None else "project_id"
        return [typed(row, table, _TYPES[table]) for row in self._file.rows(table, where, project_id)]

    def require_own_ids(self) -> None:
        """Refuses a file in which two objects have one id."""
        seen: set[str] = set()
        for table, column in _OBJECTS.items():
            for row in self._file.rows(table):
                name = cell(row, table, column)
                if name in seen:
                    raise malformed(table, name, column, "is there twice")
                seen.add(name)

    def project_ids(self) -> list[str]:
        """Gives the projects of the database, sorted: those that it lists, and those that its events name alone."""
        found = {cell(row, "projects", "project_id") for row in self._file.rows("projects")}
        found |= {name for name, _ in self._events()}
        return sorted(found)

    def _events(self) -> Iterator[tuple[str, Row]]:
        """Yields each event with its project: its own column since 006, before that its session's."""
        has_own = "project_id" in self._file.columns("events")
        for row in self._file.rows("events"):
            if has_own:
                yield cell(row, "events", "project_id"), row
            else:
                session_id = cell(row, "events", "session_id")
                if session_id not in self._project_of_session:
                    raise malformed("events", row["event_id"], "session_id", "names no session")
                yield self._project_of_session[session_id], row

    def project(self, project_id: str) -> OriginalProject:
        """Gives all that the database holds of a project."""
        found = OriginalProject(project_id)
        found.events = [_event(row) for name, row in self._events() if name == project_id]
        for row in self._sessions:
            if row["project_id"] == project_id:
                session_id = cell(row, "sessions", "session_id")
                found.agents_of_sessions[session_id] = cell(row, "sessions", "agent_id")
                found.keys_of_sessions[session_id] = optional(row, "sessions", "session_key") or session_id
        self._read_history(found)
        self._read_receipts(found)
        found.beside = list(self._beside(found))
        return found

    def _read_history(self, found: OriginalProject) -> None:
        ops: dict[str, list[OriginalOp]] = {}
        for row in self._file.rows("memory_changeset_ops"):
            ops.setdefault(cell(row, "memory_changeset_ops", "changeset_id"), []).append(_op(row))
        at = found.project_id
        for row in self._file.rows("memory_changesets", "project_id", at):
            own = sorted(
                ops.get(cell(row, "memory_changesets", "changeset_id"), ()), key=lambda op: op.ordinal
            )
            found.changesets.append(_changeset(row, tuple(own)))
        found.refs = unique(self._typed("memory_refs", at), "memory_refs", "ref_name")
        found.baseline = next(iter(self._typed("memory_legacy_baselines", at)), None)

    def _read_receipts(self, found: OriginalProject) -> None:
        at = found.project_id
        found.manifests = self._typed("memory_manifests", at)
        found.conflicts = self._typed("memory_conflicts", at)
        table = "memory_merge_authorizations"
        found.authorizations = unique(self._typed(table, at), table, "nonce")
        table = "memory_protected_ref_advances"
        found.advances = unique(self._typed(table, at), table, "advance_id")
        unique(found.advances, table, "authorization_nonce")
        found.assemblies = self._typed("context_assemblies", at)
        of_assembly: dict[str, list[Row]] = {}
        for row in self._typed("context_assembly_items"):
            of_assembly.setdefault(row["assembly_id"], []).append(row)
        verdicts = {row["assembly_id"]: row for row in self._typed("context_assembly_feedback")}
        for row in found.assemblies:
            row["items"] = of_assembly.get(row["assembly_id"], [])
            row["feedback"] = verdicts.get(row["assembly_id"])

    def _beside(self, found: OriginalProject) -> Iterator[Beside]:
        """Yields the rows that are kept as events, oldest tables first."""
        agents = set(found.agents_of_sessions.values())
        for row in self._file.rows("agents"):
            if row["agent_id"] in agents:
                yield _kept("agents", "agent_id", row)
        for row in self._sessions:
            if row["session_id"] in found.agents_of_sessions:
                yield _kept("sessions", "session_id", row)
        for table, key in (
            ("session_links", "prior_session_id"),
            ("checkpoints", "checkpoint_id"),
            ("threads", "thread_id"),
        ):
            for row in self._file.rows(table):
                if row.get("session_id") in found.agents_of_sessions:
                    yield _kept(table, key, row)
        told = {"event_id", "project_id", "event_type", "content", "created_at"}
        for event in found.events:
            if any(value not in (None, "") for name, value in event.row.items() if name not in told):
                rest = {name: value for name, value in event.row.items() if name != "content"}
                yield Beside("events", event.event_id, plain(rest, "events"), event.created_at)
        for row in found.conflicts:
            yield _kept("memory_conflicts", "conflict_id", row)
        of_project = {row["assembly_id"] for row in found.assemblies}
        for table, key in (("context_assembly_feedback", "feedback_id"),):
            for row in self._file.rows(table):
                if row["assembly_id"] in of_project:
                    yield _kept(table, key, row)


def _schema(file: OriginalFile) -> tuple[int, bool]:
    """Gives the newest migration that is applied, and whether the digests were brought to their second form."""
    names = [cell(row, "schema_versions", "name") for row in file.rows("schema_versions")]
    numbers = [int(match[1]) for name in names if (match := _MIGRATION.match(name))]
    if max(numbers, default=0) > NEWEST_SCHEMA:
        raise Invalid(
            "import_newer_schema",
            f"the database has schema {max(numbers)}, and this version knows those up to {NEWEST_SCHEMA}: update Memory Git",
            found=max(numbers),
        )
    return max(numbers, default=0), DIGESTS_V2 in names


def _require(file: OriginalFile, tables: Mapping[str, tuple[str, ...]]) -> None:
    for table, columns in tables.items():
        absent = sorted(set(columns) - set(file.columns(table)))
        if absent:
            what = f"no table {table}" if table not in file.tables else f"no column {absent[0]} in {table}"
            raise Invalid(
                "import_unknown_form",
                f"this is no database of Lethe, or a damaged one: it has {what}",
                field="file",
            )


def _event(row: Row) -> OriginalEvent:
    if len(cell(row, "events", "content")) > MOST_CONTENT:
        raise malformed("events", row["event_id"], "content", f"has over {MOST_CONTENT} characters")
    return OriginalEvent(
        cell(row, "events", "event_id"),
        cell(row, "events", "event_type"),
        cell(row, "events", "content"),
        optional(row, "events", "session_id"),
        moment(row, "events", "created_at"),
        plain(row, "events"),
    )


def _op(row: Row) -> OriginalOp:
    table = "memory_changeset_ops"
    ordinal = row["ordinal"]
    if not isinstance(ordinal, int):
        raise malformed(table, row["changeset_id"], "ordinal", "is no whole number")
    return OriginalOp(
        ordinal,
        cell(row, table, "op_type"),
        optional(row, table, "target_event_id") or "",
        optional(row, table, "resulting_event_id") or "",
        listed(row, table, "payload_json", dict),
    )


def _changeset(row: Row, ops: tuple[OriginalOp, ...]) -> OriginalChangeset:
    table = "memory_changesets"
    parents = names_in(row, table, "parent_ids_json")
    kept = {name: value for name in OPTIONAL if (value := optional(row, table, name))}
    attached: dict[str, list[Any] | None] = {}
    for name in ("evidence", "verification"):
        column = f"{name}_json"
        items = listed(row, table, column, list)
        if not all(isinstance(item, dict) for item in items):
            raise malformed(table, row["changeset_id"], column, "is no list of objects")
        attached[name] = None if row[column] == "null" else items
    return OriginalChangeset(
        changeset_id=cell(row, table, "changeset_id"),
        schema_version=cell(row, table, "schema_version"),
        project_id=cell(row, table, "project_id"),
        ref_name=cell(row, table, "ref_name"),
        parent_ids=tuple(parents),
        author=cell(row, table, "author_principal"),
        optional=kept,
        message=cell(row, table, "message"),
        created_at=moment(row, table, "created_at"),
        idempotency_key=cell(row, table, "idempotency_key"),
        evidence=attached["evidence"],
        verification=attached["verification"],
        integrity_digest=cell(row, table, "integrity_digest"),
        request_digest=optional(row, table, "request_digest") or "",
        ops=ops,
    )


def _kept(table: str, key: str, row: Row) -> Beside:
    name = str(row.get(key))
    times = ("created_at", "started_at")
    at = next((found for column in times if (found := parse_moment(row.get(column))) is not None), None)
    return Beside(table, name, plain(row, table), at)
