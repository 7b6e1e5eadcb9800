"""The least that a tool of the MCP SDK can do, on stdio: the peer of `mcp_call`."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("trivial")


@server.tool()
def greet(name: str) -> str:
    """Gives a greeting."""
    return f"Hello, {name}."


if __name__ == "__main__":
    server.run()
