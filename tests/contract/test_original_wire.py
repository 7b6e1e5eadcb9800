"""What clients of the original send and read, against our server (5-lethe, HTTP API; docs/COMPATIBILITY.md).

The requests are ours, written from what its command line and its plugin were seen to send.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from memory_git.domain.envelope import MergeKeys
from memory_git.domain.ids import SHARED_MAIN
from memory_git.http.lethe_app import create_lethe_app
from memory_git.http.serving import running
from memory_git.lethe.store import LetheStore

API_KEY = "the-key-of-this-test"
MERGE_SECRET = "a-merge-key-of-more-than-32-characters"
BRANCH = "refs/agents/cli/main"
MEMORY = "/api/memory"


@pytest.fixture
def client(place: Path | str) -> Iterator[httpx.Client]:
    keys = MergeKeys((("k1", MERGE_SECRET),))
    store = LetheStore.open(place, merge_keys=keys)
    app = create_lethe_app(store, api_key=API_KEY)
    headers = {"Authorization": f"Bearer {API_KEY}"}
    with (
        running(app, on_stop=store.feed.close) as where,
        httpx.Client(base_url=where.url, headers=headers) as client,
    ):
        yield client
    store.close()


def begin(client: httpx.Client) -> str:
    head: str = client.post(f"{MEMORY}/atlas/legacy-root").json()["changeset"]["changeset_id"]
    return head


def commit(client: httpx.Client, head: str, key: str, *ops: dict[str, Any], ref: str = BRANCH) -> str:
    """Commits as a client of the original does: an op has its ordinal, and what is empty is left out."""
    if (
        head
        == client.get(f"{MEMORY}/atlas/refs/resolve", params={"name": SHARED_MAIN}).json()[
            "head_changeset_id"
        ]
    ):
        made = {"ref_name": ref, "head_changeset_id": head, "principal": ""}
        assert client.post(f"{MEMORY}/atlas/branches", json=made).status_code == 201
    request = {
        "project_id": "atlas",
        "ref_name": ref,
        "parent_ids": [head],
        "author_principal": key,
        "message": f"work {key}",
        "idempotency_key": key,
        "ops": [{"ordinal": place, **op} for place, op in enumerate(ops)],
        "expected_head": head,
        "advance_ref": True,
    }
    answer = client.post(f"{MEMORY}/changesets", json=request)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["changeset_id"])


def add(memory_id: str, content: str, **payload: Any) -> dict[str, Any]:
    return {"op_type": "add_memory", "payload": {"memory_id": memory_id, "content": content, **payload}}


def correct(memory_id: str, content: str) -> dict[str, Any]:
    return {"op_type": "correct_memory", "target_event_id": memory_id, "payload": {"content": content}}


def test_what_the_command_line_reads_of_a_ref_is_there(client: httpx.Client) -> None:
    root = begin(client)
    found = client.get(f"{MEMORY}/atlas/refs/resolve", params={"name": SHARED_MAIN}).json()
    assert found["ref_name"] == SHARED_MAIN
    assert (found["head_changeset_id"], found["protected"]) == (root, True)
    assert client.get(f"{MEMORY}/atlas/refs/resolve", params={"name": BRANCH}).status_code == 404


def test_what_the_command_line_reads_of_the_log_and_of_a_changeset_is_there(client: httpx.Client) -> None:
    root = begin(client)
    head = commit(client, root, "ann", add("m/one", "tabs", kind="decision"))
    page = client.get(f"{MEMORY}/atlas/changesets", params={"ref": BRANCH, "limit": "50"}).json()
    assert [(item["changeset_id"], item["parent_ids"]) for item in page["changesets"]] == [
        (head, [root]),
        (root, []),
    ]
    assert {"message", "author_principal", "created_at"} <= page["changesets"][0].keys()
    found = client.get(f"{MEMORY}/changesets/{head}").json()
    assert found["schema_version"] == "memory_git/v1"
    assert {"project_id", "ref_name", "actor_id", "idempotency_key", "integrity_digest"} <= found.keys()
    (op,) = found["ops"]
    assert (op["ordinal"], op["op_type"], op["payload"]["content"]) == (0, "add_memory", "tabs")


def test_a_branch_can_be_made_by_a_client_that_names_nobody(client: httpx.Client) -> None:
    made = {"ref_name": BRANCH, "head_changeset_id": begin(client), "principal": ""}
    answer = client.post(f"{MEMORY}/atlas/branches", json=made)
    assert (answer.status_code, answer.json()["ref_name"]) == (201, BRANCH)


def test_the_open_conflicts_of_a_diff_are_told_by_their_ids(client: httpx.Client) -> None:
    base, left, right = diverged(client)
    pair = {"base_changeset_id": base, "left_changeset_id": left, "right_changeset_id": right}
    found = client.post(f"{MEMORY}/atlas/conflicts/detect", json=pair).json()
    assert found["count"] == len(found["conflicts"]) > 0
    kept = client.post(
        f"{MEMORY}/atlas/conflicts/persist", json={"proposal_id": "p-1", "conflicts": found["conflicts"]}
    )
    assert kept.json() == {"persisted": found["count"], "proposal_id": "p-1"}
    listed = client.get(f"{MEMORY}/atlas/conflicts", params={"status": "open", "limit": 500}).json()
    assert listed["count"] == found["count"]
    diff = client.post(f"{MEMORY}/changesets/{left}/diff", json={"base_changeset_id": base}).json()
    assert diff["unresolved_conflicts"] == [item["conflict_id"] for item in diff["conflicts"]]
    assert diff["unresolved_conflicts"]
    ended = {"proposal_id": "p-1", "status": "canceled"}
    assert client.post(f"{MEMORY}/atlas/conflicts/retire", json=ended).json() == {
        "retired": found["count"],
        **ended,
    }


def diverged(client: httpx.Client) -> tuple[str, str, str]:
    base = commit(client, begin(client), "ann", add("m/one", "tabs"))
    for name in ("left", "right"):
        ref = {"ref_name": f"refs/topics/{name}", "head_changeset_id": base, "principal": "ann"}
        client.post(f"{MEMORY}/atlas/branches", json=ref)
    sides = [
        commit(client, base, name, correct("m/one", name), ref=f"refs/topics/{name}")
        for name in ("left", "right")
    ]
    return base, sides[0], sides[1]


def test_a_diff_with_an_empty_base_is_against_the_first_parent(client: httpx.Client) -> None:
    head = commit(client, begin(client), "ann", add("m/one", "tabs"))
    diff = client.post(f"{MEMORY}/changesets/{head}/diff", json={"base_changeset_id": ""})
    assert [item["summary"] for item in diff.json()["memories_added"]] == ["tabs"]


def test_a_context_has_the_fields_of_each_memory_at_the_top(client: httpx.Client) -> None:
    fields = {"kind": "decision", "scope": "style", "visibility": "shared", "tags": ["a"], "confidence": 0.5}
    head = commit(client, begin(client), "ann", add("m/one", "tabs", **fields))
    asked = {"ref_name": BRANCH, "query": "tabs", "limit": 12, "create_manifest": False}
    context = client.post(f"{MEMORY}/atlas/context", json=asked).json()
    (memory,) = context["memories"]
    assert {name: memory[name] for name in fields} == fields
    assert (memory["memory_id"], memory["content"], memory["status"]) == ("m/one", "tabs", "active")
    assert (memory["source"], memory["introduced_changeset_id"], memory["last_changeset_id"]) == (
        "memory_git",
        head,
        head,
    )
    assert (context["total_active"], context["projection_version"]) == (1, "memory-context/v1")


def test_a_context_of_no_named_ref_is_that_of_accepted_memory(client: httpx.Client) -> None:
    event = {"project_id": "atlas", "event_type": "log", "content": "from before"}
    client.post("/api/events", json=event)
    root = begin(client)
    for answer in (client.get(f"{MEMORY}/atlas/context"), client.post(f"{MEMORY}/atlas/context", json={})):
        context = answer.json()
        assert (context["ref_name"], context["head_changeset_id"]) == (SHARED_MAIN, root)
        assert [item["source"] for item in context["memories"]] == ["legacy_event"]


def test_a_context_is_asked_for_by_the_short_names_of_ref_and_head(client: httpx.Client) -> None:
    first = commit(client, begin(client), "ann", add("m/one", "tabs"))
    commit(client, first, "ben", add("m/two", "spaces"))
    found = client.get(f"{MEMORY}/atlas/context", params={"ref": BRANCH, "head": first, "query": ""})
    assert [item["memory_id"] for item in found.json()["memories"]] == ["m/one"]


def test_the_conflicts_of_a_context_are_told_by_their_ids(client: httpx.Client) -> None:
    begin(client)
    context = client.get(f"{MEMORY}/atlas/context").json()
    assert (context["unresolved_conflicts"], context["conflicts"]) == ([], [])


def pinned(head: str, *names: str, **more: Any) -> dict[str, Any]:
    return {
        "direction": "input",
        "project_id": "atlas",
        "ref_name": BRANCH,
        "head_changeset_id": head,
        "selected_memory_ids": list(names),
        "inclusion_reasons": dict.fromkeys(names, "selected"),
        "exclusion_reasons": {},
        "unresolved_conflicts": [],
        "session_id": "",
        "actor_id": "a",
        **more,
    }


def test_a_manifest_in_the_words_of_the_plugin_is_stored_with_the_digests_of_then(
    client: httpx.Client,
) -> None:
    head = commit(client, begin(client), "ann", add("m/one", "tabs"))
    answer = client.post(f"{MEMORY}/manifests", json=pinned(head, "m/one"))
    assert answer.status_code == 201, answer.text
    manifest_id = answer.json()["manifest_id"]
    commit(client, head, "ben", correct("m/one", "spaces"))
    again = client.get(f"{MEMORY}/manifests/{manifest_id}/reproduce").json()
    assert [item["record"]["content"] for item in again["memories"]] == ["tabs"]


@pytest.mark.parametrize(
    "more",
    [{"selected_memory_ids": ["m/none"]}, {"selected_memory_ids": [7]}, {"kind": "input"}, {"selected": 3}],
    ids=["a memory that is not there", "no name", "both words for one thing", "no list"],
)
def test_a_manifest_that_history_does_not_bear_out_is_refused(client: httpx.Client, more: Any) -> None:
    head = commit(client, begin(client), "ann", add("m/one", "tabs"))
    answer = client.post(f"{MEMORY}/manifests", json=pinned(head, "m/one", **more))
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_manifest")


def test_an_output_manifest_in_the_words_of_the_original_is_stored(client: httpx.Client) -> None:
    root = begin(client)
    head = commit(client, root, "ann", add("m/one", "tabs"))
    made = {"base_changeset_id": root, "resulting_changeset_id": head, "proposed_target_ref": SHARED_MAIN}
    answer = client.post(f"{MEMORY}/manifests", json=pinned(head, **made, direction="output"))
    assert answer.status_code == 201, answer.text
    assert answer.json()["target_ref"] == SHARED_MAIN


def test_a_report_of_the_plugin_is_kept_as_an_assembly(client: httpx.Client) -> None:
    head = commit(client, begin(client), "ann", add("m/one", "tabs"))
    manifest_id = client.post(f"{MEMORY}/manifests", json=pinned(head, "m/one")).json()["manifest_id"]
    digest = "0" * 64
    report = {
        "assembly_id": "asm-1",
        "source": "openclaw-plugin",
        "plugin_version": "0.4.3",
        "assembler_version": "openclaw-memory-git-v1",
        "message_count": 1,
        "provided_token_budget": 4000,
        "accepted_estimated_tokens": 40,
        "total_estimated_tokens": 52,
        "packed_bytes": 210,
        "recent_skipped": False,
        "memory_manifest_id": manifest_id,
        "memory_head_changeset_id": head,
        "items": [{"ordinal": 0, "item_kind": "summary", "bucket": "summary", "content_sha256": digest}],
    }
    answer = client.post("/api/sessions/agent:main:one/assemblies", json=report)
    assert answer.status_code == 201, answer.text
    (kept,) = client.get("/api/sessions/agent:main:one/assemblies").json()["assemblies"]
    assert kept["manifest_id"] == manifest_id
    assert kept["items"] == [{"memory_id": "summary", "content_digest": digest}]
    assert kept["token_counts"] == {"accepted": 40, "total": 52, "budget": 4000, "packed_bytes": 210}


@pytest.mark.parametrize("items", [3, [3], [{"item_kind": 4}]], ids=["no list", "no object", "no digest"])
def test_a_report_that_says_nothing_usable_is_refused(client: httpx.Client, items: Any) -> None:
    report = {"assembler_version": "1", "memory_head_changeset_id": begin(client), "items": items}
    answer = client.post("/api/sessions/s/assemblies", json=report)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_assembly")


def signed_by_the_original(expected: str, new: str, **changes: str) -> dict[str, Any]:
    """Gives a merge request with an envelope that is signed over its fields in their order."""
    now = datetime.now(UTC)
    envelope = {
        "version": "memory-git-merge/v2",
        "project_id": "atlas",
        "ref_name": SHARED_MAIN,
        "expected_head": expected,
        "new_head": new,
        "proposal_id": "018f0000-0000-7000-8000-0000000000aa",
        "proposal_digest": "a" * 64,
        "reviewer_principal": "rev",
        "merger_principal": "mer",
        "strategy": "fast_forward",
        "issued_at": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "expires_at": (now + timedelta(minutes=2)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "nonce": "0123456789abcdef0123456789abcdef",
        "key_id": "k1",
        **changes,
    }
    content = json.dumps(envelope, separators=(",", ":")).encode()
    signature = hmac.new(MERGE_SECRET.encode(), content, hashlib.sha256).hexdigest()
    return {
        "ref_name": SHARED_MAIN,
        "expected_head": expected,
        "new_head": new,
        "merge_proposal_id": envelope["proposal_id"],
        "reviewer_principal": "rev",
        "merge_authorization": json.dumps({"envelope": envelope, "signature": signature}),
    }


def test_a_merge_that_the_originals_charon_signed_lands_once(client: httpx.Client) -> None:
    root = begin(client)
    head = commit(client, root, "ann", add("m/one", "tabs"))
    request = signed_by_the_original(root, head)
    landed = client.post(f"{MEMORY}/atlas/refs/merge", json=request)
    assert (landed.status_code, landed.json()["head_changeset_id"]) == (200, head)
    again = client.post(f"{MEMORY}/atlas/refs/merge", json=request)
    assert (again.status_code, again.json()["code"]) == (409, "authorization_replayed")


@pytest.mark.parametrize(
    ("spoilt", "status", "code"),
    [
        ({"merge_authorization": "{}"}, 403, "invalid_authorization"),
        ({"merge_authorization": ""}, 400, "invalid_merge_request"),
        ({"reviewer_principal": "other"}, 403, "invalid_authorization"),
        ({"merge_proposal_id": "other"}, 403, "invalid_authorization"),
    ],
    ids=["malformed", "absent", "another reviewer", "another proposal"],
)
def test_a_merge_that_was_not_authorized_so_is_refused(
    client: httpx.Client, spoilt: dict[str, Any], status: int, code: str
) -> None:
    root = begin(client)
    head = commit(client, root, "ann", add("m/one", "tabs"))
    request = {**signed_by_the_original(root, head), **spoilt}
    answer = client.post(f"{MEMORY}/atlas/refs/merge", json=request)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_statuses_are_those_that_clients_of_the_original_expect(client: httpx.Client) -> None:
    root = begin(client)
    head = commit(client, root, "ann", add("m/one", "tabs"))
    create = {
        "project_id": "atlas",
        "ref_name": BRANCH,
        "parent_ids": [head],
        "author_principal": "ann",
        "message": "more",
        "idempotency_key": "more",
        "ops": [correct("m/one", "spaces")],
        "expected_head": head,
        "advance_ref": True,
    }
    made = client.post(f"{MEMORY}/changesets", json=create)
    assert made.status_code == 201
    assert client.post(f"{MEMORY}/changesets", json={**create, "advance_ref": False}).status_code == 409
    assert client.post(f"{MEMORY}/changesets", json={**create, "idempotency_key": "x"}).status_code == 409
    now = made.json()["changeset_id"]
    other = {**create, "idempotency_key": "y", "parent_ids": [now], "expected_head": now}
    assert client.post(f"{MEMORY}/changesets", json={**other, "ops": []}).status_code == 400
    assert client.post(f"{MEMORY}/changesets", json={**other, "ops": [{"op_type": "no"}]}).status_code == 400
    assert client.post(f"{MEMORY}/changesets", json={**other, "ref_name": SHARED_MAIN}).status_code == 403
    move = {"ref_name": BRANCH, "expected_head": head, "new_head": head}
    assert client.post(f"{MEMORY}/atlas/refs/advance", json=move).status_code == 409
    move = {"ref_name": SHARED_MAIN, "expected_head": root, "new_head": head}
    assert client.post(f"{MEMORY}/atlas/refs/advance", json=move).status_code == 403
    move = {"ref_name": "refs/agents/none/main", "expected_head": root, "new_head": head}
    assert client.post(f"{MEMORY}/atlas/refs/advance", json=move).status_code == 404
    assert client.get(f"{MEMORY}/changesets/018f0000-0000-7000-8000-000000000000").status_code == 404
    assert client.get(f"{MEMORY}/manifests/018f0000-0000-7000-8000-000000000000").status_code == 404
    assert client.get(f"{MEMORY}/atlas/refs/resolve").status_code == 400
    wrong = {"Authorization": "Bearer wrong"}
    assert client.get(f"{MEMORY}/projects", headers=wrong).status_code == 401


def test_projects_and_health_have_the_names_of_the_original(client: httpx.Client) -> None:
    begin(client)
    assert client.get(f"{MEMORY}/projects").json() == {"projects": [{"project_id": "atlas", "name": "atlas"}]}
    assert client.get("/api/health").json()["mode"] == "git"
    assert client.get("/api/readyz").json()["mode"] == "git"
