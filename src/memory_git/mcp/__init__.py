"""The MCP face: the only package that imports the MCP SDK, and only when it serves or calls MCP."""
