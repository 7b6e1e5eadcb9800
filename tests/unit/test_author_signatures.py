"""A changeset that its author signed: prepared by the store, rebuilt and signed by the client, and refused when anything differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from signing import signed

from memory_git.domain.author_signature import holds
from memory_git.domain.canonical import digest
from memory_git.domain.errors import Clash, Invalid, Refused
from memory_git.domain.ids import SHARED_MAIN
from memory_git.lethe.sources import Sources
from memory_git.lethe.store import LetheStore

BRANCH = "refs/agents/builder/main"
Json = dict[str, Any]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = LetheStore.open(tmp_path / "lethe.db", merge_keys=None)
    opened.init_project("atlas")
    yield opened
    opened.close()


def request(store: LetheStore, **more: Any) -> Json:
    head = store.resolve_ref("atlas", SHARED_MAIN)["head_changeset_id"]
    return {
        "project_id": "atlas",
        "ref_name": BRANCH,
        "parent_ids": [head],
        "author_principal": "builder",
        "message": "work",
        "idempotency_key": "1",
        "ops": [
            {"op_type": "add_memory", "payload": {"content": "Port 1."}},
            {"op_type": "add_memory", "payload": {"memory_id": "named", "content": "Port 2."}},
        ],
        "expected_head": head,
        "advance_ref": True,
        "create_ref_if_missing": True,
        **more,
    }


def rebuilt(asked: Json, prepared: Json) -> Json:
    """Gives the authored view as a client makes it of what it asked for (FORMAT 6.1, 6.8): digests by digests."""
    salts, fresh = prepared["salts"], list(prepared["memory_ids"])
    ops = []
    for op in asked["ops"]:
        ops.append(
            {
                "op_type": op["op_type"],
                "target_event_id": None,
                "resulting_event_id": op["payload"].get("memory_id") or fresh.pop(0),
                "payload": op["payload"],
            }
        )
    view = prepared["view"]
    return view | {
        "message_digest": digest([salts["message"], asked["message"]]),
        "op_digests": [digest([salt, op]) for salt, op in zip(salts["ops"], ops, strict=True)],
        "evidence_digests": [],
        "verification_digests": [],
        "idempotency_key": asked["idempotency_key"],
        "author_principal": asked["author_principal"],
        "ref_name": asked["ref_name"],
    }


def test_what_the_client_rebuilds_and_signs_is_what_is_stored_and_served(store: LetheStore) -> None:
    asked = request(store)
    prepared = store.prepare_changeset(asked)
    assert prepared["view"]["parents"][0]["changeset_id"] == asked["parent_ids"][0]
    assert digest(rebuilt(asked, prepared)) == prepared["authored_digest"]
    made, replayed = store.create_changeset({**asked, **signed(prepared)})
    assert (made["authored_digest"], replayed) == (prepared["authored_digest"], False)
    assert made["ops"][0]["resulting_event_id"] == prepared["memory_ids"][0]
    assert [op["op_salt"] for op in made["ops"]] == prepared["salts"]["ops"]
    shown = store.get_changeset(made["changeset_id"])
    assert shown["author_signature"] == signed(prepared)["author_signature"]
    assert holds(shown["author_signature"], shown["authored_digest"])
    assert store.verify("atlas")["faults"] == []


def test_preparing_stores_nothing(store: LetheStore) -> None:
    store.prepare_changeset(request(store))
    assert [ref["ref_name"] for ref in store.list_refs("atlas")] == [SHARED_MAIN]


def test_the_same_signed_request_again_is_answered_with_the_first_and_another_signature_is_not(
    store: LetheStore,
) -> None:
    asked = request(store)
    whole = {**asked, **signed(store.prepare_changeset(asked))}
    made, _ = store.create_changeset(whole)
    again, replayed = store.create_changeset(whole)
    assert (again, replayed) == (store.get_changeset(made["changeset_id"]), True)
    other = signed(whole["authored"], Ed25519PrivateKey.generate())
    for different in ({**asked, **other}, asked):
        with pytest.raises(Clash) as refused:
            store.create_changeset(different)
        assert refused.value.code == "idempotency_mismatch"


def _other_salt(whole: Json) -> None:
    whole["authored"]["salts"]["message"] = "0" * 32


def _other_id(whole: Json) -> None:
    whole["authored"]["memory_ids"] = ["018f0000-0000-7000-8000-000000000000"]


def _later(whole: Json) -> None:
    whole["authored"]["expires_at"] = "2999-01-01T00:00:00.000000Z"


def _other_view(whole: Json) -> None:
    whole["authored"]["view"]["author_principal"] = "mallory"


def _without_seal(whole: Json) -> None:
    del whole["authored"]["seal"]


def _more(whole: Json) -> None:
    whole["authored"]["more"] = 1


@pytest.mark.parametrize("change", [_other_salt, _other_id, _later, _other_view, _without_seal, _more])
def test_what_the_store_did_not_hand_out_is_refused(
    store: LetheStore, change: Callable[[Json], None]
) -> None:
    asked = request(store)
    whole = {**asked, **signed(store.prepare_changeset(asked))}
    change(whole)
    assert refusal(store, whole).code == "bad_preparation"


@pytest.mark.parametrize(
    "more",
    [
        {"message": "other work"},
        {"author_principal": "mallory"},
        {"ref_name": "refs/agents/mallory/main"},
        {"idempotency_key": "2"},
        {"ops": [{"op_type": "add_memory", "payload": {"content": "Port 1."}}]},
        {
            "ops": [
                {"op_type": "add_memory", "payload": {"content": "Port 9."}},
                {"op_type": "add_memory", "payload": {"memory_id": "named", "content": "Port 2."}},
            ]
        },
        {"evidence": [{"kind": "log", "source": "x"}]},
        {"session_id": "s"},
    ],
)
def test_a_request_that_says_something_else_than_what_was_signed_is_refused(
    store: LetheStore, more: Json
) -> None:
    asked = request(store)
    whole = {**asked, **signed(store.prepare_changeset(asked)), **more}
    assert refusal(store, whole).facts["reason"] == "request"


def test_a_signature_of_another_digest_or_key_is_refused(store: LetheStore) -> None:
    asked = request(store)
    prepared = store.prepare_changeset(asked)
    foreign = Ed25519PrivateKey.generate().public_key().public_bytes_raw().hex()
    for more in ({"public_key": foreign}, {"key_id": "another"}, {"signature": "0" * 128}):
        assert refusal(store, {**asked, **signed(prepared, **more)}).code == "bad_author_signature"
    assert [ref["ref_name"] for ref in store.list_refs("atlas")] == [SHARED_MAIN]


@pytest.mark.parametrize(
    "more",
    [
        {"author_signature": None},
        {"authored": None},
        {"authored": "text"},
        {"author_signature": {"algorithm": "ed25519"}},
        {"author_signature": ["ed25519"]},
    ],
)
def test_a_preparation_and_a_signature_come_together_in_their_form(store: LetheStore, more: Json) -> None:
    asked = request(store)
    whole = {**asked, **signed(store.prepare_changeset(asked)), **more}
    found = refusal(store, whole)
    assert found.code == "invalid_changeset"
    assert all(fault["field"].startswith("author") for fault in found.facts["faults"])


def test_a_preparation_ends_after_a_quarter_of_an_hour(tmp_path: Path) -> None:
    late = Sources()
    clock = [late.now()]
    store = LetheStore.open(
        tmp_path / "lethe.db", merge_keys=None, sources=replace(late, now=lambda: clock[0])
    )
    store.init_project("atlas")
    asked = request(store)
    whole = {**asked, **signed(store.prepare_changeset(asked))}
    clock[0] += timedelta(minutes=15)
    assert refusal(store, whole).facts["reason"] == "expired"
    clock[0] -= timedelta(seconds=1)
    store.create_changeset(whole)
    store.close()


def test_a_preparation_of_another_project_is_refused(store: LetheStore) -> None:
    asked = request(store)
    whole = {**asked, **signed(store.prepare_changeset(asked))}
    head = store.init_project("other")["changeset"]["changeset_id"]
    moved = {**whole, "project_id": "other", "parent_ids": [head], "expected_head": head}
    assert refusal(store, moved).code == "bad_preparation"


def test_faults_of_the_request_are_told_before_anything_is_signed(store: LetheStore) -> None:
    with pytest.raises(Invalid) as refused:
        store.prepare_changeset(request(store, ops=[{"op_type": "add_memory", "payload": {}}]))
    assert refused.value.code == "invalid_changeset"


def refusal(store: LetheStore, whole: Json) -> Refused:
    with pytest.raises(Refused) as refused:
        store.create_changeset(whole)
    return refused.value
