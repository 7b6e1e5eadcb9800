"""Charon's HTTP face: the API under /api/v1, MCP at /mcp, the web pages beside, behind one Host and Origin list.

The pages and the MCP face are handed in, for faces do not import each other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated

from fastapi import FastAPI, Header, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import TypedDict

from memory_git import __version__
from memory_git.charon.gate import Gate
from memory_git.http.charon_routes import administration, memory, proposals
from memory_git.http.charon_routes.committing import commit_road
from memory_git.http.charon_routes.parts import By, TheGate, router
from memory_git.http.late_mount import LateMount
from memory_git.http.lethe_routes import answers as shapes
from memory_git.http.limits import LOOPBACK_HOSTS, AtMost, HostAndOrigin, LastCatch
from memory_git.http.live import live_answer
from memory_git.http.metrics import FaceMetrics, Observed
from memory_git.http.oauth_app import Challenged, oauth_app
from memory_git.http.openapi import answers, describe, plain
from memory_git.http.positions import SealedPositions
from memory_git.http.problems import JsonAnswer, install_problems
from memory_git.http.quick import Quick

OPEN_PATHS = ("/healthz", "/readyz", "/api/openapi.json")
OAUTH_PATHS = ("/.well-known/oauth-", "/oauth/token", "/oauth/register", "/oauth/revoke")
API_PATHS = ("/api/", "/healthz", "/readyz", "/metrics")
routes = router("gate", prefix="")


class GateHealth(TypedDict):
    """The process lives."""

    status: str
    version: str


class GateReadiness(TypedDict):
    """Both databases can be used."""

    status: str
    engine: str
    schema_version: int
    durability: str
    recovery_readonly: bool
    lethe: shapes.Readiness


class Doors:
    """Sends a request to the API, to MCP, to OAuth's endpoints or to the pages, by its path."""

    def __init__(self, app: ASGIApp, mcp: ASGIApp, oauth: ASGIApp, pages: ASGIApp | None) -> None:
        self.app = app
        self.mcp = mcp
        self.oauth = oauth
        self.pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        await self._door(scope)(scope, receive, send)

    def _door(self, scope: Scope) -> ASGIApp:
        path = scope.get("path", "")
        if scope["type"] != "http" or path.startswith(API_PATHS):
            return self.app
        if path == "/mcp" or path.startswith("/mcp/"):
            return self.mcp
        if path.startswith(OAUTH_PATHS):
            return self.oauth
        return self.pages or self.app


def create_charon_app(
    gate: Gate,
    *,
    pages: ASGIApp | None = None,
    hosts: Collection[str] = LOOPBACK_HOSTS,
    origins: Collection[str] = (),
    server_url: str = "/",
    public_url: str | None = None,
) -> FastAPI:
    """Gives the application; it neither opens nor closes the gate. Behind a proxy, `public_url` is what OAuth clients know."""
    mcp = LateMount()
    app = FastAPI(
        title="Charon",
        version=__version__,
        summary="The gate of Memory Git: who may read, write, propose, review and merge.",
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        servers=[{"url": server_url}],
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        lifespan=_lifespan,
    )
    app.state.gate = gate
    app.state.mcp = mcp
    app.state.metrics = FaceMetrics("charon")
    app.state.positions = SealedPositions()
    install_problems(app)
    for part in (routes, memory.routes, proposals.routes, administration.routes):
        app.include_router(part)
    describe(app, OPEN_PATHS)
    app.add_middleware(Doors, mcp=mcp, oauth=oauth_app(gate, public_url), pages=pages)
    app.add_middleware(Quick, roads={("POST", "/api/v1/projects/{project}/changesets"): commit_road(gate)})
    app.add_middleware(Challenged, gate=gate, public_url=public_url)
    app.add_middleware(HostAndOrigin, hosts=hosts, origins=origins)
    app.add_middleware(AtMost)
    app.add_middleware(LastCatch)
    app.add_middleware(Observed, metrics=app.state.metrics)
    return app


def mount_mcp(app: FastAPI, mcp: ASGIApp) -> None:
    """Puts the MCP face behind /mcp; called from a thread beside the running server. Its own path is /mcp too."""
    app.state.mcp.attach(mcp)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with app.state.mcp.opened():
        yield


@routes.get("/healthz", responses=answers(GateHealth))
async def health() -> JsonAnswer:
    """Says that the process lives."""
    return JsonAnswer({"status": "ok", "version": __version__})


@routes.get("/readyz", responses=answers(GateReadiness))
def ready(gate: TheGate) -> JsonAnswer:
    """Says that both databases can be used."""
    return JsonAnswer(gate.ready())


@routes.get("/metrics", response_class=Response, responses=plain("text/plain"))
def metrics(request: Request, gate: TheGate, caller: By) -> Response:
    """Gives the Prometheus text, to an administrator: a count may tell what its reader may not see."""
    counted: FaceMetrics = request.app.state.metrics
    return counted.exposition(gate.figures(caller))


@routes.get("/api/v1/live", response_class=StreamingResponse, responses=plain("text/event-stream"))
async def live(
    request: Request, gate: TheGate, caller: By, last_event_id: Annotated[str | None, Header()] = None
) -> StreamingResponse:
    """Streams what moves and what is proposed, as far as the caller may see it."""
    sees = partial(gate.may_see, caller)
    return live_answer(gate.feed, last_event_id, sees, request.app.state.positions)
