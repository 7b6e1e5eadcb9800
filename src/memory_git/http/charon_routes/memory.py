"""Projects, refs, history, states, context and conflicts, as the caller may see them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from memory_git.http.charon_routes import requests as bodies
from memory_git.http.charon_routes.parts import By, Limit, Page, TheGate, router
from memory_git.http.lethe_routes import answers as shapes
from memory_git.http.openapi import answers
from memory_git.http.problems import JsonAnswer
from memory_git.http.strict import CREATE_BYTES

routes = router("memory")
MemoryId = Annotated[str, Query(alias="id")]


@routes.get("/whoami", responses=answers(shapes.Object))
def whoami(gate: TheGate, caller: By) -> JsonAnswer:
    """Says who the caller is and what it may do."""
    return JsonAnswer(gate.whoami(caller))


@routes.get("/projects", responses=answers(shapes.Object))
def list_projects(gate: TheGate, caller: By) -> JsonAnswer:
    """Gives the projects that the caller may know of."""
    return JsonAnswer({"projects": gate.list_projects(caller)})


@routes.post("/projects", responses=answers(shapes.Object, 409, 413))
def init_project(gate: TheGate, caller: By, body: bodies.ProjectRequest) -> JsonAnswer:
    """Starts a project; repeatable."""
    return JsonAnswer(gate.init_project(caller, body.project))


@routes.get("/projects/{project}/status", responses=answers(shapes.Object))
def status(gate: TheGate, caller: By, project: str) -> JsonAnswer:
    """Says where the caller's work stands against the accepted memory."""
    return JsonAnswer(gate.status(caller, project))


@routes.get("/projects/{project}/refs", responses=answers(shapes.Object))
def list_refs(gate: TheGate, caller: By, project: str) -> JsonAnswer:
    """Gives the refs that the caller may read."""
    return JsonAnswer({"refs": gate.list_refs(caller, project)})


@routes.post("/projects/{project}/refs", status_code=201, responses=answers(shapes.Ref, 409, 413, status=201))
def create_branch(gate: TheGate, caller: By, project: str, body: bodies.BranchRequest) -> JsonAnswer:
    """Creates a ref."""
    return JsonAnswer(gate.create_branch(caller, project, **body.given()), 201)


@routes.get("/projects/{project}/changesets", responses=answers(shapes.Log))
def log(
    gate: TheGate,
    caller: By,
    project: str,
    *,
    ref: str | None = None,
    limit: Page = 20,
    before: str | None = None,
    first_parent: bool = False,
) -> JsonAnswer:
    """Gives a page of history, newest first."""
    found = gate.log(caller, project, ref=ref, limit=limit, before=before, first_parent=first_parent)
    return JsonAnswer(found)


@routes.post(
    "/projects/{project}/changesets",
    status_code=201,
    openapi_extra={"x-max-bytes": CREATE_BYTES},
    responses=answers(shapes.Object, 409, 413, status=201, also={200: shapes.Object}),
)
def commit(gate: TheGate, caller: By, project: str, body: bodies.CommitRequest) -> JsonAnswer:
    """Commits to the caller's working ref or to one it names; 200 says that it is a replay."""
    done = gate.commit(caller, project, **body.given())
    return JsonAnswer(done, 200 if done["replayed"] else 201)


@routes.get("/projects/{project}/changesets/{changeset_id}", responses=answers(shapes.Object))
def show(gate: TheGate, caller: By, project: str, changeset_id: str) -> JsonAnswer:
    """Gives one changeset."""
    return JsonAnswer(gate.show(caller, project, changeset_id))


@routes.get("/projects/{project}/diff", responses=answers(shapes.Object))
def diff(
    gate: TheGate,
    caller: By,
    project: str,
    *,
    target: str,
    base: str | None = None,
    limit: Limit | None = None,
    after: str | None = None,
) -> JsonAnswer:
    """Gives the semantic diff of two changesets; with `limit` or `after` a page, whose `page.next` is the next one's `after`."""
    return JsonAnswer(gate.diff(caller, project, target, base, limit=limit, after=after))


@routes.get("/projects/{project}/memories", responses=answers(shapes.Memories))
def memories(
    gate: TheGate,
    caller: By,
    project: str,
    *,
    ref: str | None = None,
    head: str | None = None,
    limit: Page = 50,
    after: str | None = None,
    kind: str | None = None,
    status: str | None = None,
) -> JsonAnswer:
    """Gives a page of the memories at a head."""
    found = gate.memories(
        caller, project, ref=ref, head=head, limit=limit, after=after, kind=kind, status=status
    )
    return JsonAnswer(found)


@routes.get("/projects/{project}/memories/one", responses=answers(shapes.Object))
def memory(
    gate: TheGate,
    caller: By,
    project: str,
    *,
    memory_id: MemoryId,
    ref: str | None = None,
    head: str | None = None,
) -> JsonAnswer:
    """Gives one memory at a head."""
    return JsonAnswer(gate.memory(caller, project, memory_id, ref=ref, head=head))


@routes.get("/projects/{project}/memories/history", responses=answers(shapes.MemoryVersions))
def memory_history(
    gate: TheGate,
    caller: By,
    project: str,
    *,
    memory_id: MemoryId,
    ref: str | None = None,
    head: str | None = None,
) -> JsonAnswer:
    """Gives the versions of a memory."""
    return JsonAnswer(gate.memory_history(caller, project, memory_id, ref=ref, head=head))


@routes.get("/projects/{project}/search", responses=answers(shapes.Hits))
def search(
    gate: TheGate,
    caller: By,
    project: str,
    *,
    query: str,
    ref: str | None = None,
    head: str | None = None,
    limit: Page = 20,
) -> JsonAnswer:
    """Gives the memories that hold a word of the query, best first."""
    return JsonAnswer(gate.search(caller, project, query, ref=ref, head=head, limit=limit))


@routes.post("/projects/{project}/context", responses=answers(shapes.Object, 409, 413))
def context(gate: TheGate, caller: By, project: str, body: bodies.ContextRequest) -> JsonAnswer:
    """Gives the accepted memory for a prompt."""
    return JsonAnswer(gate.context(caller, project, **body.given()))


@routes.get("/manifests/{manifest_id}", responses=answers(shapes.Object))
def manifest(gate: TheGate, caller: By, manifest_id: str) -> JsonAnswer:
    """Gives a manifest."""
    return JsonAnswer(gate.manifest(caller, manifest_id))


@routes.get("/manifests/{manifest_id}/reproduce", responses=answers(shapes.Object, 409))
def reproduce(gate: TheGate, caller: By, manifest_id: str) -> JsonAnswer:
    """Rebuilds what a manifest pins."""
    return JsonAnswer(gate.reproduce(caller, manifest_id))


@routes.get("/projects/{project}/conflicts", responses=answers(shapes.Conflicts))
def conflicts(
    gate: TheGate, caller: By, project: str, status: str | None = None, proposal_id: str | None = None
) -> JsonAnswer:
    """Gives stored conflicts."""
    found = gate.conflicts(caller, project, status=status, proposal_id=proposal_id)
    return JsonAnswer({"conflicts": found, "count": len(found)})


@routes.post(
    "/projects/{project}/conflicts/{conflict_id}/resolve", responses=answers(shapes.Resolved, 409, 413)
)
def resolve_conflict(
    gate: TheGate, caller: By, project: str, conflict_id: str, body: bodies.ResolveRequest
) -> JsonAnswer:
    """Records a resolution with its reason."""
    return JsonAnswer(
        {"resolved": gate.resolve_conflict(caller, project, conflict_id, body.outcome, body.note)}
    )
