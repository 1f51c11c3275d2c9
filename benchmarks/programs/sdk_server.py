"""An MCP server with one tool on the official SDK; run by the interpreter of the SDK's own environment."""

# pyright: basic, reportMissingImports=false
from mcp.server.mcpserver import MCPServer  # noqa: TID253 - no part of holdfast

server = MCPServer("bench")


@server.tool()
def digest(since: str = "") -> dict[str, str]:
    """What changed."""
    return {"since": since}


server.run()
