"""One conversation of openai-agents' MCP client, and its tools as functions for a model: road, then an address, or a command."""

import asyncio
import json
import os
import sys

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, MCPUtil

ROAD, *REST = sys.argv[1:]
TOKEN = os.environ["CHARON_TOKEN"]


def server():
    if ROAD == "http":
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return MCPServerStreamableHttp(params={"url": REST[0], "headers": headers})
    environment = {"CHARON_TOKEN": TOKEN, "PYTHONPATH": os.environ["PYTHONPATH"]}
    return MCPServerStdio(
        params={"command": REST[0], "args": REST[1:], "env": environment}, client_session_timeout_seconds=60
    )


async def main():
    async with server() as memory:
        tools = await memory.list_tools()
        functions = [MCPUtil.to_function_tool(tool, memory, True) for tool in tools]

        async def call(name, **arguments):
            return (await memory.call_tool(name, arguments)).model_dump(by_alias=True)

        ops = [{"op_type": "add_memory", "payload": {"memory_id": "a", "content": "Releases go out on Fridays."}}]
        made = await call("memory_changeset_create", message="notes", read_head=True, ops=ops)
        status = await call("memory_status")
        refused = await call("memory_changeset_create", message="x", ops=[{}])
        told = {"tools": sorted(function.name for function in functions), "refused": refused["isError"]}
        told |= {"made": made["structuredContent"], "status": status["structuredContent"]}
        print(json.dumps(told))


asyncio.run(main())
