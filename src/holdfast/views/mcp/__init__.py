"""`holdfast mcp`: a server of the Model Context Protocol on stdin and stdout, for agents that orchestrate."""
