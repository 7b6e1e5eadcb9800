"""Digests of our own formats, written once: any change of encoding breaks the build (3-model, digests; 4-history, conflicts).

Each value is held against a recomputation with rfc8785 and hashlib alone, so that the file can't just repeat the code.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from memory_git.domain.canonical import digest
from memory_git.domain.changeset import (
    Salts,
    authored_view,
    integrity_digest,
    op_digest,
    read_request,
    request_digest,
)
from memory_git.domain.conflicts import CONFLICT_TYPES, conflict_id
from memory_git.domain.record import Edge, attachment_digest, edge_digest, record_digest, record_from_json
from memory_git.domain.validate import check_ops

GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("golden_digests.json").read_text("utf-8"))
OPTIONAL = (
    "persona_id",
    "actor_id",
    "surface",
    "model",
    "environment",
    "session_id",
    "topic_id",
    "context_manifest_id",
)


def sha256(value: Any) -> str:
    return hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def rows(section: str) -> Any:
    found = GOLDEN[section]
    return pytest.mark.parametrize("row", found, ids=[row["name"] for row in found])


@rows("records")
def test_a_record_has_its_digest(row: dict[str, Any]):
    record = record_from_json(row["record"])
    assert record.to_json() == row["record"]
    assert record_digest(row["salt"], record) == row["digest"] == sha256([row["salt"], row["record"]])


@rows("ops")
def test_an_op_is_normalized_and_has_its_digest(row: dict[str, Any]):
    (op,), faults = check_ops([row["raw"]], iter(()))
    assert faults == []
    assert op.digest_view() == row["view"]
    assert op_digest(row["salt"], op) == row["digest"] == sha256([row["salt"], row["view"]])


@rows("attachments")
def test_an_attachment_has_its_digest(row: dict[str, Any]):
    expected = sha256([row["salt"], row["attachment"]])
    assert attachment_digest(row["salt"], row["attachment"]) == row["digest"] == expected


@rows("edges")
def test_a_relationship_has_its_digest(row: dict[str, Any]):
    edge = Edge(**row["edge"])
    expected = sha256([edge.from_memory_id, edge.kind, edge.to_memory_id])
    assert edge_digest(edge) == row["digest"] == expected


@rows("changesets")
def test_a_changeset_has_its_three_digests(row: dict[str, Any]):
    request = read_request(row["request"], iter(()))
    salts = Salts(
        row["salts"]["message"],
        row["salts"]["evidence"],
        row["salts"]["verification"],
        tuple(row["salts"]["ops"]),
    )
    authored = digest(authored_view(request, row["parent_digests"], salts))
    assert request.faults == ()
    assert authored == row["authored_digest"] == sha256(expected_view(row))
    stamps = [row[name] for name in ("changeset_id", "created_at", "state_root")]
    expected = sha256(
        dict(
            zip(
                ("authored_digest", "changeset_id", "created_at", "state_root"),
                [authored, *stamps],
                strict=True,
            )
        )
    )
    assert integrity_digest(authored, *stamps) == row["integrity_digest"] == expected
    stated = {name: value for name, value in row["request"].items() if value not in (None, [], False, "")}
    assert request_digest(row["request_salt"], request) == row["request_digest"]
    assert row["request_digest"] == sha256([row["request_salt"], stated])


def expected_view(row: dict[str, Any]) -> dict[str, Any]:
    request, salts = row["request"], row["salts"]
    parents = zip(request["parent_ids"], row["parent_digests"], strict=True)
    return {
        "schema_version": "memory_git/v1",
        "project_id": request["project_id"],
        "ref_name": request["ref_name"],
        "parents": [{"changeset_id": name, "integrity_digest": integrity} for name, integrity in parents],
        "author_principal": request["author_principal"],
        "idempotency_key": request["idempotency_key"],
        "message_digest": sha256([salts["message"], request["message"]]),
        "op_digests": [
            sha256([salt, view]) for salt, view in zip(salts["ops"], row["op_views"], strict=True)
        ],
        "evidence_digests": [sha256([salts["evidence"], item]) for item in request.get("evidence", [])],
        "verification_digests": [
            sha256([salts["verification"], item]) for item in request.get("verification", [])
        ],
        **{name: request.get(name) for name in OPTIONAL},
    }


@rows("conflicts")
def test_a_conflict_has_its_id(row: dict[str, Any]):
    heads = row["left"], row["right"]
    found = conflict_id(row["project_id"], row["base"], *heads, row["conflict_type"], row["identity"])
    is_symmetric = row["conflict_type"] not in ("trust_downgrade", "boundary_violation", "scope_flow")
    left, right = sorted(heads) if is_symmetric else heads
    view = {name: row[name] for name in ("project_id", "base", "conflict_type", "identity")}
    canonical = rfc8785.dumps({**view, "left": left, "right": right})
    expected = hashlib.sha256(b"lethe/memory-conflict/v1\n" + canonical).hexdigest()
    assert found == row["conflict_id"] == expected


def test_every_conflict_type_has_a_golden_id():
    assert {row["conflict_type"] for row in GOLDEN["conflicts"]} == CONFLICT_TYPES
