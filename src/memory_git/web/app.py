"""The pages as one application: routes, who is signed in, and what a refusal looks like."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from importlib.resources import files

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from memory_git.charon.caller import Caller
from memory_git.charon.gate import Gate
from memory_git.charon.sign_in import WebSession
from memory_git.domain.errors import Corrupt, NotFound, Refused, Unauthenticated
from memory_git.web import acts, connecting, views
from memory_git.web.page import HEADERS, page, refusal_page
from memory_git.web.session import cookie_of, read_form, set_cookie

_LOG = logging.getLogger("memory_git.web")
_STYLE = files("memory_git.web").joinpath("static/style.css").read_bytes()
_WAITING = re.compile(re.escape(connecting.CONSENT) + r"\?request=[A-Za-z0-9_-]{20,100}")
View = Callable[[Request, Gate, Caller], Response]
Act = Callable[[Request, Gate, Caller, dict[str, str]], Response]
Endpoint = Callable[[Request], Awaitable[Response]]


def create_pages(gate: Gate, *, secure_cookie: bool = False, public_url: str | None = None) -> Starlette:
    """Gives the application; Host and Origin are checked by whoever it is mounted in.

    `secure_cookie`: people come by HTTPS, though a proxy may pass their requests on without. `public_url` is then the address that
    OAuth clients know.
    """
    app = Starlette(
        routes=[
            Route("/", _home),
            Route("/style.css", _style),
            Route("/sign-in", _sign_in_page),
            Route("/sign-in", _sign_in, methods=["POST"]),
            Route("/sign-out", _done(acts.sign_out), methods=["POST"]),
            Route("/oauth/authorize", _authorize),
            Route(connecting.CONSENT, _seen(connecting.consent)),
            Route(connecting.CONSENT, _done(connecting.decide), methods=["POST"]),
            Route("/connections", _seen(connecting.connections)),
            Route("/connections/{grant_id}/end", _done(connecting.disconnect), methods=["POST"]),
            Route("/projects", _seen(views.projects)),
            Route("/projects/{project}", _seen(views.accepted)),
            Route("/projects/{project}/memory", _seen(views.memory)),
            Route("/projects/{project}/proposals", _seen(views.proposals)),
            Route("/projects/{project}/conflicts", _seen(views.conflicts)),
            Route(
                "/projects/{project}/conflicts/{conflict_id}/resolve", _done(acts.resolve), methods=["POST"]
            ),
            Route("/proposals/{proposal_id}", _seen(views.proposal)),
            Route("/proposals/{proposal_id}/review", _done(acts.review), methods=["POST"]),
            Route("/proposals/{proposal_id}/merge", _done(acts.merge), methods=["POST"]),
        ],
        exception_handlers={Refused: _refused, HTTPException: _routing, Corrupt: _failed, Exception: _failed},
    )
    app.state.gate = gate
    app.state.secure_cookie = secure_cookie
    app.state.public_url = public_url
    return app


def _seen(view: View) -> Endpoint:
    """Makes an endpoint of a view for whoever is signed in."""

    async def endpoint(request: Request) -> Response:
        session = await run_in_threadpool(_signed_in, request)
        return await run_in_threadpool(view, request, request.app.state.gate, session.caller)

    return endpoint


def _done(act: Act) -> Endpoint:
    """Makes an endpoint of an act: a form with the session's own token, by whoever is signed in."""

    async def endpoint(request: Request) -> Response:
        form = await read_form(request)
        session = await run_in_threadpool(_signed_in, request)
        session.require_csrf(form.pop("form_token", ""))
        return await run_in_threadpool(act, request, request.app.state.gate, session.caller, form)

    return endpoint


def _signed_in(request: Request) -> WebSession:
    gate: Gate = request.app.state.gate
    session = gate.web_session(cookie_of(request))
    request.state.session = session
    return session


async def _home(_request: Request) -> Response:
    return RedirectResponse("/projects", 303)


async def _style(_request: Request) -> Response:
    return Response(_STYLE, media_type="text/css", headers=HEADERS | {"Cache-Control": "max-age=3600"})


async def _authorize(request: Request) -> Response:
    return await run_in_threadpool(connecting.authorize, request, request.app.state.gate)


def _following(named: str) -> str:
    """Gives the page that follows a sign-in: a client's request, where one waits; no other address is taken from a form."""
    return named if _WAITING.fullmatch(named) else "/projects"


async def _sign_in_page(request: Request) -> Response:
    return page(request, "sign_in.html", code=request.query_params.get("code", ""))


async def _sign_in(request: Request) -> Response:
    form = await read_form(request)
    cookie = await run_in_threadpool(_opened, request.app.state.gate, form)
    response = RedirectResponse(_following(form.get("next", "")), 303, headers=HEADERS)
    set_cookie(request, response, cookie)
    return response


def _opened(gate: Gate, form: dict[str, str]) -> str:
    """Gives the cookie of a new session, for a link's code or for a token."""
    if "token" in form:
        return gate.open_session(gate.authenticate(form["token"].strip(), "web"))
    return gate.use_sign_in(form.get("code", ""))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    request.scope["problem_code"] = error.code
    if isinstance(error, Unauthenticated) and request.method == "GET":
        named = f"{request.url.path}?{request.url.query}"
        return page(request, "sign_in.html", 401, code="", next=named if _WAITING.fullmatch(named) else "")
    return refusal_page(request, error)


async def _routing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return refusal_page(request, NotFound("not_found", "there is no such page"))
    refusal = Refused("method_not_allowed", "a page is not asked in this way")
    return refusal_page(request, refusal, error.status_code)


async def _failed(request: Request, error: Exception) -> Response:
    code = "corrupt" if isinstance(error, Corrupt) else "internal"
    _LOG.error("failed with %s", type(error).__name__, extra={"request_id": request.scope.get("request_id")})
    return refusal_page(request, Refused(code, "something unexpected happened"), 500)
