"""Claude Code's events, as values: see `dialect_claude`."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The version whose stream is imitated.
CLAUDE_CODE_VERSION = "2.1.197"


def init(session_id: str, model: str) -> dict[str, Any]:
    return {
        "type": "system",
        "subtype": "init",
        "cwd": os.getcwd(),
        "session_id": session_id,
        "tools": ["Bash", "Edit", "Read", "Write"],
        "mcp_servers": [],
        "model": model,
        "permissionMode": "bypassPermissions",
        "slash_commands": [],
        "apiKeySource": "none",
        "claude_code_version": CLAUDE_CODE_VERSION,
        "output_style": "default",
        "agents": [],
        "skills": [],
        "plugins": [],
    }


def message(message_id: str, model: str, block: dict[str, Any], request: tuple[int, int]) -> dict[str, Any]:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [block],
        "stop_reason": None,
        "stop_sequence": None,
        # As recorded: output_tokens is the value at the start of the message, not the sum.
        "usage": _usage(request[0], 1, request[1]),
        "context_management": None,
    }


def assistant(session_id: str, message: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "assistant",
        "message": message,
        "parent_tool_use_id": None,
        "session_id": session_id,
    }


def user(session_id: str, block: dict[str, Any]) -> dict[str, Any]:
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    return {
        "type": "user",
        "message": {"role": "user", "content": [block]},
        "parent_tool_use_id": None,
        "session_id": session_id,
        "timestamp": f"{stamp}.{int(now % 1 * 1000):03d}Z",
    }


def totals(model: str, tokens: tuple[int, int, int], cost_usd: float) -> dict[str, Any]:
    """Cost and tokens of the result: of this process, not of the session."""
    by_model: dict[str, Any] = {}
    if any(tokens) or cost_usd:
        by_model[model] = {
            "inputTokens": tokens[0],
            "outputTokens": tokens[1],
            "cacheReadInputTokens": tokens[2],
            "cacheCreationInputTokens": 0,
            "costUSD": cost_usd,
        }
    return {
        "total_cost_usd": cost_usd,
        "usage": _usage(*tokens) | {"service_tier": "standard"},
        "modelUsage": by_model,
    }


def _usage(input_tokens: int, output_tokens: int, cached_tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached_tokens,
        "output_tokens": output_tokens,
    }
