"""How a person lets a remote client in: the client's request, the consent, and what was consented to (6-charon, tokens).

A request comes from another site, so no session cookie comes along (it is SameSite=Strict): the first page takes the request and
leads to the second one from here, where the person is known.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from memory_git.charon.caller import Caller
from memory_git.charon.gate import Gate
from memory_git.domain.errors import Invalid
from memory_git.web.page import HEADERS, page

CONSENT = "/oauth/consent"
_SCOPE_FIELD = "scope:"
WORDS = {
    "memory.read": "read what is accepted and what it may see",
    "memory.search": "search it",
    "memory.branch": "make branches of its own",
    "memory.commit": "commit to branches of its own",
    "memory.propose": "propose its work, for people to review",
}


def authorize(request: Request, gate: Gate) -> Response:
    """Takes a client's request and leads to the consent, or back to the client with what is wrong."""
    asked = gate.oauth_begin(_query(request), base_of(request))
    if asked.redirect:
        return RedirectResponse(asked.redirect, 303, headers=HEADERS)
    address = f"{CONSENT}?request={quote(asked.request, safe='')}"
    return page(request, "authorize.html", address=address)


def consent(request: Request, gate: Gate, caller: Caller) -> Response:
    """Shows what a client asks for."""
    name = request.query_params.get("request", "")
    asked = gate.oauth_asked(caller, name)
    facts: dict[str, Any] = {
        "asked": asked,
        "request_name": name,
        "words": WORDS,
        "scope_field": _SCOPE_FIELD,
    }
    return page(request, "consent.html", sends_to=gate.oauth_returns_to(name), **facts)


def decide(request: Request, gate: Gate, caller: Caller, form: dict[str, str]) -> Response:
    """Lets a client in, or turns it away, and sends the browser back to it."""
    name, base = form.get("request", ""), base_of(request)
    if form.get("decision") != "allow":
        return RedirectResponse(gate.oauth_refuse(caller, name, base), 303, headers=HEADERS)
    scopes = [field.removeprefix(_SCOPE_FIELD) for field in form if field.startswith(_SCOPE_FIELD)]
    back = gate.oauth_decide(caller, name, base, form.get("project", ""), scopes, form.get("agent", ""))
    return RedirectResponse(back, 303, headers=HEADERS)


def connections(request: Request, gate: Gate, caller: Caller) -> Response:
    """Shows what the person let clients do."""
    return page(request, "connections.html", connections=gate.oauth_connections(caller))


def disconnect(request: Request, gate: Gate, caller: Caller, _form: dict[str, str]) -> Response:
    """Ends what the person let a client do."""
    gate.oauth_disconnect(caller, request.path_params["grant_id"])
    return RedirectResponse("/connections", 303, headers=HEADERS)


def base_of(request: Request) -> str:
    """Gives the address by which clients know this server."""
    public: str | None = request.app.state.public_url
    return public or f"{request.url.scheme}://{request.headers.get('host', '')}"


def _query(request: Request) -> dict[str, str]:
    try:
        pairs = parse_qsl(request.url.query, keep_blank_values=True, max_num_fields=50, errors="strict")
    except ValueError:
        raise Invalid("invalid_request", "the request is not UTF-8, or has too many fields") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Invalid("invalid_request", "a field stands twice")
    return fields
