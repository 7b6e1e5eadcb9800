"""Resources: the accepted view of a ref, a changeset, a proposal, one memory; each fenced, each for its caller alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mcp.server.mcpserver import ResourceSecurity

from memory_git.charon.gate import Caller, Gate
from memory_git.domain.errors import NotFound
from memory_git.mcp.answers import dumped, fence, fitted
from memory_git.mcp.rendering import context_markdown, entry_markdown

if TYPE_CHECKING:
    from memory_git.mcp.server import MemoryServer

MARKDOWN = "text/markdown"
VIEW_LIMIT = 100
_AS_GIVEN = ResourceSecurity(exempt_params={"project", "ref", "changeset_id", "proposal_id", "memory_id"})
"""No path of a file system is made of these: the gate checks each as the id or name that it is."""


def add_resources(server: MemoryServer) -> None:
    """Adds the resource templates; the most general one comes last, for the first match is taken."""

    @server.resource(
        "memory://{project}/changesets/{changeset_id}",
        title="A changeset",
        description="One changeset with its ops, as you may see it.",
        mime_type=MARKDOWN,
        security=_AS_GIVEN,
    )
    async def changeset(project: str, changeset_id: str) -> str:
        return await read(
            server, lambda gate, caller: dumped(fitted(gate.show(caller, project, changeset_id))[0])
        )

    @server.resource(
        "memory://{project}/proposals/{proposal_id}",
        title="A proposal",
        description="What is proposed: diff, conflicts, reviews, what is missing to merge it.",
        mime_type=MARKDOWN,
        security=_AS_GIVEN,
    )
    async def proposal(project: str, proposal_id: str) -> str:
        return await read(server, lambda gate, caller: proposal_text(gate, caller, project, proposal_id))

    @server.resource(
        "memory://{project}/memories/{+memory_id}",
        title="A memory",
        description="One memory as your working branch, or accepted memory, has it.",
        mime_type=MARKDOWN,
        security=_AS_GIVEN,
    )
    async def memory(project: str, memory_id: str) -> str:
        return await read(
            server, lambda gate, caller: entry_markdown(gate.memory(caller, project, unquote(memory_id)))
        )

    @server.resource(
        "memory://{project}/{+ref}",
        title="Memory at a ref",
        description="The accepted view of a ref, such as refs/shared/main, as Markdown.",
        mime_type=MARKDOWN,
        security=_AS_GIVEN,
    )
    async def view(project: str, ref: str) -> str:
        return await read(
            server,
            lambda gate, caller: context_markdown(gate.context(caller, project, ref=ref, limit=VIEW_LIMIT)),
        )


async def read(server: MemoryServer, work: Callable[[Gate, Caller], str]) -> str:
    """Gives a text that the gate gave, fenced."""
    return fence(await server.in_thread(lambda caller: work(server.gate, caller)))


def proposal_text(gate: Gate, caller: Caller, project: str | None, proposal_id: str) -> str:
    """Gives a proposal as JSON; one of another project than the named is not found."""
    found = gate.proposal(caller, proposal_id)
    if project is not None and found["project_id"] != project:
        raise NotFound("not_found", "not found, or not for you to know of")
    return dumped(fitted(found)[0])
