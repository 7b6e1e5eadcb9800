"""A stdio server that answers with what a remote server answers, in whichever era each side speaks.

It holds no policy: lists, calls, their progress, resources, prompts and completions are handed through as they are.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import mcp_types as types
from mcp.client import Client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from memory_git import __version__
from memory_git.mcp.progress import wants_progress
from memory_git.mcp.remote import connected
from memory_git.mcp.server import INSTRUCTIONS, NAME

Request = Any


async def serve_bridge(url: str, token: str, toolsets: str) -> None:
    """Serves on stdio until the client leaves."""
    address = f"{url.rstrip('/')}/mcp?toolsets={quote(toolsets, safe=',')}"
    async with (
        connected(address, token) as remote,
        stdio_server() as (read, write),
    ):
        server = bridge(remote)
        await server.run(read, write, server.create_initialization_options())


def bridge(remote: Client) -> Server[Any]:
    """Gives a server that asks a remote one."""

    async def list_tools(_: Request, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return await remote.list_tools(cursor=_cursor(params))

    async def call_tool(request: Request, params: types.CallToolRequestParams) -> types.CallToolResult:
        heard = request.session.report_progress if wants_progress(request.meta) else None
        return await remote.call_tool(params.name, params.arguments, progress_callback=heard)

    async def list_resources(
        _: Request, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await remote.list_resources(cursor=_cursor(params))

    async def list_templates(
        _: Request, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return await remote.list_resource_templates(cursor=_cursor(params))

    async def read_resource(_: Request, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await remote.read_resource(str(params.uri))

    async def list_prompts(
        _: Request, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return await remote.list_prompts(cursor=_cursor(params))

    async def get_prompt(_: Request, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await remote.get_prompt(params.name, params.arguments)

    async def complete(_: Request, params: types.CompleteRequestParams) -> types.CompleteResult:
        begun = {"name": params.argument.name, "value": params.argument.value}
        given = params.context.arguments if params.context is not None else None
        return await remote.complete(params.ref, begun, given)

    return Server(
        NAME,
        title="Memory Git",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
    )


def _cursor(params: types.PaginatedRequestParams | None) -> str | None:
    return params.cursor if params is not None else None
