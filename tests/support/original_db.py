"""Databases of the original Lethe for tests, written from the facts of its schema (its tables, columns, forms of times and digests).

Nothing here is the original's: the tables have the columns that an importer meets, at each of its thirteen schema versions.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Op = Mapping[str, Any]
ROOT_KEY = "legacy-root"
MIGRATIONS = (
    *("001_init.sql", "002_add_session_key.sql", "003_add_token_budget.sql", "004_add_lifetime_tokens.sql"),
    *("005_add_threads.sql", "006_project_scoped_events.sql", "007_unique_session_key.sql"),
    *("008_context_assembly_ledger.sql", "009_memory_git.sql", "010_memory_context_bridge.sql"),
    *(
        "011_memory_conflict_lifecycle.sql",
        "012_merge_authorizations.sql",
        "013_memory_git_request_digest.sql",
    ),
)
DIGESTS_V2 = "011_changeset_digests_v2"
_NAMES = (
    "persona_id",
    "actor_id",
    "surface",
    "model",
    "environment",
    "session_id",
    "topic_id",
    "context_manifest_id",
)


def columns_at(level: int) -> dict[str, list[str]]:
    """Gives the tables that a schema version has, each with its columns."""
    tables = {
        "schema_versions": ["name", "applied"],
        "agents": ["agent_id", "name", "created_at", "last_seen_at"],
        "projects": ["project_id", "name", "created_at", "updated_at"],
        "sessions": ["session_id", "agent_id", "project_id", "state", "started_at", "ended_at", "summary"],
        "checkpoints": ["checkpoint_id", "session_id", "seq", "snapshot", "created_at"],
        "session_links": ["session_id", "prior_session_id", "link_type"],
        "events": [
            "event_id",
            "session_id",
            "parent_event_id",
            "event_type",
            "content",
            "confidence",
            "tags",
        ],
    }
    tables["events"] += ["task_title", "task_status", "reviewer_id", "created_at"]
    if level >= 2:
        tables["sessions"] += ["session_key"]
    if level >= 5:
        tables["threads"] = ["thread_id", "session_id", "name", "title", "status", "created_at", "updated_at"]
        tables["events"] += ["thread_id"]
    if level >= 6:
        tables["events"].insert(2, "project_id")
    if level >= 8:
        tables["context_assemblies"] = [
            *("assembly_id", "session_id", "project_id", "source", "assembler_version", "created_at"),
            *("total_estimated_tokens", "packed_bytes"),
        ]
        tables["context_assembly_items"] = [
            *("assembly_id", "ordinal", "item_kind", "bucket", "event_id", "content_snapshot"),
            *("content_sha256", "packed_bytes", "estimated_tokens"),
        ]
        tables["context_assembly_feedback"] = ["feedback_id", "assembly_id", "verdict", "note", "created_at"]
    if level >= 9:
        tables["memory_changesets"] = [
            *(
                "changeset_id",
                "schema_version",
                "project_id",
                "ref_name",
                "parent_ids_json",
                "author_principal",
            ),
            *(*_NAMES, "message", "created_at", "idempotency_key", "evidence_json", "verification_json"),
            "integrity_digest",
        ]
        tables["memory_changeset_ops"] = [
            *("changeset_id", "ordinal", "op_type", "target_event_id", "resulting_event_id", "payload_json"),
        ]
        tables["memory_refs"] = [
            *("project_id", "ref_name", "head_changeset_id", "protected", "created_at", "updated_at"),
            "created_by_principal",
        ]
        tables["memory_conflicts"] = [
            *("conflict_id", "project_id", "base_changeset_id", "left_changeset_id", "right_changeset_id"),
            *("conflict_type", "severity", "summary", "details_json", "status", "created_at", "resolved_at"),
            "resolution_note",
        ]
        tables["memory_manifests"] = [
            *("manifest_id", "direction", "project_id", "ref_name", "head_changeset_id", "base_changeset_id"),
            *("resulting_changeset_id", "proposed_target_ref", "merge_proposal_id"),
            *("selected_memory_ids_json", "inclusion_reasons_json", "exclusion_reasons_json"),
            *("unresolved_conflicts_json", "session_id", "actor_id", "created_at"),
        ]
    if level >= 10:
        tables["memory_legacy_baselines"] = [
            *("project_id", "root_changeset_id", "event_ids_json", "captured_through", "created_at"),
        ]
        tables["context_assemblies"] += ["memory_manifest_id", "memory_head_changeset_id"]
    if level >= 11:
        tables["memory_conflicts"] += ["proposal_id"]
    if level >= 12:
        tables["memory_merge_authorizations"] = [
            *("nonce", "key_id", "project_id", "ref_name", "expected_head", "new_head", "merge_proposal_id"),
            *(
                "proposal_digest",
                "reviewer_principal",
                "merger_principal",
                "strategy",
                "expires_at",
                "consumed_at",
            ),
        ]
        tables["memory_protected_ref_advances"] = [
            *("advance_id", "project_id", "ref_name", "expected_head", "new_head", "merge_proposal_id"),
            *("proposal_digest", "reviewer_principal", "merger_principal", "strategy", "authorization_nonce"),
            "created_at",
        ]
    if level >= 13:
        tables["memory_changesets"] += ["request_digest"]
    return tables


class OriginalDb:
    """One database of a schema version, filled row by row; times go up by a second with each."""

    def __init__(self, path: Path, level: int = 13, project: str = "atlas") -> None:
        self.path = path
        self.level = level
        self.project = project
        self._seconds = 0
        self._columns = columns_at(level)
        self.connection = sqlite3.connect(path)
        for table, columns in self._columns.items():
            self.connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        for name in MIGRATIONS[:level]:
            self.put("schema_versions", name=name, applied="2026-01-01 00:00:00")
        if level >= 11:
            self.put("schema_versions", name=DIGESTS_V2, applied="2026-01-01 00:00:00")
        self.put("projects", project_id=project, name=project, created_at=self.time(), updated_at=self.time())
        self.put("agents", agent_id="agent-1", name="An agent", created_at=self.time())
        self.session()

    def time(self) -> str:
        """Gives the next second, as the original writes it."""
        self._seconds += 1
        minutes, seconds = divmod(self._seconds, 60)
        return f"2026-02-03 04:{minutes:02}:{seconds:02}.123456789 +0000 UTC"

    def put(self, table: str, **values: Any) -> None:
        """Inserts a row; what the schema version does not have is left out."""
        named = {name: value for name, value in values.items() if name in self._columns[table]}
        marks = ", ".join("?" * len(named))
        self.connection.execute(
            f"INSERT INTO {table} ({', '.join(named)}) VALUES ({marks})", tuple(named.values())
        )
        self.connection.commit()

    def close(self) -> Path:
        """Closes the file and gives its path."""
        self.connection.close()
        return self.path

    def session(self, session_id: str = "session-1", **more: Any) -> str:
        """Adds a session of the agent."""
        values = {
            "agent_id": "agent-1",
            "project_id": self.project,
            "state": "active",
            "started_at": self.time(),
        }
        self.put("sessions", session_id=session_id, session_key=f"key-of-{session_id}", **(values | more))
        return session_id

    def event(self, content: str = "seen", event_id: str | None = None, **more: Any) -> str:
        """Adds an event and gives its id."""
        name = event_id or str(uuid.uuid4())
        values = {
            "session_id": "session-1",
            "project_id": self.project,
            "event_type": "log",
            "created_at": self.time(),
        }
        self.put("events", event_id=name, content=content, **(values | more))
        return name

    def root(self, *, baseline: Sequence[str] | None = None) -> str:
        """Begins the project: its root, its baseline and its protected ref."""
        root = self.changeset("refs/shared/main", [], [], author="system", key=ROOT_KEY, actor_id="system")
        if self.level >= 10:
            events = [
                name
                for (name,) in self.connection.execute(
                    "SELECT event_id FROM events ORDER BY created_at, event_id"
                )
            ]
            ids = json.dumps(events if baseline is None else list(baseline))
            at = self.time()
            self.put(
                "memory_legacy_baselines",
                project_id=self.project,
                root_changeset_id=root,
                event_ids_json=ids,
                captured_through=at,
                created_at=at,
            )
        self.ref("refs/shared/main", root, protected=1, by="system")
        return root

    def changeset(
        self,
        ref_name: str,
        parents: Sequence[str],
        ops: Sequence[Op],
        *,
        author: str = "ann",
        key: str | None = None,
        evidence: Sequence[Op] = (),
        algorithm: str = "v2",
        changeset_id: str | None = None,
        **names: str,
    ) -> str:
        """Adds a changeset with its digest and gives its id; no ref moves."""
        made = changeset_id or _uuid7(self._seconds)
        view = {
            "schema_version": "memory_git/v1",
            "project_id": self.project,
            "ref_name": ref_name,
            "parent_ids": (sorted(parents) if algorithm == "v1" else list(parents)) or None,
            "author_principal": author,
            **{name: names.get(name, "") for name in _NAMES},
            "message": f"work of {author}",
            "idempotency_key": key or made,
            "ops": [_op_view(place, op) for place, op in enumerate(ops)],
            "evidence": list(evidence),
            "verification": [],
        }
        self.put(
            "memory_changesets",
            **{**view, "changeset_id": made, "created_at": self.time()},
            parent_ids_json=json.dumps(list(parents)),
            evidence_json=json.dumps(list(evidence)),
            verification_json="[]",
            integrity_digest=digest_of(view),
            request_digest="0" * 64,
        )
        for place, op in enumerate(ops):
            self.put(
                "memory_changeset_ops",
                changeset_id=made,
                ordinal=place,
                op_type=op["op_type"],
                target_event_id=op.get("target_event_id"),
                resulting_event_id=op.get("resulting_event_id"),
                payload_json=json.dumps(op.get("payload", {})),
            )
        return made

    def ref(self, name: str, head: str, *, protected: int = 0, by: str | None = "ann") -> None:
        """Puts a ref at a head, made or moved."""
        found = self.connection.execute(
            "SELECT 1 FROM memory_refs WHERE project_id = ? AND ref_name = ?", (self.project, name)
        ).fetchone()
        if found:
            self.connection.execute(
                "UPDATE memory_refs SET head_changeset_id = ?, updated_at = ? WHERE project_id = ? AND ref_name = ?",
                (head, self.time(), self.project, name),
            )
            self.connection.commit()
            return
        at = self.time()
        self.put(
            "memory_refs",
            project_id=self.project,
            ref_name=name,
            head_changeset_id=head,
            protected=protected,
            created_at=at,
            updated_at=at,
            created_by_principal=by,
        )

    def advance(self, before: str, after: str, strategy: str = "fast_forward") -> str:
        """Moves the shared ref by a recorded authorization and gives its nonce."""
        nonce = uuid.uuid4().hex
        values = {
            "project_id": self.project,
            "ref_name": "refs/shared/main",
            "expected_head": before,
            "new_head": after,
            "merge_proposal_id": str(uuid.uuid4()),
            "proposal_digest": "a" * 64,
            "reviewer_principal": "rev",
            "merger_principal": "mer",
            "strategy": strategy,
        }
        if self.level >= 12:
            at = self.time()
            self.put(
                "memory_merge_authorizations", nonce=nonce, key_id="", expires_at=at, consumed_at=at, **values
            )
            self.put(
                "memory_protected_ref_advances",
                advance_id=_uuid7(self._seconds),
                authorization_nonce=nonce,
                created_at=self.time(),
                **values,
            )
        self.ref("refs/shared/main", after)
        return nonce

    def manifest(self, head: str, *names: str, ref_name: str = "refs/shared/main", **more: Any) -> str:
        """Adds an input manifest of some memories and gives its id."""
        made = _uuid7(self._seconds)
        values = {
            "direction": "input",
            "project_id": self.project,
            "ref_name": ref_name,
            "head_changeset_id": head,
            "selected_memory_ids_json": json.dumps(names),
            "inclusion_reasons_json": json.dumps(dict.fromkeys(names, "recent")),
            "exclusion_reasons_json": "{}",
            "unresolved_conflicts_json": "[]",
            "created_at": self.time(),
        }
        self.put("memory_manifests", manifest_id=made, **(values | more))
        return made


def add(memory_id: str, content: str, **payload: Any) -> Op:
    """Gives an op that adds a memory."""
    return {"op_type": "add_memory", "payload": {"memory_id": memory_id, "content": content, **payload}}


def correct(target: str, result: str | None = None, **payload: Any) -> Op:
    """Gives an op that corrects a memory, in place or by a successor."""
    op: dict[str, Any] = {"op_type": "correct_memory", "target_event_id": target, "payload": payload}
    return op if result is None else {**op, "resulting_event_id": result}


def digest_of(view: Mapping[str, Any]) -> str:
    """Gives the digest of a changeset's view: keys sorted, ops in their own order, marks of HTML escaped."""
    parts = [f"{json.dumps(name)}:{_json(view[name])}" for name in sorted(view)]
    return hashlib.sha256(("{" + ",".join(parts) + "}").encode()).hexdigest()


def _op_view(place: int, op: Op) -> dict[str, Any]:
    view: dict[str, Any] = {"ordinal": place, "op_type": op["op_type"]}
    for name in ("target_event_id", "resulting_event_id", "payload"):
        if op.get(name):
            view[name] = op[name] if name != "payload" else dict(sorted(op[name].items()))
    return view


def _json(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _uuid7(second: int) -> str:
    """Gives a UUIDv7 of a second; two of one second differ."""
    random = uuid.uuid4().hex
    return f"{0x019C0000 + second:08x}-0000-7{random[:3]}-8{random[3:6]}-{random[6:18]}"
