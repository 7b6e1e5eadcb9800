"""One conversation of langchain-mcp-adapters: road, then an address, or a command."""

import asyncio
import json
import os
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient

ROAD, *REST = sys.argv[1:]
TOKEN = os.environ["CHARON_TOKEN"]
SERVER = (
    {"transport": "streamable_http", "url": REST[0], "headers": {"Authorization": f"Bearer {TOKEN}"}}
    if ROAD == "http"
    else {
        "transport": "stdio",
        "command": REST[0],
        "args": REST[1:],
        "env": {"CHARON_TOKEN": TOKEN, "PYTHONPATH": os.environ["PYTHONPATH"]},
    }
)


async def main():
    client = MultiServerMCPClient({"memory": SERVER})
    tools = {tool.name: tool for tool in await client.get_tools()}

    async def call(name, **arguments):
        return await tools[name].ainvoke(
            {"type": "tool_call", "id": "1", "name": name, "args": arguments}
        )

    ops = [{"op_type": "add_memory", "payload": {"memory_id": "a", "content": "Releases go out on Fridays."}}]
    made = await call("memory_changeset_create", message="notes", read_head=True, ops=ops)
    status = await call("memory_status")
    refused = False
    try:
        answer = await call("memory_changeset_create", message="x", ops=[{}])
        refused = answer.status == "error"
    except Exception:
        refused = True
    told = {"tools": sorted(tools), "refused": refused}
    told |= {"made": made.artifact["structured_content"], "status": status.artifact["structured_content"]}
    print(json.dumps(told))


asyncio.run(main())
