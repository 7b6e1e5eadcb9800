"""Projects, refs and changesets (5-lethe, HTTP API)."""

from __future__ import annotations

from memory_git.http.forms import After, Project, RefQuery, UpTo200, UpTo1000
from memory_git.http.lethe_routes import answers as shapes
from memory_git.http.lethe_routes import requests as bodies
from memory_git.http.lethe_routes.parts import Reader, Store, page_of, router
from memory_git.http.openapi import answers
from memory_git.http.problems import JsonAnswer
from memory_git.http.strict import CREATE_BYTES
from memory_git.lethe import wire

routes = router("history")


@routes.get("/projects", responses=answers(shapes.Projects))
def list_projects(lethe: Store) -> JsonAnswer:
    """Gives the projects, by id."""
    return JsonAnswer({"projects": wire.projects_to_wire(lethe.list_projects())})


@routes.post(
    "/changesets",
    status_code=201,
    openapi_extra={"x-max-bytes": CREATE_BYTES},
    responses=answers(shapes.Changeset, 409, 413, status=201, also={200: shapes.Changeset}),
)
def create_changeset(lethe: Store, body: bodies.CreateRequest) -> JsonAnswer:
    """Validates and stores a changeset; 200 says that it is a replay of an earlier equal request."""
    changeset, replayed = lethe.create_changeset(body)
    return JsonAnswer(changeset, 200 if replayed else 201)


@routes.post(
    "/changesets/prepare",
    openapi_extra={"x-max-bytes": CREATE_BYTES},
    responses=answers(shapes.Preparation, 413),
)
def prepare_changeset(lethe: Store, body: bodies.CreateRequest) -> JsonAnswer:
    """Gives what the author of a changeset signs: its authored view, with parents, ids and salts filled in; stores nothing."""
    return JsonAnswer(lethe.prepare_changeset(body))


@routes.get("/changesets/{changeset_id}", responses=answers(shapes.Changeset))
def get_changeset(lethe: Store, changeset_id: str, audience: Reader) -> JsonAnswer:
    """Gives one changeset."""
    return JsonAnswer(lethe.get_changeset(changeset_id, audience))


@routes.post("/changesets/{changeset_id}/diff", responses=answers(shapes.Object, 413))
def diff(
    lethe: Store,
    changeset_id: str,
    *,
    audience: Reader,
    limit: UpTo1000 | None = None,
    after: str | None = None,
    body: bodies.DiffRequest | None = None,
) -> JsonAnswer:
    """Gives the semantic diff from a base (the first parent when none is named) to a changeset, whole or by pages.

    With `limit` or `after` it is a page, and `page.next` is the `after` of the following one.
    """
    base = body.base_changeset_id or None if body else None
    return JsonAnswer(wire.diff_to_wire(lethe.diff(changeset_id, base, audience, limit=limit, after=after)))


@routes.post("/{project}/legacy-root", responses=answers(shapes.ProjectStart))
def init_project(lethe: Store, project: Project) -> JsonAnswer:
    """Creates a project with its root, frozen baseline and protected refs/shared/main; repeatable."""
    return JsonAnswer(lethe.init_project(project))


@routes.post("/{project}/branches", status_code=201, responses=answers(shapes.Ref, 409, 413, status=201))
def create_branch(lethe: Store, project: Project, body: bodies.BranchRequest) -> JsonAnswer:
    """Creates a ref at a changeset."""
    ref = lethe.create_branch(project, body.ref_name, body.head_changeset_id, body.principal, body.protected)
    return JsonAnswer(ref, 201)


@routes.get("/{project}/refs", responses=answers(list[shapes.Ref]))
def list_refs(lethe: Store, project: Project, after: str = "", limit: UpTo1000 | None = None) -> JsonAnswer:
    """Gives the refs by name, beyond the name `after`; all of them, or so many."""
    return JsonAnswer(lethe.list_refs(project, after=after, limit=limit))


@routes.get("/{project}/refs/resolve", responses=answers(shapes.Ref))
def resolve_ref(lethe: Store, project: Project, name: RefQuery, at: str | None = None) -> JsonAnswer:
    """Gives a ref, with the head that it has, or had at a time or changeset."""
    return JsonAnswer(lethe.resolve_ref(project, name, at))


@routes.get("/{project}/refs/log", responses=answers(shapes.RefLog))
def ref_log(
    lethe: Store, project: Project, name: RefQuery, after: After = 0, limit: UpTo1000 = 1000
) -> JsonAnswer:
    """Gives a page of the moves of a ref, oldest first; `next` is the `after` of the following one."""
    return JsonAnswer(page_of("moves", lethe.ref_log(project, name, after=after, limit=limit), limit))


@routes.post("/{project}/refs/advance", responses=answers(shapes.Ref, 409, 413))
def advance_ref(lethe: Store, project: Project, body: bodies.AdvanceRequest) -> JsonAnswer:
    """Moves an unprotected ref by compare-and-swap to a descendant."""
    return JsonAnswer(
        lethe.advance_ref(project, body.ref_name, body.expected_head, body.new_head, body.principal)
    )


@routes.post("/{project}/refs/merge", responses=answers(shapes.Ref, 409, 413))
def merge_ref(lethe: Store, project: Project, body: bodies.MergeRequest) -> JsonAnswer:
    """Moves a protected ref on a signed authorization."""
    return JsonAnswer(lethe.merge_ref(project, body))


@routes.get("/{project}/changesets", responses=answers(shapes.Log))
def log(
    lethe: Store,
    project: Project,
    *,
    audience: Reader,
    ref: RefQuery | None = None,
    head: str | None = None,
    limit: UpTo200 = 20,
    before: str | None = None,
    first_parent: bool = False,
) -> JsonAnswer:
    """Gives a page of ancestors, newest first in topological order; `before` is the `next` of the page before."""
    found = lethe.log(
        project, ref, head=head, limit=limit, before=before, first_parent=first_parent, audience=audience
    )
    return JsonAnswer(found)


@routes.get("/{project}/ancestry", responses=answers(shapes.IsAncestor))
def is_ancestor(lethe: Store, project: Project, ancestor: str, descendant: str) -> JsonAnswer:
    """Decides whether a changeset is reachable from another."""
    return JsonAnswer({"is_ancestor": lethe.is_ancestor(project, ancestor, descendant)})


@routes.get("/{project}/merge-base", responses=answers(shapes.Bases))
def merge_base(lethe: Store, project: Project, left: str, right: str) -> JsonAnswer:
    """Gives all best common ancestors, sorted."""
    return JsonAnswer({"merge_base": lethe.merge_base(project, left, right)})


@routes.get("/{project}/authors", responses=answers(shapes.Authors))
def authors(lethe: Store, project: Project, head: str, without: str) -> JsonAnswer:
    """Gives the author principals of what is reachable from `head` and not from `without`."""
    return JsonAnswer({"authors": lethe.authors(project, head, without)})


@routes.get("/{project}/advances", responses=answers(shapes.Advances))
def list_advances(lethe: Store, project: Project, after: After = 0, limit: UpTo1000 = 1000) -> JsonAnswer:
    """Gives a page of the protected advances, oldest first; `next` is the `after` of the following one."""
    return JsonAnswer(page_of("advances", lethe.list_advances(project, after=after, limit=limit), limit))


@routes.get("/{project}/verification", responses=answers(shapes.Verification))
def verify(lethe: Store, project: Project) -> JsonAnswer:
    """Recomputes every digest, root, chain and derived row of a project."""
    return JsonAnswer(lethe.verify(project))
