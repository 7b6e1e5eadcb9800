"""The event history and the ledger of context assemblies (5-lethe, 7-context)."""

from __future__ import annotations

from memory_git.http.forms import After, ProjectQuery, UpTo1000
from memory_git.http.lethe_routes import answers as shapes
from memory_git.http.lethe_routes import requests as bodies
from memory_git.http.lethe_routes.parts import Reader, Store, router
from memory_git.http.openapi import answers
from memory_git.http.problems import JsonAnswer
from memory_git.lethe import wire

routes = router("events", prefix="/api")


@routes.post("/events", status_code=201, responses=answers(shapes.Event, 409, 413, status=201))
def append_event(lethe: Store, body: bodies.EventRequest) -> JsonAnswer:
    """Appends one event."""
    event = {name: value for name, value in body.items() if name != "project_id"}
    return JsonAnswer(lethe.append_event(body.get("project_id", ""), event), 201)


@routes.get("/events", responses=answers(shapes.Events))
def list_events(
    lethe: Store, audience: Reader, project: ProjectQuery, after: After = 0, limit: UpTo1000 = 100
) -> JsonAnswer:
    """Gives events by seq."""
    return JsonAnswer({"events": lethe.list_events(project, after=after, limit=limit, audience=audience)})


@routes.get("/events/{event_id:path}", responses=answers(shapes.Event))
def get_event(lethe: Store, event_id: str) -> JsonAnswer:
    """Gives one event."""
    return JsonAnswer(lethe.get_event(event_id))


@routes.post(
    "/sessions/{key:path}/assemblies", status_code=201, responses=answers(shapes.Object, 409, 413, status=201)
)
def record_assembly(lethe: Store, key: str, body: bodies.AssemblyRequest) -> JsonAnswer:
    """Records what a model call was given; a report of the original's plugin is taken too."""
    if wire.is_report(body):
        pinned = lethe.get_changeset(body.get("memory_head_changeset_id") or "")
        body = wire.assembly_of_report(body, pinned["project_id"])
    return JsonAnswer(lethe.record_assembly(key, body), 201)


@routes.get("/sessions/{key:path}/assemblies", responses=answers(shapes.Assemblies))
def list_assemblies(lethe: Store, key: str) -> JsonAnswer:
    """Gives a session's assemblies, oldest first."""
    return JsonAnswer({"assemblies": lethe.list_assemblies(key)})


@routes.get("/assemblies/{assembly_id}", responses=answers(shapes.Object))
def get_assembly(lethe: Store, assembly_id: str) -> JsonAnswer:
    """Gives one assembly."""
    return JsonAnswer(lethe.get_assembly(assembly_id))


@routes.post("/assemblies/{assembly_id}/feedback", responses=answers(shapes.Object, 409, 413))
def give_feedback(lethe: Store, assembly_id: str, body: bodies.FeedbackRequest) -> JsonAnswer:
    """Records a verdict on an assembly."""
    return JsonAnswer(lethe.give_feedback(assembly_id, body.verdict, body.note))
