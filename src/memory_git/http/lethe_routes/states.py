"""Memories at a state, context and manifests (5-lethe, 7-context)."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from memory_git.http.forms import Project, RefOrNone, UpTo100, UpTo200
from memory_git.http.lethe_routes import answers as shapes
from memory_git.http.lethe_routes import requests as bodies
from memory_git.http.lethe_routes.parts import Reader, Store, router
from memory_git.http.openapi import answers
from memory_git.http.problems import JsonAnswer
from memory_git.lethe import wire

routes = router("states")
MemoryId = Annotated[str, Query(alias="id")]


@routes.post("/manifests", status_code=201, responses=answers(shapes.Object, 409, 413, status=201))
def create_manifest(lethe: Store, body: bodies.ManifestRequest) -> JsonAnswer:
    """Checks and stores a manifest."""
    return JsonAnswer(lethe.create_manifest(body), 201)


@routes.get("/manifests/{manifest_id}", responses=answers(shapes.Object))
def get_manifest(lethe: Store, manifest_id: str) -> JsonAnswer:
    """Gives a manifest: ids and digests, no text."""
    return JsonAnswer(lethe.get_manifest(manifest_id))


@routes.get("/manifests/{manifest_id}/reproduce", responses=answers(shapes.Object, 409))
def reproduce(lethe: Store, manifest_id: str, audience: Reader) -> JsonAnswer:
    """Rebuilds the records that a manifest pins from history."""
    return JsonAnswer(lethe.reproduce(manifest_id, audience))


@routes.get("/{project}/memories", responses=answers(shapes.Memories))
def memories(
    lethe: Store,
    project: Project,
    *,
    audience: Reader,
    head: str,
    limit: UpTo200 = 50,
    after: str | None = None,
    kind: str | None = None,
    status: str | None = None,
) -> JsonAnswer:
    """Gives a page of the records at a state."""
    found = lethe.memories(
        project, head, limit=limit, after=after, kind=kind, status=status, audience=audience
    )
    return JsonAnswer(found)


@routes.get("/{project}/memories/one", responses=answers(shapes.MemoryAt))
def memory(lethe: Store, project: Project, audience: Reader, memory_id: MemoryId, head: str) -> JsonAnswer:
    """Gives one memory at a state, with its edges and proof."""
    return JsonAnswer(lethe.memory(project, head, memory_id, audience))


@routes.get("/{project}/memories/history", responses=answers(shapes.MemoryVersions))
def memory_history(
    lethe: Store, project: Project, audience: Reader, memory_id: MemoryId, head: str
) -> JsonAnswer:
    """Gives the versions of a memory, newest first."""
    return JsonAnswer(lethe.memory_history(project, head, memory_id, audience))


@routes.get("/{project}/memories/search", responses=answers(shapes.Hits))
def search(
    lethe: Store, project: Project, *, audience: Reader, head: str, query: str, limit: UpTo200 = 20
) -> JsonAnswer:
    """Gives the memories at a state that hold a word of the query, best first."""
    return JsonAnswer(lethe.search(project, head, query, limit=limit, audience=audience))


@routes.get("/{project}/context", responses=answers(shapes.Object, 409))
def read_context(
    lethe: Store,
    project: Project,
    *,
    audience: Reader,
    ref_name: RefOrNone | None = None,
    ref: Annotated[RefOrNone | None, Query(description="The same as ref_name")] = None,
    head_changeset_id: str | None = None,
    head: Annotated[str | None, Query(description="The same as head_changeset_id")] = None,
    query: str | None = None,
    limit: UpTo100 | None = None,
    max_tokens: Annotated[int, Query(json_schema_extra={"minimum": 1})] | None = None,
    session_id: str | None = None,
    now: str | None = None,
) -> JsonAnswer:
    """Gives the accepted memory for a prompt, of refs/shared/main when no ref is named; writes nothing."""
    asked = {
        "ref_name": ref_name or ref,
        "head_changeset_id": head_changeset_id or head,
        "query": query,
        "limit": limit,
        "max_tokens": max_tokens,
        "session_id": session_id,
        "now": now,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    return JsonAnswer(wire.context_to_wire(lethe.context(project, wire.context_request(given), audience)))


@routes.post("/{project}/context", responses=answers(shapes.Object, 409, 413))
def context(lethe: Store, project: Project, audience: Reader, body: bodies.ContextRequest) -> JsonAnswer:
    """Gives the accepted memory for a prompt, with a manifest where one is asked for."""
    return JsonAnswer(wire.context_to_wire(lethe.context(project, wire.context_request(body), audience)))
