"""Charon's HTTP API over a real server and a real gate: who is let in, what a way from commit to merge answers, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from memory_git.charon.gate import Gate
from memory_git.http.charon_app import OPEN_PATHS, create_charon_app, mount_mcp
from memory_git.http.serving import running

API = "/api/v1"
ABSENT = "018f0000-0000-7000-8000-000000000000"


@dataclass
class World:
    """A served gate, and a client for each principal."""

    gate: Gate
    app: FastAPI
    anyone: httpx.Client
    builder: httpx.Client
    reviewer: httpx.Client
    operator: httpx.Client
    stranger: httpx.Client


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    gate = Gate.open(tmp_path)
    local = gate.as_operator()
    gate.init_project(local, "atlas")
    clients = {}
    app = create_charon_app(gate)
    with running(app, on_stop=gate.feed.close) as where:
        for name, kind, profile, scopes in (
            ("builder", "agent", "propose", ()),
            ("reviewer", "human", "review", ()),
            ("operator", "human", "write", ("admin",)),
            ("stranger", "agent", "propose", ()),
        ):
            gate.add_principal(local, name, kind, profile=profile, scopes=scopes)
            if name != "stranger":
                gate.grant(local, name, "atlas")
            obol = gate.mint_obol(local, name, 3600)["token"]
            clients[name] = httpx.Client(base_url=where.url, headers={"Authorization": f"Bearer {obol}"})
        clients["anyone"] = httpx.Client(base_url=where.url)
        yield World(gate, app, **clients)
        for client in clients.values():
            client.close()
    gate.close()


def commit_of(*contents: str, **more: Any) -> dict[str, Any]:
    ops = [
        {"op_type": "add_memory", "payload": {"memory_id": name, "content": f"about {name}"}}
        for name in contents
    ]
    return {"message": "notes", "ops": ops, "read_head": True, **more}


def test_work_goes_from_a_commit_through_review_into_accepted_memory(world: World) -> None:
    atlas = f"{API}/projects/atlas"
    done = world.builder.post(f"{atlas}/changesets", json=commit_of("a", "b", idempotency_key="1"))
    assert done.status_code == 201
    assert done.json()["replayed"] is False
    again = world.builder.post(f"{atlas}/changesets", json=commit_of("a", "b", idempotency_key="1"))
    assert (again.status_code, again.json()["changeset"]) == (200, done.json()["changeset"])
    head = done.json()["changeset"]["changeset_id"]
    assert done.json()["changeset"]["author_principal"] == "builder"
    proposed = world.builder.post(f"{atlas}/proposals", json={"message": "please", "head_changeset_id": head})
    assert proposed.status_code == 201
    proposal = f"{API}/proposals/{proposed.json()['proposal_id']}"
    assert world.reviewer.get(f"{atlas}/proposals").json()["proposals"][0]["status"] == "pending"
    own = world.builder.post(f"{proposal}/review", json={"verdict": "approve"})
    assert (own.status_code, own.json()["code"]) == (403, "denied")
    early = world.reviewer.post(f"{proposal}/merge")
    assert early.status_code in (403, 409)
    approved = world.reviewer.post(f"{proposal}/review", json={"verdict": "approve", "comment": "good"})
    assert approved.json()["status"] == "approved"
    merged = world.reviewer.post(f"{proposal}/merge", json={"idempotency_key": "m"})
    assert merged.status_code == 200, merged.text
    shared = {"ref": "refs/shared/main"}
    page = world.reviewer.get(f"{atlas}/memories", params=shared).json()
    assert {entry["memory_id"] for entry in page["memories"]} == {"a", "b"}
    one = world.reviewer.get(f"{atlas}/memories/one", params={**shared, "id": "a"}).json()
    assert one["record"]["content"] == "about a"
    history = world.reviewer.get(f"{atlas}/memories/history", params={**shared, "id": "a"}).json()
    assert [version["author_principal"] for version in history["versions"]] == ["builder"]
    hits = world.reviewer.get(f"{atlas}/search", params={**shared, "query": "about"}).json()
    assert hits["total"] == 2
    context = world.reviewer.post(f"{atlas}/context", json={**shared, "create_manifest": True}).json()
    assert world.reviewer.get(f"{API}/manifests/{context['manifest_id']}/reproduce").status_code == 200
    assert world.builder.get(f"{atlas}/status").json()["open_proposals"] == 0
    assert world.builder.get(f"{atlas}/changesets/{head}").json()["changeset_id"] == head
    assert world.builder.get(f"{atlas}/diff", params={"target": head}).status_code == 200
    assert world.builder.get(f"{atlas}/conflicts").json() == {"conflicts": [], "count": 0}


def test_every_route_but_the_open_ones_asks_for_an_obol(world: World) -> None:
    document = world.anyone.get("/api/openapi.json").json()
    for path, item in document["paths"].items():
        for method in item:
            for header in (
                "",
                "Bearer",
                "Bearer obol_wrong",
                f"Bearer obol_{'0' * 16}_{'0' * 64}",
                "Basic eDp5",
            ):
                answer = world.anyone.request(method, path, headers={"Authorization": header})
                if path in OPEN_PATHS:
                    assert answer.status_code == 200, path
                else:
                    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), (
                        method,
                        path,
                    )
                    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_project_without_a_grant_looks_like_one_that_is_not_there(world: World) -> None:
    for path in (
        "status",
        "refs",
        "changesets",
        "memories",
        "proposals",
        "conflicts",
        f"changesets/{ABSENT}",
    ):
        hidden = world.stranger.get(f"{API}/projects/atlas/{path}")
        absent = world.stranger.get(f"{API}/projects/nowhere/{path}")
        assert hidden.status_code == absent.status_code == 404, path
        assert hidden.json() == absent.json(), path
    assert world.stranger.get(f"{API}/projects").json() == {"projects": []}


def test_a_stale_head_is_409_with_the_current_one_and_faults_come_all_at_once(world: World) -> None:
    atlas = f"{API}/projects/atlas"
    first = world.builder.post(f"{atlas}/changesets", json=commit_of("a")).json()["changeset"]
    second = world.builder.post(f"{atlas}/changesets", json=commit_of("b")).json()["changeset"]
    stale = world.builder.post(
        f"{atlas}/changesets", json=commit_of("c", read_head=False, expected_head=first["changeset_id"])
    )
    assert (stale.status_code, stale.json()["code"]) == (409, "ref_moved")
    assert stale.json()["current_head"] == second["changeset_id"]
    ops = [
        {"op_type": "no_such_op", "payload": {}},
        {"op_type": "add_memory", "payload": {"content": " ", "approval": "user_approved"}},
    ]
    faulty = world.builder.post(f"{atlas}/changesets", json={"message": "m", "ops": ops, "read_head": True})
    assert faulty.status_code == 400
    assert {fault["ordinal"] for fault in faulty.json()["faults"]} == {0, 1}


@pytest.mark.parametrize("field", ["author_principal", "actor_id", "surface", "source_trust", "project_id"])
def test_what_the_gate_alone_says_can_not_be_sent(world: World, field: str) -> None:
    answer = world.builder.post(
        f"{API}/projects/atlas/changesets", json=commit_of("a", **{field: "reviewer"})
    )
    assert (answer.status_code, answer.json()["faults"][0]["field"]) == (400, field)


def test_administration_is_for_administrators(world: World) -> None:
    for path in ("principals", "obols", "grants", "ledger", "ledger/verification"):
        assert world.operator.get(f"{API}/{path}").status_code == 200, path
        denied = world.builder.get(f"{API}/{path}")
        assert (denied.status_code, denied.json()["code"]) == (403, "denied"), path
    made = world.operator.post(f"{API}/principals", json={"principal_id": "helper", "kind": "agent"})
    assert (made.status_code, made.json()["principal_id"]) == (201, "helper")
    obol = world.operator.post(f"{API}/obols", json={"principal_id": "helper", "expires_s": 60}).json()
    assert "token" not in world.operator.get(f"{API}/obols").text.replace("token_", "")
    grant = {"principal_id": "helper", "project": "atlas"}
    headers = {"Authorization": f"Bearer {obol['token']}"}

    def asks(path: str) -> httpx.Response:
        return world.anyone.get(f"{API}/{path}", headers=headers)

    assert asks("whoami").json()["principal_id"] == "helper"
    assert world.operator.post(f"{API}/grants", json=grant).status_code == 200
    assert asks("projects").json() == {"projects": ["atlas"]}
    assert world.operator.post(f"{API}/grants/revoke", json=grant).status_code == 200
    assert asks("projects").json() == {"projects": []}
    assert world.operator.post(f"{API}/obols/{obol['obol_id']}/revoke").status_code == 200
    assert asks("whoami").status_code == 401
    policy = world.operator.patch(f"{API}/projects/atlas/policy", json={"changes": {"approvals_needed": 2}})
    assert policy.json()["approvals_needed"] == 2
    assert world.reviewer.get(f"{API}/projects/atlas/policy").json() == policy.json()


def test_readiness_and_counts(world: World) -> None:
    assert world.anyone.get("/healthz").json()["status"] == "ok"
    assert world.anyone.get("/readyz").status_code == 200
    assert world.builder.get("/metrics").status_code == 403
    text = world.operator.get("/metrics").text
    assert "charon_http_answers_total" in text
    assert "charon_authz_denials_total" in text


def test_an_embedded_stores_counts_stand_in_the_gates_metrics_once_each(world: World) -> None:
    begun = world.builder.post(f"{API}/projects/atlas/changesets", json=commit_of("one", read_head=True))
    head = begun.json()["changeset"]["parent_ids"][0]
    stale = world.builder.post(f"{API}/projects/atlas/changesets", json=commit_of("two", expected_head=head))
    assert stale.json()["code"] == "ref_moved"
    lines = world.operator.get("/metrics").text.splitlines()
    assert "lethe_changesets_created_total 1.0" in lines
    assert "lethe_ref_cas_conflicts_total 1.0" in lines
    named = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert len(named) == len(set(named))


def test_mcp_answers_503_until_it_is_mounted_and_is_not_reached_with_a_foreign_origin(world: World) -> None:
    before = world.anyone.post("/mcp")
    assert (before.status_code, before.headers["retry-after"]) == (503, "1")

    async def hello(request: Request) -> PlainTextResponse:
        return PlainTextResponse(request.url.path)

    mount_mcp(world.app, Starlette(routes=[Route("/mcp", hello, methods=["POST"])]))
    assert world.anyone.post("/mcp").text == "/mcp"
    foreign = world.anyone.post("/mcp", headers={"Origin": "http://evil.example"})
    assert (foreign.status_code, foreign.json()["code"]) == (403, "origin_not_allowed")


def test_the_live_feed_shows_a_proposal_to_who_may_know_of_it(world: World) -> None:
    done = world.builder.post(f"{API}/projects/atlas/changesets", json=commit_of("a")).json()
    head = done["changeset"]["changeset_id"]
    with world.reviewer.stream("GET", f"{API}/live") as answer:
        lines = answer.iter_lines()
        next(lines)
        world.builder.post(
            f"{API}/projects/atlas/proposals", json={"message": "m", "head_changeset_id": head}
        )
        data = next(line for line in lines if "proposal_opened" in line and line.startswith("data: "))
    assert "about a" not in data
    position = world.gate.feed.position
    local = world.gate.as_operator()
    with world.stranger.stream("GET", f"{API}/live") as answer:
        lines = answer.iter_lines()
        next(lines)
        world.builder.post(f"{API}/projects/atlas/changesets", json=commit_of("b"))
        assert world.gate.feed.after(position)
        world.gate.init_project(local, "open")
        world.gate.grant(local, "stranger", "open")
        world.gate.feed.publish("ref_moved", "open", ref_name="refs/shared/main")
        first = next(line for line in lines if line.startswith("data: "))
    assert '"project_id":"open"' in first


def test_the_gate_counts_proposals_merges_replays_and_unfit_requests_under_the_originals_names(
    world: World,
) -> None:
    atlas = f"{API}/projects/atlas"
    commit = {
        "message": "work",
        "ops": [{"op_type": "add_memory", "payload": {"content": "x"}}],
        "read_head": True,
        "idempotency_key": "once",
    }
    assert [world.builder.post(f"{atlas}/changesets", json=commit).status_code for _ in range(2)] == [
        201,
        200,
    ]
    other = world.builder.post(f"{atlas}/changesets", json={**commit, "message": "other work"})
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_mismatch")
    ask = {"source_ref": "refs/agents/builder/main", "message": "please"}
    proposal = world.builder.post(f"{atlas}/proposals", json=ask).json()["proposal_id"]
    assert world.reviewer.post(f"{API}/proposals/{proposal}/merge").status_code == 409
    assert world.builder.post(f"{atlas}/proposals", json={"nonsense": 1}).status_code == 400
    told = dict(
        line.rsplit(" ", 1)
        for line in world.operator.get("/metrics").text.splitlines()
        if not line.startswith("#")
    )
    names = {
        "charon_proposals_created_total": "1.0",
        "charon_merge_attempts_total": "1.0",
        "charon_merge_cas_conflicts_total": "0.0",
        "charon_idempotent_replays_total": "1.0",
        "charon_idempotency_mismatches_total": "1.0",
        "charon_ledger_append_failures_total": "0.0",
        "charon_audit_append_failures_total": "0.0",
        "charon_strict_parsing_rejections_total": "1.0",
        "lethe_idempotent_replays_total": "1.0",
    }
    assert {name: told[name] for name in names} == names
