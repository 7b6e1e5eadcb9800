"""Proposals, reviews and merges (6-charon, proposals)."""

from __future__ import annotations

from memory_git.http.charon_routes import requests as bodies
from memory_git.http.charon_routes.parts import By, Page, TheGate, router
from memory_git.http.lethe_routes.answers import Object
from memory_git.http.openapi import answers
from memory_git.http.problems import JsonAnswer

routes = router("proposals")


@routes.post(
    "/projects/{project}/proposals", status_code=201, responses=answers(Object, 409, 413, status=201)
)
def propose(gate: TheGate, caller: By, project: str, body: bodies.ProposeRequest) -> JsonAnswer:
    """Proposes work for a protected ref, pinned to exact heads."""
    return JsonAnswer(gate.propose(caller, project, **body.given()), 201)


@routes.get("/projects/{project}/proposals", responses=answers(Object))
def list_proposals(
    gate: TheGate,
    caller: By,
    project: str,
    *,
    status: str | None = None,
    limit: Page = 50,
    after: str | None = None,
) -> JsonAnswer:
    """Gives a page of proposals."""
    return JsonAnswer(gate.proposals(caller, project, status=status, limit=limit, after=after))


@routes.post("/projects/{project}/reverts", status_code=201, responses=answers(Object, 409, 413, status=201))
def propose_revert(gate: TheGate, caller: By, project: str, body: bodies.RevertRequest) -> JsonAnswer:
    """Proposes taking back one changeset."""
    return JsonAnswer(gate.propose_revert(caller, project, **body.given()), 201)


@routes.post("/projects/{project}/refs/rebase", responses=answers(Object, 409, 413))
def rebase_ref(gate: TheGate, caller: By, project: str, body: bodies.RebaseRequest) -> JsonAnswer:
    """Replays a ref of the caller's on another."""
    return JsonAnswer(gate.rebase_ref(caller, project, **body.given()))


@routes.get("/proposals/{proposal_id}", responses=answers(Object))
def get_proposal(gate: TheGate, caller: By, proposal_id: str) -> JsonAnswer:
    """Gives a proposal with its diff, conflicts, reviews and what it lacks to be merged."""
    return JsonAnswer(gate.proposal(caller, proposal_id))


@routes.post("/proposals/{proposal_id}/review", responses=answers(Object, 409, 413))
def review(gate: TheGate, caller: By, proposal_id: str, body: bodies.ReviewRequest) -> JsonAnswer:
    """Records a review, bound to what was judged."""
    return JsonAnswer(gate.review(caller, proposal_id, **body.given()))


@routes.post("/proposals/{proposal_id}/merge", responses=answers(Object, 409, 413))
def merge(gate: TheGate, caller: By, proposal_id: str, body: bodies.MergeRequest | None = None) -> JsonAnswer:
    """Merges an approved proposal."""
    return JsonAnswer(gate.merge(caller, proposal_id, **(body.given() if body else {})))


@routes.post("/proposals/{proposal_id}/cancel", responses=answers(Object, 409))
def cancel(gate: TheGate, caller: By, proposal_id: str) -> JsonAnswer:
    """Takes a proposal back."""
    return JsonAnswer(gate.cancel(caller, proposal_id))


@routes.post("/proposals/{proposal_id}/rebase", responses=answers(Object, 409))
def rebase(gate: TheGate, caller: By, proposal_id: str) -> JsonAnswer:
    """Replays a stale proposal on the current head."""
    return JsonAnswer(gate.rebase(caller, proposal_id))
