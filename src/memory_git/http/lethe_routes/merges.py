"""Plans, conflicts and redactions (4-history, 5-lethe, 10-operations); a plan writes nothing."""

from __future__ import annotations

from memory_git.http.forms import After, Project, UpTo1000
from memory_git.http.lethe_routes import answers as shapes
from memory_git.http.lethe_routes import requests as bodies
from memory_git.http.lethe_routes.parts import Reader, Store, page_of, router
from memory_git.http.openapi import answers
from memory_git.http.problems import JsonAnswer
from memory_git.http.strict import CREATE_BYTES

routes = router("merges")


@routes.post("/{project}/merge/plan", responses=answers(shapes.Object, 409, 413))
def plan_merge(lethe: Store, project: Project, audience: Reader, body: bodies.MergePlanRequest) -> JsonAnswer:
    """Plans bringing a source into a target."""
    return JsonAnswer(lethe.plan_merge(project, body.target, body.source, audience))


@routes.post("/{project}/rebase/plan", responses=answers(shapes.Object, 409, 413))
def plan_rebase(lethe: Store, project: Project, body: bodies.RebasePlanRequest) -> JsonAnswer:
    """Plans replaying what a head has beyond another on top of it."""
    return JsonAnswer(lethe.plan_rebase(project, body.head, body.onto))


@routes.post("/{project}/cherry-pick/plan", responses=answers(shapes.Object, 409, 413))
def plan_cherry_pick(lethe: Store, project: Project, body: bodies.CherryPickPlanRequest) -> JsonAnswer:
    """Plans copies of selected ops on a head."""
    return JsonAnswer(lethe.plan_cherry_pick(project, body.selected, body.onto))


@routes.post("/{project}/revert/plan", responses=answers(shapes.Object, 409, 413))
def plan_revert(lethe: Store, project: Project, body: bodies.RevertPlanRequest) -> JsonAnswer:
    """Plans the ops that take back one changeset on a head."""
    return JsonAnswer(
        lethe.plan_revert(project, body.changeset_id, body.onto, body.mainline, body.from_changeset_id)
    )


@routes.post("/{project}/conflicts/detect", responses=answers(shapes.Conflicts, 413))
def detect_conflicts(
    lethe: Store, project: Project, audience: Reader, body: bodies.DetectRequest
) -> JsonAnswer:
    """Gives the conflicts between two heads from a base; writes nothing."""
    found = lethe.detect_conflicts(
        project, body.base_changeset_id, body.left_changeset_id, body.right_changeset_id, audience
    )
    return JsonAnswer({"conflicts": found, "count": len(found)})


@routes.get("/{project}/conflicts", responses=answers(shapes.Conflicts))
def list_conflicts(
    lethe: Store,
    project: Project,
    *,
    audience: Reader,
    status: str | None = None,
    proposal_id: str | None = None,
    limit: UpTo1000 = 100,
) -> JsonAnswer:
    """Gives stored conflicts."""
    found = lethe.list_conflicts(
        project, status=status, proposal_id=proposal_id, limit=limit, audience=audience
    )
    return JsonAnswer({"conflicts": found, "count": len(found)})


@routes.post(
    "/{project}/conflicts/persist",
    openapi_extra={"x-max-bytes": CREATE_BYTES},
    responses=answers(shapes.Persisted, 409, 413),
)
def persist_conflicts(lethe: Store, project: Project, body: bodies.PersistRequest) -> JsonAnswer:
    """Stores found conflicts, bound to a proposal."""
    stored = lethe.persist_conflicts(project, body.proposal_id, body.conflicts)
    return JsonAnswer({"persisted": stored, "proposal_id": body.proposal_id})


@routes.post("/{project}/conflicts/retire", responses=answers(shapes.Retired, 409, 413))
def retire_conflicts(lethe: Store, project: Project, body: bodies.RetireRequest) -> JsonAnswer:
    """Ends a proposal's open conflicts."""
    retired = lethe.retire_conflicts(project, body.proposal_id, body.status)
    return JsonAnswer({"retired": retired, "proposal_id": body.proposal_id, "status": body.status})


@routes.post("/{project}/conflicts/{conflict_id}/resolve", responses=answers(shapes.Resolved, 409, 413))
def resolve_conflict(
    lethe: Store, project: Project, conflict_id: str, body: bodies.ResolveRequest
) -> JsonAnswer:
    """Records a resolution with its reason."""
    resolved = lethe.resolve_conflict(
        project,
        conflict_id,
        outcome=body.outcome,
        resolution_note=body.resolution_note,
        principal=body.principal,
    )
    return JsonAnswer({"resolved": resolved})


@routes.post("/{project}/redact", responses=answers(shapes.Object, 409, 413))
def redact(lethe: Store, project: Project, body: bodies.RedactRequest) -> JsonAnswer:
    """Erases a memory and its lineage through every version, for good."""
    return JsonAnswer(lethe.redact(project, body.memory_id, principal=body.principal, reason=body.reason))


@routes.get("/{project}/redactions", responses=answers(shapes.Object))
def list_redactions(lethe: Store, project: Project, after: After = 0, limit: UpTo1000 = 1000) -> JsonAnswer:
    """Gives a page of the redactions of a project, oldest first; `next` is the `after` of the following one."""
    return JsonAnswer(page_of("redactions", lethe.list_redactions(project, after=after, limit=limit), limit))
