"""Lethe's HTTP API as chapter 5 of the design tables it: routes, field names, statuses, and a description that is true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from memory_git.domain.envelope import MergeKeys
from memory_git.domain.ids import SHARED_MAIN
from memory_git.http.lethe_app import create_lethe_app
from memory_git.http.lethe_routes import answers as shapes
from memory_git.http.serving import running
from memory_git.lethe.store import LetheStore

API_KEY = "the-key-of-this-test"
BRANCH = "refs/agents/builder/main"
MEMORY = "/api/memory"
TABLE = [
    ("get", "/api/memory/projects"),
    ("post", "/api/memory/{project}/legacy-root"),
    ("post", "/api/memory/{project}/branches"),
    ("get", "/api/memory/{project}/refs"),
    ("get", "/api/memory/{project}/refs/resolve"),
    ("post", "/api/memory/{project}/refs/advance"),
    ("post", "/api/memory/{project}/refs/merge"),
    ("post", "/api/memory/changesets"),
    ("get", "/api/memory/{project}/changesets"),
    ("get", "/api/memory/changesets/{changeset_id}"),
    ("post", "/api/memory/changesets/{changeset_id}/diff"),
    ("get", "/api/memory/{project}/context"),
    ("post", "/api/memory/{project}/context"),
    ("post", "/api/memory/{project}/conflicts/detect"),
    ("get", "/api/memory/{project}/conflicts"),
    ("post", "/api/memory/{project}/conflicts/persist"),
    ("post", "/api/memory/{project}/conflicts/retire"),
    ("post", "/api/memory/{project}/conflicts/{conflict_id}/resolve"),
    ("post", "/api/memory/manifests"),
    ("get", "/api/memory/manifests/{manifest_id}"),
    ("get", "/api/memory/manifests/{manifest_id}/reproduce"),
    ("get", "/api/memory/{project}/memories"),
    ("get", "/api/memory/{project}/memories/one"),
    ("get", "/api/memory/{project}/memories/history"),
    ("get", "/api/memory/{project}/merge-base"),
    ("post", "/api/memory/{project}/merge/plan"),
    ("post", "/api/memory/{project}/rebase/plan"),
    ("post", "/api/memory/{project}/revert/plan"),
    ("post", "/api/events"),
    ("get", "/api/events"),
    ("get", "/api/events/{event_id}"),
    ("post", "/api/sessions/{key}/assemblies"),
    ("get", "/api/sessions/{key}/assemblies"),
    ("get", "/api/assemblies/{assembly_id}"),
    ("post", "/api/assemblies/{assembly_id}/feedback"),
    ("get", "/api/health"),
    ("get", "/api/readyz"),
    ("get", "/api/metrics"),
    ("get", "/api/live"),
]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    keys = MergeKeys((("k1", "a-merge-key-of-more-than-32-characters"),))
    store = LetheStore.open(tmp_path / "lethe.db", merge_keys=keys)
    app = create_lethe_app(store, api_key=API_KEY)
    headers = {"Authorization": f"Bearer {API_KEY}"}
    with (
        running(app, on_stop=store.feed.close) as where,
        httpx.Client(base_url=where.url, headers=headers) as client,
    ):
        yield client
    store.close()


def is_of(shape: Any, answer: httpx.Response, status: int = 200) -> Any:
    """Gives the content of an answer that has a status and the shape that the description says."""
    assert answer.status_code == status, answer.text
    TypeAdapter(shape).validate_json(answer.content, strict=True)
    return answer.json()


def begin(client: httpx.Client) -> str:
    head: str = client.post(f"{MEMORY}/atlas/legacy-root").json()["changeset"]["changeset_id"]
    return head


def create_request(head: str, key: str = "1", **more: Any) -> dict[str, Any]:
    return {
        "project_id": "atlas",
        "ref_name": BRANCH,
        "parent_ids": [head],
        "author_principal": "builder",
        "message": "work",
        "idempotency_key": key,
        "ops": [{"op_type": "add_memory", "payload": {"memory_id": "a", "content": "one"}}],
        "expected_head": head,
        "advance_ref": True,
        "create_ref_if_missing": True,
        **more,
    }


def test_every_route_of_the_table_is_served_and_described(client: httpx.Client) -> None:
    document = client.get("/api/openapi.json", headers={"Authorization": ""}).json()
    described = {(method, path) for path, item in document["paths"].items() for method in item}
    assert [row for row in TABLE if row not in described] == []


def test_the_description_names_security_servers_and_problem_documents(client: httpx.Client) -> None:
    document = client.get("/api/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert document["servers"] == [{"url": "/"}]
    assert document["security"] == [{"bearer": []}]
    assert document["paths"]["/api/health"]["get"]["security"] == []
    ids = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(ids) == len(set(ids))
    for path, item in document["paths"].items():
        for operation in item.values():
            assert "422" not in operation["responses"], path
            for status, said in operation["responses"].items():
                if status >= "400":
                    assert list(said["content"]) == ["application/problem+json"], (path, status)


def test_the_answers_have_the_statuses_and_shapes_that_are_described(client: httpx.Client) -> None:
    start = is_of(shapes.ProjectStart, client.post(f"{MEMORY}/atlas/legacy-root"))
    root = start["changeset"]["changeset_id"]
    branch = {"ref_name": BRANCH, "head_changeset_id": root, "principal": "builder"}
    is_of(shapes.Ref, client.post(f"{MEMORY}/atlas/branches", json=branch), 201)
    made = is_of(shapes.Changeset, client.post(f"{MEMORY}/changesets", json=create_request(root)), 201)
    again = is_of(shapes.Changeset, client.post(f"{MEMORY}/changesets", json=create_request(root)), 200)
    assert again == made
    head = made["changeset_id"]
    at = {"head": head}
    is_of(shapes.Projects, client.get(f"{MEMORY}/projects"))
    is_of(list[shapes.Ref], client.get(f"{MEMORY}/atlas/refs"))
    is_of(shapes.Ref, client.get(f"{MEMORY}/atlas/refs/resolve", params={"name": BRANCH, "at": root}))
    is_of(shapes.RefLog, client.get(f"{MEMORY}/atlas/refs/log", params={"name": BRANCH}))
    is_of(shapes.Log, client.get(f"{MEMORY}/atlas/changesets", params={"ref": BRANCH, "limit": 1}))
    is_of(shapes.Changeset, client.get(f"{MEMORY}/changesets/{head}"))
    is_of(shapes.Object, client.post(f"{MEMORY}/changesets/{head}/diff"))
    is_of(shapes.Object, client.post(f"{MEMORY}/changesets/{head}/diff", json={"base_changeset_id": root}))
    is_of(shapes.Bases, client.get(f"{MEMORY}/atlas/merge-base", params={"left": root, "right": head}))
    is_of(
        shapes.IsAncestor,
        client.get(f"{MEMORY}/atlas/ancestry", params={"ancestor": root, "descendant": head}),
    )
    is_of(shapes.Authors, client.get(f"{MEMORY}/atlas/authors", params={"head": head, "without": root}))
    is_of(shapes.Memories, client.get(f"{MEMORY}/atlas/memories", params=at))
    is_of(shapes.MemoryAt, client.get(f"{MEMORY}/atlas/memories/one", params={**at, "id": "a"}))
    is_of(shapes.MemoryVersions, client.get(f"{MEMORY}/atlas/memories/history", params={**at, "id": "a"}))
    is_of(shapes.Hits, client.get(f"{MEMORY}/atlas/memories/search", params={**at, "query": "one"}))
    is_of(shapes.Object, client.get(f"{MEMORY}/atlas/context", params={"ref_name": BRANCH}))
    pinned = client.post(f"{MEMORY}/atlas/context", json={"ref_name": BRANCH, "create_manifest": True})
    manifest = is_of(shapes.Object, pinned)["manifest_id"]
    is_of(shapes.Object, client.get(f"{MEMORY}/manifests/{manifest}"))
    is_of(shapes.Object, client.get(f"{MEMORY}/manifests/{manifest}/reproduce"))
    event = {"project_id": "atlas", "event_type": "note", "content": "hello"}
    event_id = is_of(shapes.Event, client.post("/api/events", json=event), 201)["event_id"]
    is_of(shapes.Event, client.get(f"/api/events/{event_id}"))
    is_of(shapes.Events, client.get("/api/events", params={"project": "atlas"}))
    is_of(shapes.Conflicts, client.get(f"{MEMORY}/atlas/conflicts", params={"status": "open", "limit": 5}))
    is_of(shapes.Advances, client.get(f"{MEMORY}/atlas/advances"))
    is_of(shapes.Verification, client.get(f"{MEMORY}/atlas/verification"))
    is_of(shapes.Health, client.get("/api/health"))
    is_of(shapes.Readiness, client.get("/api/readyz"))


def test_a_conflict_is_found_kept_resolved_and_retired_in_the_shapes_described(client: httpx.Client) -> None:
    base = client.post(f"{MEMORY}/changesets", json=create_request(begin(client))).json()["changeset_id"]
    heads = []
    for side in ("left", "right"):
        op = {"op_type": "correct_memory", "target_event_id": "a", "payload": {"content": side}}
        ref = f"refs/topics/{side}"
        made = client.post(
            f"{MEMORY}/changesets",
            json=create_request(base, side, ops=[op], ref_name=ref, author_principal=side),
        )
        heads.append(made.json()["changeset_id"])
    pair = {"base_changeset_id": base, "left_changeset_id": heads[0], "right_changeset_id": heads[1]}
    found = is_of(shapes.Conflicts, client.post(f"{MEMORY}/atlas/conflicts/detect", json=pair))["conflicts"]
    bound = {"proposal_id": "018f0000-0000-7000-8000-0000000000aa", "conflicts": found}
    is_of(shapes.Persisted, client.post(f"{MEMORY}/atlas/conflicts/persist", json=bound))
    (conflict,) = [item for item in found if item["conflict_type"] == "concurrent_change"]
    resolution = {"outcome": "keep_left", "resolution_note": "tried", "principal": "reviewer"}
    address = f"{MEMORY}/atlas/conflicts/{conflict['conflict_id']}/resolve"
    assert is_of(shapes.Resolved, client.post(address, json=resolution))["resolved"]["status"] == "resolved"
    ended = {"proposal_id": bound["proposal_id"], "status": "canceled"}
    is_of(shapes.Retired, client.post(f"{MEMORY}/atlas/conflicts/retire", json=ended))


def test_a_409_carries_what_is_needed_to_go_on(client: httpx.Client) -> None:
    root = begin(client)
    head = client.post(f"{MEMORY}/changesets", json=create_request(root)).json()["changeset_id"]
    stale = client.post(f"{MEMORY}/changesets", json=create_request(root, "2"))
    assert (stale.status_code, stale.json()["code"], stale.json()["current_head"]) == (409, "ref_moved", head)
    other = client.post(f"{MEMORY}/changesets", json=create_request(root, message="other"))
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_mismatch")
    advance = {"ref_name": SHARED_MAIN, "expected_head": root, "new_head": head}
    protected = client.post(f"{MEMORY}/atlas/refs/advance", json=advance)
    assert (protected.status_code, protected.json()["code"]) == (403, "protected_ref")


@pytest.mark.parametrize(
    "query",
    ["visibility=internal", "reader=", "reader=a&visibility=secret", "reader=a&visibility=internal,x"],
)
def test_an_audience_that_is_half_said_is_refused_rather_than_taken_for_everything(
    client: httpx.Client, query: str
) -> None:
    answer = client.get(f"{MEMORY}/atlas/memories?head={begin(client)}&{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")


def test_an_audience_is_said_by_repetition_or_by_commas(client: httpx.Client) -> None:
    ops = [
        {"op_type": "add_memory", "payload": {"memory_id": name, "content": name, "visibility": name}}
        for name in ("internal", "shared", "public")
    ]
    head = client.post(f"{MEMORY}/changesets", json=create_request(begin(client), ops=ops)).json()[
        "changeset_id"
    ]
    for query, total in (
        ("reader=a", 0),
        ("reader=a&visibility=public", 1),
        ("reader=a&visibility=public,shared", 2),
        ("reader=a&visibility=public&visibility=shared", 2),
        ("reader=a&visibility=public&visibility=shared,internal", 3),
    ):
        assert client.get(f"{MEMORY}/atlas/memories?head={head}&{query}").json()["total"] == total, query


def test_counts_are_kept_under_the_names_of_the_original(client: httpx.Client) -> None:
    root = begin(client)
    for key in ("1", "1", "2"):
        client.post(f"{MEMORY}/changesets", json=create_request(root, key))
    text = client.get("/api/metrics").text.splitlines()
    assert "lethe_changesets_created_total 1.0" in text
    assert "lethe_ref_cas_conflicts_total 1.0" in text
    assert "lethe_merge_replay_rejections_total 0.0" in text


def test_the_live_feed_tells_of_moves_of_one_project_and_resumes(client: httpx.Client) -> None:
    root = begin(client)
    client.post(f"{MEMORY}/other/legacy-root")

    def follow(**headers: str) -> tuple[str, str]:
        with client.stream("GET", "/api/live", params={"project": "atlas"}, headers=headers) as answer:
            position = ""
            for line in answer.iter_lines():
                if line.startswith("retry: ") and not headers:
                    client.post(f"{MEMORY}/other/legacy-root")
                    client.post(f"{MEMORY}/changesets", json=create_request(root, "live"))
                position = line.removeprefix("id: ") if line.startswith("id: ") else position
                if line.startswith("data: "):
                    return position, line
        raise AssertionError("the stream ended")

    position, data = follow()
    assert f'"ref_name":"{BRANCH}"' in data
    assert "one" not in data
    client.post(
        f"{MEMORY}/atlas/branches",
        json={"ref_name": "refs/topics/t", "head_changeset_id": root, "principal": "b"},
    )
    assert '"ref_name":"refs/topics/t"' in follow(**{"Last-Event-ID": position})[1]


def test_the_store_counts_under_the_originals_names(client: httpx.Client) -> None:
    head = begin(client)
    assert client.post(f"{MEMORY}/changesets", json=create_request(head)).status_code == 201
    assert client.post(f"{MEMORY}/changesets", json=create_request(head)).status_code == 200
    assert client.post(f"{MEMORY}/changesets", json=create_request(head, message="x")).status_code == 409
    assert client.post(f"{MEMORY}/changesets", json=create_request(head, key="2")).status_code == 409
    assert client.get(f"{MEMORY}/atlas/context").status_code == 200
    forged = {
        "ref_name": SHARED_MAIN,
        "expected_head": head,
        "new_head": head,
        "merge_proposal_id": "p",
        "reviewer_principal": "r",
        "merge_authorization": "{}",
    }
    assert client.post(f"{MEMORY}/atlas/refs/merge", json=forged).status_code == 403
    assert client.post(f"{MEMORY}/changesets", json=[]).status_code == 400
    told = dict(
        line.rsplit(" ", 1) for line in client.get("/api/metrics").text.splitlines() if line[0] != "#"
    )
    names = {
        "lethe_changesets_created_total": "1.0",
        "lethe_changesets_rejected_total": "2.0",
        "lethe_idempotent_replays_total": "1.0",
        "lethe_idempotency_mismatches_total": "1.0",
        "lethe_ref_cas_conflicts_total": "1.0",
        "lethe_merge_authorization_failures_total": "1.0",
        "lethe_merge_authorized_total": "0.0",
        "lethe_merge_replay_rejections_total": "0.0",
        "lethe_context_reconstructions_total": "1.0",
        "lethe_conflicts_persisted_total": "0.0",
        "lethe_conflicts_resolved_total": "0.0",
        "lethe_conflicts_retired_total": "0.0",
        "lethe_sqlite_busy_exhausted_total": "0.0",
        "lethe_strict_parsing_rejections_total": "1.0",
    }
    assert {name: told[name] for name in names} == names
    assert float(told["lethe_context_reconstruction_ms_total"]) > 0
