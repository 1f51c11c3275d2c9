"""Proving what the model was sent: the same questions for every API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.testing.models.record import ModelRequest
    from holdfast.testing.models.shapes import OfferedTool, Passage


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What a tool gave back, as the model was told."""

    id: str
    name: str
    """The tool; empty where the call is not part of the request."""
    text: str
    is_error: bool
    """Only Anthropic and Gemini say so."""


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call of the model's, as the client sent it back."""

    id: str
    name: str
    arguments: str
    """JSON, or plain text for a freeform tool."""


def passages(request: ModelRequest) -> list[Passage]:
    """Everything in the request that a model reads, in order."""
    codec = request.codec
    return codec.passages(request.json) if codec and request.json else []


def last_user_text(request: ModelRequest) -> str:
    """The last message of the user that has text; its parts are joined with newlines."""
    said = [passage for passage in passages(request) if passage.role == "user" and passage.kind == "text"]
    return "\n".join(passage.text for passage in said if passage.message == said[-1].message)


def user_texts(request: ModelRequest) -> list[str]:
    """Each text of the user's, the client's own additions included."""
    return [passage.text for passage in passages(request) if (passage.role, passage.kind) == ("user", "text")]


def all_texts(request: ModelRequest) -> list[str]:
    """Each text, call and result in the request, system prompts first where the API puts them there."""
    return [passage.text for passage in passages(request)]


def system_text(request: ModelRequest) -> str:
    """The system prompts, joined with newlines."""
    return "\n".join(passage.text for passage in passages(request) if passage.role == "system")


def tool_results(request: ModelRequest) -> list[ToolResult]:
    """What tools gave back, with the names of the tools where the calls are part of the request."""
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
    """The calls of the model's that the client sent back."""
    return [
        ToolCall(id=passage.id, name=passage.name, arguments=passage.text)
        for passage in passages(request)
        if passage.kind == "call"
    ]


def offered_tools(request: ModelRequest) -> list[OfferedTool]:
    """The tools that the client lets the model use."""
    codec = request.codec
    return codec.offered(request.json) if codec and request.json else []
