"""Read what the client sent to the model, in the same way for every API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.testing.models.record import ModelRequest
    from holdfast.testing.models.shapes import OfferedTool, Passage


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """The result of a tool call, as the client sent it to the model."""

    id: str
    name: str
    """The tool; empty if the call is not part of the request."""
    text: str
    is_error: bool
    """Reported only by Anthropic and Gemini clients."""


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A tool call of the model, as the client sent it back."""

    id: str
    name: str
    arguments: str
    """JSON, or plain text for a freeform tool."""


def passages(request: ModelRequest) -> list[Passage]:
    """Everything in the request that a model reads, in order."""
    codec = request.codec
    return codec.passages(request.json) if codec and request.json else []


def last_user_text(request: ModelRequest) -> str:
    """The text of the last user message that has any; parts are joined with newlines."""
    said = [passage for passage in passages(request) if passage.role == "user" and passage.kind == "text"]
    return "\n".join(passage.text for passage in said if passage.message == said[-1].message)


def user_texts(request: ModelRequest) -> list[str]:
    """All texts of user messages, including those that the client added."""
    return [passage.text for passage in passages(request) if (passage.role, passage.kind) == ("user", "text")]


def all_texts(request: ModelRequest) -> list[str]:
    """All texts, calls and results in the request, in its order."""
    return [passage.text for passage in passages(request)]


def system_text(request: ModelRequest) -> str:
    """The system prompts, joined with newlines."""
    return "\n".join(passage.text for passage in passages(request) if passage.role == "system")


def tool_results(request: ModelRequest) -> list[ToolResult]:
    """The results of tool calls."""
    names = {call.id: call.name for call in tool_calls(request)}
    return [
        ToolResult(
            id=passage.id,
            name=passage.name or names.get(passage.id, ""),
            text=passage.text,
            is_error=passage.is_error,
        )
        for passage in passages(request)
        if passage.kind == "result"
    ]


def tool_calls(request: ModelRequest) -> list[ToolCall]:
    """The tool calls of the model that the client sent back."""
    return [
        ToolCall(id=passage.id, name=passage.name, arguments=passage.text)
        for passage in passages(request)
        if passage.kind == "call"
    ]


def offered_tools(request: ModelRequest) -> list[OfferedTool]:
    """The tools that the client offers to the model."""
    codec = request.codec
    return codec.offered(request.json) if codec and request.json else []
