"""Anthropic Messages: `/v1/messages`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from holdfast.testing.models.shapes import OfferedTool, Passage, as_text, object_at, objects, string, texts
from holdfast.testing.models.wire import Event, Refusal, Reply, cut, dumps, sse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.testing.models.turns import Failure, FailureKind

NAME = "anthropic"

#: kind → (status, type, message)
ERRORS: dict[FailureKind, tuple[int, str, str]] = {
    "rate_limit": (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
    "usage_limit": (429, "rate_limit_error", "This request would exceed your account's rate limit."),
    "quota": (
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API. "
        "Please go to Plans & Billing to upgrade or purchase credits.",
    ),
    "unauthorized": (401, "authentication_error", "invalid x-api-key"),
    "forbidden": (
        403,
        "permission_error",
        "Your API key does not have permission to use the specified resource.",
    ),
    "bad_request": (400, "invalid_request_error", "messages: at least one message is required"),
    "model_not_found": (404, "not_found_error", "model: {model}"),
    "context_too_long": (
        400,
        "invalid_request_error",
        "prompt is too long: 250000 tokens > 200000 maximum",
    ),
    "server_error": (500, "api_error", "Internal server error"),
    "unavailable": (503, "api_error", "Service unavailable"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
}


def stream(reply: Reply) -> Iterator[Event]:
    message: dict[str, Any] = whole(reply) | {"content": [], "stop_reason": None}
    message["usage"] = message["usage"] | {"output_tokens": 1}
    yield _event("message_start", message=message)
    index = 0
    if reply.text:
        yield _event("content_block_start", index=index, content_block={"type": "text", "text": ""})
        yield _event("ping")
        for piece in reply.text_pieces():
            yield _piece(index, {"type": "text_delta", "text": piece})
        yield _event("content_block_stop", index=index)
        index += 1
    for number, call in enumerate(reply.calls):
        block: dict[str, Any] = _tool_use(reply, number) | {"input": {}}
        yield _event("content_block_start", index=index, content_block=block)
        for piece in cut(dumps(call.arguments), reply.pieces):
            yield _piece(index, {"type": "input_json_delta", "partial_json": piece})
        yield _event("content_block_stop", index=index)
        index += 1
    delta = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    usage = {"output_tokens": reply.usage.output_tokens}
    yield _event("message_delta", delta=delta, usage=usage)._replace(is_end=True)
    yield _event("message_stop")._replace(is_end=True)


def whole(reply: Reply) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [_tool_use(reply, number) for number in range(len(reply.calls))]
    return {
        "id": f"msg_{reply.id}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": _stop_reason(reply),
        "stop_sequence": None,
        "usage": {
            "input_tokens": reply.usage.input_tokens,
            "cache_creation_input_tokens": reply.usage.cache_write_tokens,
            "cache_read_input_tokens": reply.usage.cache_read_tokens,
            "output_tokens": reply.usage.output_tokens,
        },
    }


def refusal(failure: Failure, model: str) -> Refusal:
    status, kind, message = ERRORS[failure.kind]
    error = {"type": kind, "message": failure.message or message.replace("{model}", model)}
    headers: dict[str, str] = {}
    if failure.retry_after_s is not None:
        headers["Retry-After"] = f"{failure.retry_after_s:g}"
    if failure.kind == "usage_limit":
        reset = str(int(time.time() + (failure.retry_after_s or 0)))
        headers |= {
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": reset,
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
            "anthropic-ratelimit-unified-5h-status": "rejected",
            "anthropic-ratelimit-unified-5h-reset": reset,
        }
    body = {"type": "error", "error": error, "request_id": "req_scripted"}
    return Refusal(failure.status or status, body, headers)


def broken_stream(failure: Failure, reply: Reply) -> Iterator[Event] | None:
    if not failure.in_stream:
        return None
    body = refusal(failure, reply.model).body
    return iter([next(stream(reply)), Event(sse(body, "error"))])


def passages(body: dict[str, Any]) -> list[Passage]:
    found = [Passage(message=-1, role="system", kind="text", text=text) for text in texts(body.get("system"))]
    for number, message in enumerate(objects(body.get("messages"))):
        role = "assistant" if message.get("role") == "assistant" else "user"
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for block in objects(content):
            match block.get("type"):
                case "text":
                    text = string(block.get("text"))
                    found.append(Passage(message=number, role=role, kind="text", text=text))
                case "tool_use":
                    found.append(
                        Passage(
                            message=number,
                            role="assistant",
                            kind="call",
                            text=dumps(block.get("input")),
                            name=string(block.get("name")),
                            id=string(block.get("id")),
                        )
                    )
                case "tool_result":
                    found.append(
                        Passage(
                            message=number,
                            role="tool",
                            kind="result",
                            text=as_text(block.get("content")),
                            id=string(block.get("tool_use_id")),
                            is_error=block.get("is_error") is True,
                        )
                    )
                case _:
                    pass
    return found


def offered(body: dict[str, Any]) -> list[OfferedTool]:
    return [
        OfferedTool(name=string(tool.get("name")), schema=object_at(tool, "input_schema"))
        for tool in objects(body.get("tools"))
    ]


def wanted_schema(body: dict[str, Any]) -> dict[str, Any] | None:
    return (
        object_at(body, "output_config", "format", "schema")
        or object_at(body, "output_format", "schema")
        or None
    )


def _stop_reason(reply: Reply) -> str:
    if reply.is_cut_off:
        return "max_tokens"
    return "tool_use" if reply.calls else "end_turn"


def _tool_use(reply: Reply, number: int) -> dict[str, Any]:
    call = reply.calls[number]
    return {
        "type": "tool_use",
        "id": f"toolu_{reply.id}_{number}",
        "name": call.name,
        "input": call.arguments,
    }


def _event(kind: str, **fields: Any) -> Event:
    return Event(sse({"type": kind, **fields}, kind))


def _piece(index: int, delta: dict[str, Any]) -> Event:
    return _event("content_block_delta", index=index, delta=delta)._replace(is_piece=True)
