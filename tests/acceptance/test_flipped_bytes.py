"""One byte flipped in every column of every table of lethe.db: `verify` finds it, or docs/FORMAT.md §11 says why it can't."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from signing import create_signed

from memory_git.domain.envelope import MergeKeys, MergeRequest, issue, sign
from memory_git.domain.errors import Refused
from memory_git.domain.ids import SHARED_MAIN
from memory_git.domain.project_policy import ProjectPolicy
from memory_git.domain.proposals import state_digest
from memory_git.lethe.store import LetheStore

pytestmark = pytest.mark.slow
KEYS = MergeKeys((("k1", "a secret of at least thirty-two characters"),))
PROJECT = "flips"

# FORMAT §11, by table; a whole table stands under "*".
NOT_COVERED: dict[str, set[str]] = {
    "changeset": {"request_digest"},
    "conflict": {"status", "outcome", "resolution_note", "resolved_by", "created_at", "updated_at"},
    "conflict_proposal": {"*"},
    "assembly": {"verdict", "note", "created_at", "session_key", "seq"},
    "project": {"number", "cursor_salt", "created_at"},
    "merge_nonce": {"at", "proposal_id"},
    "memory_protected_ref_advances": {"advance_id", "at"},
}
SHADOW_TABLES = ("version_words",)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flips") / "lethe.db"
    store = LetheStore.open(path, merge_keys=KEYS)
    _fill(store)
    assert store.verify(PROJECT)["faults"] == []
    store.close()
    return path


def _commit(store: LetheStore, ref: str, parents: list[str], author: str, ops: list[Any]) -> str:
    request = _request(ref, parents, author, ops)
    return str(store.create_changeset(request)[0]["changeset_id"])


def _request(ref: str, parents: list[str], author: str, ops: list[Any]) -> dict[str, Any]:
    return {
        "project_id": PROJECT,
        "ref_name": ref,
        "parent_ids": parents,
        "author_principal": author,
        "message": "A message",
        "idempotency_key": secrets.token_hex(8),
        "ops": ops,
        "expected_head": parents[0],
        "advance_ref": True,
        "create_ref_if_missing": True,
        "actor_id": author,
        "evidence": [{"kind": "log", "source": "a build"}],
        "verification": [{"kind": "review", "note": "read"}],
    }


def _merge(store: LetheStore, expected: str, new: str, strategy: Any) -> None:
    request = MergeRequest(PROJECT, SHARED_MAIN, expected, new, "a-proposal", "reviewer")
    state = {"judged": {"policy": ProjectPolicy().to_json()}, "reviews": []}
    envelope = issue(
        request,
        proposal_digest=state_digest(state),
        merger_principal="reviewer",
        strategy=strategy,
        now=datetime.now(UTC),
        nonce=secrets.token_hex(16),
    )
    store.merge_ref(
        PROJECT,
        {
            "ref_name": SHARED_MAIN,
            "expected_head": expected,
            "new_head": new,
            "merge_proposal_id": "a-proposal",
            "reviewer_principal": "reviewer",
            "merge_authorization": sign(envelope, KEYS),
            "proposal_state": state,
        },
    )


def _fill(store: LetheStore) -> None:
    """Leaves at least one row in every table, every column of it set in some row."""
    for number in range(2):
        store.append_event(
            PROJECT, {"event_type": "note", "content": f"event {number}", "memory_id": "m", "actor": "a"}
        )
    root = store.init_project(PROJECT)["changeset"]["changeset_id"]

    def decision(name: str, content: str) -> Any:
        payload = {
            "memory_id": name,
            "content": content,
            "kind": "decision",
            "scope": "s",
            "subject": "deploying",
        }
        return {"op_type": "add_memory", "payload": payload}

    fact = {"op_type": "add_memory", "payload": {"memory_id": "fact", "content": "The port is 1."}}
    edge = {
        "op_type": "add_relationship",
        "payload": {"kind": "about", "from_memory_id": "fact", "to_memory_id": "one"},
    }
    private = {
        "op_type": "add_memory",
        "payload": {"content": "Mine.", "visibility": "private", "owner_principal": "a"},
    }
    first = _commit(
        store, "refs/agents/a/main", [root], "a", [decision("one", "We deploy by hand."), fact, edge]
    )
    tag = {"op_type": "correct_memory", "target_event_id": "fact", "payload": {"tags": ["network"]}}
    tagged = _commit(store, "refs/agents/b/main", [first], "b", [tag])
    create_signed(store, _request("refs/agents/s/main", [root], "s", [fact]))
    second = _commit(store, "refs/agents/b/main", [tagged], "b", [decision("two", "We deploy by robots.")])
    _commit(store, "refs/agents/a/private", [root], "a", [private])
    correct = {
        "op_type": "correct_memory",
        "target_event_id": "fact",
        "payload": {"content": "The port is 2."},
    }
    gone = {"op_type": "add_memory", "payload": {"memory_id": "gone", "content": "Erase me."}}
    third = _commit(store, "refs/agents/a/main", [first], "a", [correct, gone])
    conflicts = store.plan_merge(PROJECT, third, second)["conflicts"]
    store.persist_conflicts(PROJECT, "a-proposal", conflicts)
    blocking = next(item for item in conflicts if item["severity"] == "blocking")
    store.resolve_conflict(
        PROJECT,
        blocking["conflict_id"],
        outcome="both",
        resolution_note="they stand together",
        principal="reviewer",
    )
    _merge(store, root, third, "fast_forward")
    merged = _commit(store, "refs/proposals/x", [third, second], "charon", [])
    _merge(store, third, merged, "merge_commit")
    context = store.context(PROJECT, {"ref_name": SHARED_MAIN, "create_manifest": True})
    digest = context["memories"][0]["record_digest"]
    assembly = store.record_assembly(
        "a session",
        {
            "project_id": PROJECT,
            "manifest_id": context["manifest_id"],
            "head_changeset_id": merged,
            "items": [{"memory_id": "one", "content_digest": digest}],
        },
    )
    store.give_feedback(assembly["assembly_id"], "good", "a note")
    store.redact(PROJECT, "gone", principal="officer", reason="asked for")


def _tables(connection: apsw.Connection) -> Iterator[str]:
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"):
        table = str(name)
        if not table.startswith((*SHADOW_TABLES, "sqlite_")):
            yield table


def _covered_columns(connection: apsw.Connection) -> Iterator[tuple[str, str, str]]:
    for table in _tables(connection):
        skipped = NOT_COVERED.get(table, set())
        for _, column, _, _, _, _ in connection.execute(f"PRAGMA table_info({table})").fetchall():
            if "*" not in skipped and column not in skipped:
                key = "id" if table in ("changeset", "version", "edge", "node") else ""
                yield table, str(column), key


def _flipped(value: Any) -> Any:
    """Changes one byte: of a text or blob one in the middle, of a number the lowest bit."""
    if isinstance(value, int):
        return value ^ 1
    if isinstance(value, bytes):
        at = len(value) // 2
        return value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
    at = len(value) // 2
    return value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :]


def _flip(editing: apsw.Connection, table: str, column: str) -> tuple[bool, bool]:
    """Flips a byte of the first value whose flipped form is not taken; says whether any was set, and whether one was flipped."""
    values = editing.execute(
        f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL AND {column} <> '' ORDER BY {column}"
    ).fetchall()
    for (value,) in values:
        editing.execute(
            f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {column} = ?", (_flipped(value), value)
        )
        if editing.changes():
            return True, True
    return bool(values), False


def _faults(path: Path) -> Any:
    try:
        store = LetheStore.open(path, merge_keys=KEYS)
    except Refused as error:
        return [error.code]
    try:
        return store.verify(PROJECT)["faults"]
    except Refused as error:
        return [error.code]
    finally:
        store.close()


def test_every_flipped_byte_of_a_covered_column_is_found(database: Path, tmp_path: Path) -> None:
    connection = apsw.Connection(str(database))
    columns = list(_covered_columns(connection))
    connection.close()
    assert len(columns) > 80
    missed, never_set = [], []
    for table, column, _ in columns:
        copy = tmp_path / "copy.db"
        shutil.copy(database, copy)
        editing = apsw.Connection(str(copy))
        is_set, is_flipped = _flip(editing, table, column)
        editing.close()
        if not is_set:
            never_set.append(f"{table}.{column}")
        elif not (is_flipped and _faults(copy)):
            missed.append(f"{table}.{column}")
    assert missed == []
    assert never_set == []
