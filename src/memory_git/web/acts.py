"""What a form does: one verb of the gate, then back to the page that shows its effect."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from memory_git.charon.caller import Caller
from memory_git.charon.gate import Gate
from memory_git.web.page import HEADERS
from memory_git.web.session import cookie_of, drop_cookie


def sign_out(request: Request, gate: Gate, _caller: Caller, _form: dict[str, str]) -> Response:
    """Ends the session."""
    gate.end_session(cookie_of(request))
    response = _see("sign-in")
    drop_cookie(response)
    return response


def review(request: Request, gate: Gate, caller: Caller, form: dict[str, str]) -> Response:
    """Records a review, bound to the digest of what the page showed."""
    proposal_id = request.path_params["proposal_id"]
    verdict, comment = form.get("verdict", ""), form.get("comment", "")
    gate.review(
        caller, proposal_id, verdict, comment=comment, judged_digest=form.get("judged_digest") or None
    )
    return _see("proposals", proposal_id)


def merge(request: Request, gate: Gate, caller: Caller, form: dict[str, str]) -> Response:
    """Merges; the same form sent twice merges once."""
    proposal_id = request.path_params["proposal_id"]
    gate.merge(caller, proposal_id, idempotency_key=form.get("idempotency_key") or None)
    return _see("proposals", proposal_id)


def resolve(request: Request, gate: Gate, caller: Caller, form: dict[str, str]) -> Response:
    """Records a resolution with its reason."""
    project, conflict_id = request.path_params["project"], request.path_params["conflict_id"]
    gate.resolve_conflict(caller, project, conflict_id, form.get("outcome", ""), form.get("note", ""))
    return _see("projects", project, "conflicts")


def _see(*parts: str) -> Response:
    return RedirectResponse("/" + "/".join(quote(part, safe="") for part in parts), 303, headers=HEADERS)
