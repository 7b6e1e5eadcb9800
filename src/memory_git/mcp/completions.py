"""Completions of the arguments of prompts and resource templates (6-charon, MCP).

1. Suggestions are what the caller's own lists say: projects, refs, open proposals, latest changesets, memories; of a long list its first pages.
2. Where the caller may not look, or an argument is not known, there is nothing to suggest: never an error that tells more.
3. Only ids and names are told, never stored text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mcp_types import Completion, CompletionArgument, CompletionContext

from memory_git.charon.gate import Caller, Gate
from memory_git.charon.history import MAX_PAGE
from memory_git.domain.errors import Invalid, NotAllowed, NotFound

if TYPE_CHECKING:
    from memory_git.mcp.server import MemoryServer

MAX_VALUES = 100
_PAGES = 5
Source = Callable[[Gate, Caller, str | None], list[str]]


def add_completions(server: MemoryServer) -> None:
    """Adds the completions."""

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete(
        _reference: object, argument: CompletionArgument, context: CompletionContext | None
    ) -> Completion:
        project = (context.arguments or {}).get("project") if context is not None else None
        return await server.in_thread(
            lambda caller: completion(server.gate, caller, argument.name, argument.value, project)
        )


def completion(gate: Gate, caller: Caller, name: str, begun: str, project: str | None) -> Completion:
    """Gives what begins as the person has begun, at most MAX_VALUES of it."""
    try:
        known = _SOURCES[name](gate, caller, project or None) if name in _SOURCES else []
    except (Invalid, NotAllowed, NotFound):
        known = []
    fitting = [value for value in known if value.startswith(begun)]
    return Completion(values=fitting[:MAX_VALUES], total=len(fitting), has_more=len(fitting) > MAX_VALUES)


def _projects(gate: Gate, caller: Caller, _project: str | None) -> list[str]:
    return gate.list_projects(caller)


def _refs(gate: Gate, caller: Caller, project: str | None) -> list[str]:
    return [str(ref["ref_name"]) for ref in gate.list_refs(caller, project)]


def _proposals(gate: Gate, caller: Caller, project: str | None) -> list[str]:
    page = gate.proposals(caller, project, status="open", limit=MAX_VALUES)
    return [str(item["proposal_id"]) for item in page["proposals"]]


def _changesets(gate: Gate, caller: Caller, project: str | None) -> list[str]:
    return [str(item["changeset_id"]) for item in gate.log(caller, project, limit=MAX_PAGE)["changesets"]]


def _memories(gate: Gate, caller: Caller, project: str | None) -> list[str]:
    found: list[str] = []
    after = None
    for _ in range(_PAGES):
        page = gate.memories(caller, project, limit=MAX_PAGE, after=after)
        found += [str(item["memory_id"]) for item in page["memories"]]
        after = page.get("next")
        if after is None:
            break
    return sorted(found)


_SOURCES: Mapping[str, Source] = {
    "project": _projects,
    "ref": _refs,
    "base": _refs,
    "target": _refs,
    "proposal_id": _proposals,
    "changeset_id": _changesets,
    "memory_id": _memories,
}
