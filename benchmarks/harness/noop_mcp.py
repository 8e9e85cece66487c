"""An MCP server with one tool that does nothing, as the SDK's own documentation makes one: the peer of ours."""

from __future__ import annotations

from mcp.server import MCPServer

server: MCPServer = MCPServer("noop")


@server.tool()
def noop() -> str:
    """Do nothing."""
    return "done"


if __name__ == "__main__":
    server.run("stdio")
