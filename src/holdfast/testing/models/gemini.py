"""Gemini: `/v1beta/models/MODEL:generateContent` and `:streamGenerateContent`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.testing.models.gemini_errors import refusal
from holdfast.testing.models.shapes import OfferedTool, Passage, as_text, object_at, objects, string
from holdfast.testing.models.wire import Event, Reply, dumps, sse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.testing.models.shapes import Role
    from holdfast.testing.models.turns import Failure

__all__ = [
    "NAME",
    "broken_stream",
    "offered",
    "passages",
    "refusal",
    "stream",
    "wanted_schema",
    "whole",
]
NAME = "gemini"


def stream(reply: Reply) -> Iterator[Event]:
    """Server-sent events. A call is always one piece; the last piece has the finish reason."""
    parts: list[dict[str, Any]] = [{"text": piece} for piece in reply.text_pieces()]
    parts += [_function_call(reply, number) for number in range(len(reply.calls))]
    for part in parts[:-1]:
        yield Event(sse(_chunk(reply, [part])), is_piece=True)
    end = _chunk(reply, parts[-1:], finish_reason=_finish_reason(reply))
    yield Event(sse(end), is_piece=True, is_end=True)


def whole(reply: Reply) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    parts += [_function_call(reply, number) for number in range(len(reply.calls))]
    return _chunk(reply, parts, finish_reason=_finish_reason(reply))


def broken_stream(failure: Failure, reply: Reply) -> Iterator[Event] | None:
    if not failure.in_stream:
        return None
    return iter([Event(sse(refusal(failure, reply.model).body))])


def passages(body: dict[str, Any]) -> list[Passage]:
    system = body.get("systemInstruction", body.get("system_instruction"))
    found = _parts(-1, "system", object_at({"s": system}, "s").get("parts"))
    for number, content in enumerate(objects(body.get("contents"))):
        role = "assistant" if content.get("role") == "model" else "user"
        found += _parts(number, role, content.get("parts"))
    return found


def offered(body: dict[str, Any]) -> list[OfferedTool]:
    return [
        OfferedTool(
            name=string(function.get("name")),
            schema=object_at(function, "parametersJsonSchema") or object_at(function, "parameters"),
        )
        for tool in objects(body.get("tools"))
        for function in objects(tool.get("functionDeclarations", tool.get("function_declarations")))
    ]


def wanted_schema(body: dict[str, Any]) -> dict[str, Any] | None:
    config = object_at(body, "generationConfig")
    schema = object_at(config, "responseJsonSchema") or object_at(config, "responseSchema")
    if not schema and config.get("responseMimeType") == "application/json":
        return {"type": "object"}
    return schema or None


def _parts(message: int, role: Role, parts: Any) -> list[Passage]:
    found: list[Passage] = []
    for part in objects(parts):
        if text := string(part.get("text")):
            found.append(Passage(message=message, role=role, kind="text", text=text))
        if call := object_at(part, "functionCall"):
            found.append(
                Passage(
                    message=message,
                    role="assistant",
                    kind="call",
                    text=dumps(call.get("args")),
                    name=string(call.get("name")),
                    id=string(call.get("id")),
                )
            )
        if result := object_at(part, "functionResponse"):
            response = object_at(result, "response")
            output = response.get("output", response.get("error", response))
            found.append(
                Passage(
                    message=message,
                    role="tool",
                    kind="result",
                    text=as_text(output),
                    name=string(result.get("name")),
                    id=string(result.get("id")),
                    is_error="error" in response,
                )
            )
    return found


def _chunk(reply: Reply, parts: list[dict[str, Any]], finish_reason: str | None = None) -> dict[str, Any]:
    usage = reply.usage
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish_reason:
        candidate["finishReason"] = finish_reason
    counts = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens,
        "totalTokenCount": usage.input_tokens + usage.output_tokens + usage.reasoning_tokens,
    }
    if usage.cache_read_tokens:
        counts["cachedContentTokenCount"] = usage.cache_read_tokens
    if usage.reasoning_tokens:
        counts["thoughtsTokenCount"] = usage.reasoning_tokens
    return {
        "candidates": [candidate],
        "usageMetadata": counts,
        "modelVersion": reply.model,
        "responseId": reply.id,
    }


def _function_call(reply: Reply, number: int) -> dict[str, Any]:
    call = reply.calls[number]
    return {"functionCall": {"id": reply.call_id(number), "name": call.name, "args": call.arguments}}


def _finish_reason(reply: Reply) -> str:
    return "MAX_TOKENS" if reply.is_cut_off else "STOP"
