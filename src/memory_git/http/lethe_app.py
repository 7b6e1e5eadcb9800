"""Lethe's HTTP API (5-lethe): the routes over one store, behind its one bearer."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Annotated, Protocol, cast

from fastapi import FastAPI, Header, Request
from starlette.responses import Response, StreamingResponse

from memory_git import __version__
from memory_git.http.lethe_routes import answers as shapes
from memory_git.http.lethe_routes import events, history, merges, states
from memory_git.http.lethe_routes import requests as bodies
from memory_git.http.lethe_routes.committing import Committing, create_road
from memory_git.http.lethe_routes.parts import Store, router
from memory_git.http.limits import LOOPBACK_HOSTS, AtMost, BearerCheck, HostAndOrigin, LastCatch
from memory_git.http.live import live_answer
from memory_git.http.metrics import FaceMetrics, Observed
from memory_git.http.openapi import answers, describe, plain
from memory_git.http.problems import JsonAnswer, install_problems
from memory_git.http.quick import Quick
from memory_git.lethe.feed import Feed
from memory_git.lethe.protocol import Lethe
from memory_git.lethe.rates import Rates

OPEN_PATHS = ("/api/health", "/api/readyz", "/api/openapi.json")
routes = router("store", prefix="/api")


class FedLethe(Lethe, Committing, Protocol):
    """A store of this process: the verbs, its live feed, and what it counts."""

    feed: Feed

    def figures(self) -> dict[str, float]:
        """Gives what was counted since the store was opened, by the metrics' names."""
        ...


def create_lethe_app(
    lethe: FedLethe,
    *,
    api_key: str | Callable[[], Collection[str]],
    hosts: Collection[str] = LOOPBACK_HOSTS,
    server_url: str = "/",
    requests_per_s: int = 0,
) -> FastAPI:
    """Gives the application; it neither opens nor closes the store.

    `api_key` is the bearer, or what gives those that count now. `requests_per_s`: of a project, and of a principal; 0 for any.
    """
    app = FastAPI(
        title="Lethe",
        version=__version__,
        summary="The store of Memory Git: changesets, refs, states, conflicts, manifests.",
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        servers=[{"url": server_url}],
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.lethe = lethe
    app.state.metrics = FaceMetrics("lethe")
    app.state.rates = Rates(requests_per_s) if requests_per_s else None
    install_problems(app)
    for part in (routes, history.routes, states.routes, merges.routes, events.routes):
        app.include_router(part)
    describe(app, OPEN_PATHS)
    app.add_middleware(Quick, roads={("POST", "/api/memory/changesets"): create_road(lethe)})
    app.add_middleware(
        BearerCheck, keys=api_key if callable(api_key) else (lambda: (api_key,)), open_paths=OPEN_PATHS
    )
    app.add_middleware(HostAndOrigin, hosts=hosts)
    app.add_middleware(AtMost)
    app.add_middleware(LastCatch)
    app.add_middleware(Observed, metrics=app.state.metrics)
    return app


@routes.get("/health", responses=answers(shapes.Health))
def health(lethe: Store) -> JsonAnswer:
    """Says that the process lives."""
    return JsonAnswer(lethe.health())


@routes.get("/readyz", responses=answers(shapes.Readiness))
def ready(lethe: Store) -> JsonAnswer:
    """Says that database, schema and durability settings are right."""
    return JsonAnswer(lethe.ready())


@routes.get("/metrics", response_class=Response, responses=plain("text/plain"))
def metrics(request: Request) -> Response:
    """Gives the Prometheus text."""
    counted: FaceMetrics = request.app.state.metrics
    return counted.exposition(cast(FedLethe, request.app.state.lethe).figures())


@routes.post("/backup", responses=answers(shapes.Object, 409, 413))
def backup(lethe: Store, body: bodies.BackupRequest) -> JsonAnswer:
    """Writes a consistent copy of the database into a directory of the server's machine."""
    return JsonAnswer(lethe.backup(body.to_directory))


@routes.get("/live", response_class=StreamingResponse, responses=plain("text/event-stream"))
async def live(
    request: Request, project: str | None = None, last_event_id: Annotated[str | None, Header()] = None
) -> StreamingResponse:
    """Streams what moves, from now on or from `Last-Event-ID`; one project's when it is named."""
    feed = cast(FedLethe, request.app.state.lethe).feed
    return live_answer(feed, last_event_id, lambda event: project in (None, event.project_id))
