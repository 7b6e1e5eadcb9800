"""What each page shows: one or two verbs of the gate, then a template."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from memory_git.charon.caller import Caller
from memory_git.charon.gate import Gate
from memory_git.domain.errors import NotAllowed
from memory_git.domain.ids import SHARED_MAIN
from memory_git.lethe.protocol import Json
from memory_git.web.conflict_view import shown_conflicts
from memory_git.web.diff_view import sections
from memory_git.web.page import page

_PAGE_SIZE = 50


def projects(request: Request, gate: Gate, caller: Caller) -> Response:
    """Shows the projects that the caller may know of, and how each stands where they may read it."""
    stands = [_stand(gate, caller, project) for project in gate.list_projects(caller)]
    return page(request, "projects.html", stands=stands)


def _stand(gate: Gate, caller: Caller, project: str) -> Json:
    try:
        return gate.status(caller, project)
    except NotAllowed:
        return {"project": project}


def accepted(request: Request, gate: Gate, caller: Caller) -> Response:
    """Shows the accepted memory, all of it by pages, or what holds a word of the filter."""
    project, words = request.path_params["project"], request.query_params.get("words", "").strip()
    if words:
        found = gate.search(caller, project, words, ref=SHARED_MAIN, limit=_PAGE_SIZE)
        entries, following = found["hits"], None
    else:
        after = request.query_params.get("after") or None
        found = gate.memories(caller, project, ref=SHARED_MAIN, limit=_PAGE_SIZE, after=after)
        entries, following = found["memories"], found.get("next")
    facts = {"entries": entries, "total": found["total"], "following": following, "words": words}
    return page(request, "accepted.html", project=project, **facts)


def memory(request: Request, gate: Gate, caller: Caller) -> Response:
    """Shows one memory with its edges, evidence and whole history."""
    project, memory_id = request.path_params["project"], request.query_params.get("id", "")
    entry = gate.memory(caller, project, memory_id, ref=SHARED_MAIN)
    history = gate.memory_history(caller, project, memory_id, ref=SHARED_MAIN)
    return page(request, "memory.html", project=project, entry=entry, versions=history["versions"])


def proposals(request: Request, gate: Gate, caller: Caller) -> Response:
    """Shows the proposals of a project, the open ones unless another status is asked for."""
    project, status = request.path_params["project"], request.query_params.get("status", "open")
    after = request.query_params.get("after") or None
    found = gate.proposals(caller, project, status=status or None, limit=_PAGE_SIZE, after=after)
    facts = {"proposals": found["proposals"], "following": found.get("next"), "status": status}
    return page(request, "proposals.html", project=project, **facts)


def proposal(request: Request, gate: Gate, caller: Caller) -> Response:
    """Shows one proposal: what it would change, what stands against it, who judged it how."""
    found = gate.proposal(caller, request.path_params["proposal_id"])
    return page(
        request,
        "proposal.html",
        project=found["project_id"],
        proposal=found,
        conflicts=shown_conflicts(gate, caller, found["conflicts"]),
        sections=sections(found["diff"]),
    )


def conflicts(request: Request, gate: Gate, caller: Caller) -> Response:
    """Shows stored conflicts with both sides, the open ones unless another status is asked for."""
    project, status = request.path_params["project"], request.query_params.get("status", "open")
    found = gate.conflicts(caller, project, status=status or None)
    shown = shown_conflicts(gate, caller, found)
    return page(request, "conflicts.html", project=project, conflicts=shown, status=status)
