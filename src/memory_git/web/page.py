"""Rendering: one Jinja environment with autoescape, and the headers that every page carries."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse

from memory_git.charon.sign_in import WebSession
from memory_git.domain.errors import Refused
from memory_git.web.diff_view import field_text, record_fields
from memory_git.web.shown import moment, shown

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self';"
        " frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
_ENVIRONMENT = Environment(
    loader=PackageLoader("memory_git.web"), autoescape=True, trim_blocks=True, lstrip_blocks=True
)
_ENVIRONMENT.filters |= {
    "shown": shown,
    "field_text": field_text,
    "record_fields": record_fields,
    "moment": moment,
}


def page(
    request: Request, template: str, status_code: int = 200, *, sends_to: str = "", **facts: Any
) -> HTMLResponse:
    """Gives a page; `me` is the caller's principal id, absent when nobody is signed in.

    `sends_to` is the one foreign origin to which an answer to the page's form may send the browser.
    """
    session: WebSession | None = getattr(request.state, "session", None)
    whose = {"me": session.caller.principal_id, "form_token": session.csrf_token} if session else {}
    content = _ENVIRONMENT.get_template(template).render({"project": None, **whose, **facts})
    headers = HEADERS
    if sends_to:
        policy = HEADERS["Content-Security-Policy"].replace(
            "form-action 'self'", f"form-action 'self' {sends_to}"
        )
        headers = HEADERS | {"Content-Security-Policy": policy}
    return HTMLResponse(content, status_code, headers=headers)


def refusal_page(request: Request, error: Refused, status_code: int | None = None) -> HTMLResponse:
    """Gives the page for a refusal, with what the problem document would say."""
    facts: dict[str, Any] = {
        "heading": "This was not done" if request.method == "POST" else "This is not shown",
        "code": error.code,
        "message": error.message,
        "facts": error.facts,
        "back": _way_back(request),
    }
    return page(request, "refusal.html", status_code or error.status, **facts)


def _way_back(request: Request) -> dict[str, str]:
    """Gives the link to the page that a refused form stands on, else to the projects."""
    named = {name: quote(str(value), safe="") for name, value in request.path_params.items()}
    if request.method == "POST" and "proposal_id" in named:
        return {"address": f"/proposals/{named['proposal_id']}", "title": "Back to the proposal"}
    if request.method == "POST" and "conflict_id" in named:
        return {"address": f"/projects/{named['project']}/conflicts", "title": "Back to the conflicts"}
    if request.url.path == "/sign-in":
        return {"address": "/sign-in", "title": "Sign in with a token"}
    return {"address": "/projects", "title": "Projects"}
