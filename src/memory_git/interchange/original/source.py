"""What a database of the original holds, project by project, in plain values; nothing is decided here but what can't be read.

A value of another type than its column's, or a time that is none, makes the whole file malformed: nobody can tell what else is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from memory_git.domain.errors import Invalid
from memory_git.interchange.original import go_json
from memory_git.storage.original import OriginalFile, Row

OPTIONAL = (
    *("persona_id", "actor_id", "surface", "model", "environment", "session_id", "topic_id"),
    "context_manifest_id",
)
ROOT_KEY = "legacy-root"
NEWEST_SCHEMA = 13
DIGESTS_V2 = "011_changeset_digests_v2"
_MIGRATION = re.compile(r"(\d{3})_")
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)? ?(Z|UTC|[+-]\d\d:?\d\d)?(?: [A-Za-z0-9+-]{1,8})?(?: m=\S+)?",
    re.ASCII,
)
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
        self._sessions = list(file.rows("sessions"))
        self._project_of_session = {
            cell(row, "sessions", "session_id"): cell(row, "sessions", "project_id") for row in self._sessions
        }

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
        found.refs = list(self._file.rows("memory_refs", "project_id", at))
        found.baseline = next(self._file.rows("memory_legacy_baselines", "project_id", at), None)

    def _read_receipts(self, found: OriginalProject) -> None:
        at = found.project_id
        found.manifests = list(self._file.rows("memory_manifests", "project_id", at))
        found.conflicts = list(self._file.rows("memory_conflicts", "project_id", at))
        found.authorizations = list(self._file.rows("memory_merge_authorizations", "project_id", at))
        found.advances = list(self._file.rows("memory_protected_ref_advances", "project_id", at))
        found.assemblies = list(self._file.rows("context_assemblies", "project_id", at))
        of_assembly: dict[str, list[Row]] = {}
        for row in self._file.rows("context_assembly_items"):
            of_assembly.setdefault(cell(row, "context_assembly_items", "assembly_id"), []).append(row)
        verdicts = {row["assembly_id"]: row for row in self._file.rows("context_assembly_feedback")}
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
                yield Beside(
                    "events", event.event_id, plain(rest, "events", event.event_id), event.created_at
                )
        for row in found.conflicts:
            yield _kept("memory_conflicts", "conflict_id", row)
        of_project = {row["assembly_id"] for row in found.assemblies}
        for table, key in (("context_assembly_feedback", "feedback_id"),):
            for row in self._file.rows(table):
                if row["assembly_id"] in of_project:
                    yield _kept(table, key, row)


def cell(row: Row, table: str, name: str) -> str:
    """Gives a text that must be there."""
    value = row.get(name)
    if not isinstance(value, str):
        raise malformed(table, next(iter(row.values()), ""), name, "is no text")
    return value


def optional(row: Row, table: str, name: str) -> str | None:
    """Gives a text, or None where it is absent or empty."""
    value = row.get(name)
    if value is None or value == "":
        return None
    return cell(row, table, name)


def moment(row: Row, table: str, name: str) -> datetime:
    """Gives a time that must be there, in UTC."""
    found = parse_moment(row.get(name))
    if found is None:
        raise malformed(table, next(iter(row.values()), ""), name, "is no time")
    return found


def parse_moment(text: object) -> datetime | None:
    """Reads a time in any form that the original wrote: its own, SQLite's, RFC 3339; None when it is none."""
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    try:
        found = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=UTC)
        found += timedelta(microseconds=int((fraction or ".0")[1:7].ljust(6, "0")))
        if zone and zone[0] in "+-":
            minutes = int(zone[1:3]) * 60 + int(zone[-2:])
            found -= timedelta(minutes=-minutes if zone[0] == "-" else minutes)
    except (ValueError, OverflowError):
        return None
    return found


def listed(row: Row, table: str, name: str, kind: type) -> Any:
    """Gives the value of a JSON column, which must be of a kind; an absent one is empty."""
    raw = row.get(name)
    if raw is None:
        return kind()
    try:
        value = go_json.read(cell(row, table, name))
    except go_json.Unread:
        value = ...
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise malformed(table, next(iter(row.values()), ""), name, f"is no JSON {kind.__name__}")
    return value


def plain(row: Row, table: str, key: object) -> Row:
    """Gives a row whose values are all plain; a blob has no place in any table of the original."""
    for name, value in row.items():
        if isinstance(value, bytes):
            raise malformed(table, key, name, "is a blob")
    return row


def malformed(table: str, key: object, column: str, why: str) -> Invalid:
    """Gives the refusal of a file in which a row is not what the original writes."""
    named = str(key)[:80].encode("unicode_escape").decode("ascii")
    return Invalid(
        "import_malformed",
        f"{table}, row {named}: {column} {why}; nothing was imported: import a backup from before the file was damaged",
        table=table,
        column=column,
    )


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
    return OriginalEvent(
        cell(row, "events", "event_id"),
        cell(row, "events", "event_type"),
        cell(row, "events", "content"),
        optional(row, "events", "session_id"),
        moment(row, "events", "created_at"),
        plain(row, "events", row["event_id"]),
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
    parents = listed(row, table, "parent_ids_json", list)
    if not all(isinstance(item, str) for item in parents):
        raise malformed(table, row["changeset_id"], "parent_ids_json", "names no changesets")
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
    return Beside(table, name, plain(row, table, name), at)
