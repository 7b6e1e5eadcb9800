"""Principals, tokens, grants, policies, the ledger: for administrators (6-charon)."""

from __future__ import annotations

from memory_git.http.charon_routes import requests as bodies
from memory_git.http.charon_routes.parts import By, Limit, TheGate, router
from memory_git.http.lethe_routes.answers import Object
from memory_git.http.openapi import answers
from memory_git.http.problems import JsonAnswer

routes = router("administration")


@routes.get("/principals", responses=answers(Object))
def list_principals(gate: TheGate, caller: By) -> JsonAnswer:
    """Gives all principals, by id."""
    return JsonAnswer({"principals": gate.principals(caller)})


@routes.post("/principals", status_code=201, responses=answers(Object, 409, 413, status=201))
def add_principal(gate: TheGate, caller: By, body: bodies.PrincipalRequest) -> JsonAnswer:
    """Adds a principal with its actors."""
    return JsonAnswer(gate.add_principal(caller, **body.given()), 201)


@routes.post("/principals/{principal_id}/disable", responses=answers(Object))
def disable_principal(gate: TheGate, caller: By, principal_id: str) -> JsonAnswer:
    """Disables a principal, with its tokens and sessions, at once."""
    return JsonAnswer(gate.disable_principal(caller, principal_id))


@routes.post("/principals/{principal_id}/enable", responses=answers(Object))
def enable_principal(gate: TheGate, caller: By, principal_id: str) -> JsonAnswer:
    """Enables a principal again."""
    return JsonAnswer(gate.disable_principal(caller, principal_id, disabled=False))


@routes.post("/principals/{principal_id}/actors", responses=answers(Object, 409, 413))
def add_actor(gate: TheGate, caller: By, principal_id: str, body: bodies.ActorRequest) -> JsonAnswer:
    """Gives an actor to a principal."""
    return JsonAnswer(gate.add_actor(caller, principal_id, body.actor_id))


@routes.post("/principals/{principal_id}/sign-in", status_code=201, responses=answers(Object, status=201))
def mint_sign_in(gate: TheGate, caller: By, principal_id: str) -> JsonAnswer:
    """Makes the code of a one-time sign-in link."""
    return JsonAnswer(gate.mint_sign_in(caller, principal_id), 201)


@routes.get("/obols", responses=answers(Object))
def list_obols(gate: TheGate, caller: By, principal_id: str | None = None) -> JsonAnswer:
    """Gives the tokens, without their secrets."""
    return JsonAnswer({"obols": gate.obols(caller, principal_id)})


@routes.post("/obols", status_code=201, responses=answers(Object, 413, status=201))
def mint_obol(gate: TheGate, caller: By, body: bodies.ObolRequest) -> JsonAnswer:
    """Makes a token, which is shown this once."""
    return JsonAnswer(gate.mint_obol(caller, **body.given()), 201)


@routes.post("/obols/{obol_id}/revoke", responses=answers(Object))
def revoke_obol(gate: TheGate, caller: By, obol_id: str) -> JsonAnswer:
    """Revokes a token, at once."""
    return JsonAnswer(gate.revoke_obol(caller, obol_id))


@routes.get("/grants", responses=answers(Object))
def list_grants(
    gate: TheGate, caller: By, principal_id: str | None = None, project: str | None = None
) -> JsonAnswer:
    """Gives the grants, of one principal or on one project where named."""
    return JsonAnswer({"grants": gate.grants(caller, principal_id, project)})


@routes.post("/grants", responses=answers(Object, 413))
def grant(gate: TheGate, caller: By, body: bodies.GrantRequest) -> JsonAnswer:
    """Grants a principal scopes on a project, in place of an earlier grant."""
    return JsonAnswer(gate.grant(caller, **body.given()))


@routes.post("/grants/revoke", responses=answers(Object, 413))
def revoke_grant(gate: TheGate, caller: By, body: bodies.GrantName) -> JsonAnswer:
    """Takes a grant away."""
    return JsonAnswer(gate.revoke_grant(caller, body.principal_id, body.project))


@routes.get("/projects/{project}/policy", responses=answers(Object))
def project_policy(gate: TheGate, caller: By, project: str) -> JsonAnswer:
    """Gives what a project asks of its merges."""
    return JsonAnswer(gate.project_policy(caller, project))


@routes.patch("/projects/{project}/policy", responses=answers(Object, 413))
def set_project_policy(gate: TheGate, caller: By, project: str, body: bodies.PolicyRequest) -> JsonAnswer:
    """Sets fields of a project's policy."""
    return JsonAnswer(gate.project_policy(caller, project, body.changes))


@routes.get("/projects/{project}/redactions", responses=answers(Object))
def list_redactions(gate: TheGate, caller: By, project: str) -> JsonAnswer:
    """Gives the redactions of a project."""
    return JsonAnswer({"redactions": gate.redactions(caller, project)})


@routes.post("/projects/{project}/redactions", responses=answers(Object, 409, 413))
def redact(gate: TheGate, caller: By, project: str, body: bodies.RedactRequest) -> JsonAnswer:
    """Erases a memory through every version, for good; takes the scope memory.redact."""
    return JsonAnswer(gate.redact(caller, project, body.memory_id, body.reason))


@routes.get("/ledger", responses=answers(Object))
def ledger_tail(gate: TheGate, caller: By, project: str | None = None, limit: Limit = 50) -> JsonAnswer:
    """Gives the newest rows of a chain of the ledger."""
    return JsonAnswer({"rows": gate.ledger_tail(caller, project, limit)})


@routes.get("/ledger/verification", responses=answers(Object))
def ledger_verify(gate: TheGate, caller: By, project: str | None = None) -> JsonAnswer:
    """Recomputes the ledger's chains."""
    return JsonAnswer(gate.ledger_verify(caller, project))
