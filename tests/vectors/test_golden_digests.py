"""Digests of our own formats, written once: any change of encoding breaks the build (3-model, digests; 4-history, conflicts).

Each value is held against a recomputation with rfc8785 and hashlib alone, so that the file can't just repeat the code.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from memory_git.domain import chain
from memory_git.domain.canonical import digest, hmac_hex
from memory_git.domain.changeset import (
    Salts,
    authored_view,
    integrity_digest,
    op_digest,
    read_request,
    request_digest,
    salted_digest,
)
from memory_git.domain.conflict import Conflict, Party
from memory_git.domain.conflicts import CONFLICT_TYPES, conflict_id
from memory_git.domain.envelope import Envelope, MergeKeys, sign
from memory_git.domain.proposals import judged_digest, outcome_digest, proposal_digest, state_digest
from memory_git.domain.record import Edge, attachment_digest, edge_digest, record_digest, record_from_json
from memory_git.domain.text import fold
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
    controls = {name: row["request"].get(name) or absent for name, absent in CONTROLS.items()}
    assert request_digest(authored, request) == row["request_digest"] == sha256([authored, controls])


CONTROLS = {"expected_head": None, "advance_ref": False, "create_ref_if_missing": False, "protected": False}


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


@rows("folded")
def test_a_key_is_folded_as_the_format_says(row: dict[str, Any]):
    """FORMAT 9.8, step by step."""
    plain = "".join(plainly(sign) for sign in row["text"])
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", plain).casefold())
    for quote, plain_quote in zip("\u2018\u2019\u201c\u201d\u2013\u2014", "''\"\"--", strict=True):
        folded = folded.replace(quote, plain_quote)
    assert fold(row["text"]) == row["folded"] == " ".join(folded.split())


def plainly(sign: str) -> str:
    form = unicodedata.decomposition(sign).partition(" ")[0]
    if form == "<super>" and sign.isdigit():
        return f"^{unicodedata.digit(sign)}"
    if form == "<fraction>":
        return f" {sign}"
    return "" if unicodedata.category(sign) == "Cf" else sign


@rows("texts")
def test_a_salted_text_has_its_digest(row: dict[str, Any]):
    expected = sha256([row["salt"], row["value"]])
    assert salted_digest(row["salt"], row["value"]) == row["digest"] == expected


@rows("links")
def test_a_row_of_a_chain_has_its_link(row: dict[str, Any]):
    linked = rfc8785.dumps(["memory_git/chain/v1", row["previous"], row["view"]])
    if "key" in row:
        key = row["key"].encode()
        assert chain.link_keyed(key, row["previous"], row["view"]) == row["link"]
        assert row["link"] == hmac.new(key, linked, hashlib.sha256).hexdigest()
    else:
        assert chain.link(row["previous"], row["view"]) == row["link"]
        assert row["link"] == hashlib.sha256(linked).hexdigest()


@rows("identities")
def test_a_conflict_has_its_identity_digest(row: dict[str, Any]):
    sides = [tuple(Party("m", digest, "", None) for digest in row[name]) for name in ("left", "right")]
    conflict = Conflict(row["conflict_type"], "blocking", row["identity"], ("m",), *sides, "detail")
    assert conflict.identity_digest() == row["identity_digest"]
    swapped = Conflict(row["conflict_type"], "blocking", row["identity"], ("m",), *sides[::-1], "detail")
    is_symmetric = row["conflict_type"] == "concurrent_change"
    assert (swapped.identity_digest() == row["identity_digest"]) is is_symmetric


@rows("judged")
def test_what_was_judged_has_its_digests(row: dict[str, Any]):
    judged = judged_digest(row["judged"])
    assert judged == row["judged_digest"] == sha256(["memory_git/judged/v1", row["judged"]])
    heads = ("base_changeset_id", "head_changeset_id", "selected_ops")
    outcome = {name: value for name, value in row["judged"].items() if name not in heads}
    assert (
        outcome_digest(row["judged"]) == row["outcome_digest"] == sha256(["memory_git/outcome/v1", outcome])
    )
    state = {"judged": row["judged"], "reviews": row["reviews"]}
    assert state_digest(state) == proposal_digest(judged, row["reviews"]) == row["proposal_digest"]
    assert row["proposal_digest"] == sha256({"judged_digest": judged, "reviews": row["reviews"]})


@rows("envelopes")
def test_a_merge_authorization_has_its_signature(row: dict[str, Any]):
    wire = sign(Envelope(**row["envelope"]), MergeKeys((("k1", row["secret"]),)))
    assert json.loads(wire) == {"envelope": row["envelope"], "signature": row["signature"]}
    canonical = rfc8785.dumps(row["envelope"])
    assert row["signature"] == hmac.new(row["secret"].encode(), canonical, hashlib.sha256).hexdigest()


@rows("tokens")
def test_a_token_is_stored_as_its_keyed_digest(row: dict[str, Any]):
    text = f"obol/v1\0{row['obol_id']}\0{row['secret']}"
    assert hmac_hex(row["key"].encode(), text.encode()) == row["stored"]
    assert row["stored"] == hmac.new(row["key"].encode(), text.encode(), hashlib.sha256).hexdigest()
