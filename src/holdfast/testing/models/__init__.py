"""Model servers with scripted answers, on loopback, for testing agents without a model.

with ModelServer([tool("Bash", {"command": "ls"}), text("done")]) as server:
    subprocess.run(["claude", "-p", "look around"], env=os.environ | server.env("claude", home))
    assert "look around" in last_user_text(server.conversations()[0])
"""

from __future__ import annotations

from holdfast.testing.models.builders import (
    bad_request,
    call,
    context_too_long,
    drop,
    empty,
    failure,
    forbidden,
    model_not_found,
    overloaded,
    quota,
    rate_limit,
    raw,
    server_error,
    shell,
    slow,
    stall,
    text,
    tool,
    tools,
    unauthorized,
    unavailable,
    usage_limit,
    write,
)
from holdfast.testing.models.reading import (
    ToolCall,
    ToolResult,
    all_texts,
    last_user_text,
    offered_tools,
    passages,
    system_text,
    tool_calls,
    tool_results,
    user_texts,
)
from holdfast.testing.models.record import ModelRequest, read_log
from holdfast.testing.models.script import Rule, Script
from holdfast.testing.models.script_file import from_data as script_from_data
from holdfast.testing.models.script_file import load as load_script
from holdfast.testing.models.server import ModelServer
from holdfast.testing.models.settings import Setup
from holdfast.testing.models.shapes import OfferedTool, Passage
from holdfast.testing.models.turns import Call, ScriptError, Turn, Usage

__all__ = [
    "Call",
    "ModelRequest",
    "ModelServer",
    "OfferedTool",
    "Passage",
    "Rule",
    "Script",
    "ScriptError",
    "Setup",
    "ToolCall",
    "ToolResult",
    "Turn",
    "Usage",
    "all_texts",
    "bad_request",
    "call",
    "context_too_long",
    "drop",
    "empty",
    "failure",
    "forbidden",
    "last_user_text",
    "load_script",
    "model_not_found",
    "offered_tools",
    "overloaded",
    "passages",
    "quota",
    "rate_limit",
    "raw",
    "read_log",
    "script_from_data",
    "server_error",
    "shell",
    "slow",
    "stall",
    "system_text",
    "text",
    "tool",
    "tool_calls",
    "tool_results",
    "tools",
    "unauthorized",
    "unavailable",
    "usage_limit",
    "user_texts",
    "write",
]
