"""OpenAI Chat Completions: `/v1/chat/completions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.testing.models import openai_errors
from holdfast.testing.models.shapes import OfferedTool, Passage, as_text, object_at, objects, string, texts
from holdfast.testing.models.wire import Event, Refusal, Reply, cut, dumps, sse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.testing.models.shapes import Role
    from holdfast.testing.models.turns import Failure

NAME = "chat"


def stream(reply: Reply) -> Iterator[Event]:
    yield _chunk(reply, {"role": "assistant", "content": ""})
    for piece in reply.text_pieces():
        yield _chunk(reply, {"content": piece})._replace(is_piece=True)
    for number, call in enumerate(reply.calls):
        head = _tool_call(reply, number)
        head["function"]["arguments"] = ""
        yield _chunk(reply, {"tool_calls": [{"index": number, **head}]})
        for piece in cut(dumps(call.arguments), reply.pieces):
            part = {"index": number, "function": {"arguments": piece}}
            yield _chunk(reply, {"tool_calls": [part]})._replace(is_piece=True)
    yield _chunk(reply, {}, finish_reason=_finish_reason(reply))._replace(is_end=True)
    if object_at(reply.body, "stream_options").get("include_usage") is True:
        yield Event(sse(_head(reply) | {"choices": [], "usage": _usage(reply)}), is_end=True)
    yield Event(b"data: [DONE]\n\n", is_end=True)


def whole(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.calls:
        message["tool_calls"] = [_tool_call(reply, number) for number in range(len(reply.calls))]
    elif not reply.text:
        message["content"] = ""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(reply)}
    return _head(reply) | {"object": "chat.completion", "choices": [choice], "usage": _usage(reply)}


def refusal(failure: Failure, model: str) -> Refusal:
    refused = openai_errors.refusal(failure, model)
    if failure.kind == "context_too_long":
        refused.body["error"]["param"] = "messages"
    return refused


def broken_stream(failure: Failure, reply: Reply) -> Iterator[Event] | None:
    if not failure.in_stream:
        return None
    return iter([next(stream(reply)), Event(sse(refusal(failure, reply.model).body))])


def passages(body: dict[str, Any]) -> list[Passage]:
    found: list[Passage] = []
    for number, message in enumerate(objects(body.get("messages"))):
        content = message.get("content")
        match message.get("role"):
            case "system" | "developer":
                found += _texts(-1, "system", content)
            case "tool":
                found.append(
                    Passage(
                        message=number,
                        role="tool",
                        kind="result",
                        text=as_text(content),
                        id=string(message.get("tool_call_id")),
                    )
                )
            case "assistant":
                found += _texts(number, "assistant", content)
                for call in objects(message.get("tool_calls")):
                    function = object_at(call, "function")
                    found.append(
                        Passage(
                            message=number,
                            role="assistant",
                            kind="call",
                            text=string(function.get("arguments")),
                            name=string(function.get("name")),
                            id=string(call.get("id")),
                        )
                    )
            case _:
                found += _texts(number, "user", content)
    return found


def offered(body: dict[str, Any]) -> list[OfferedTool]:
    functions = [object_at(tool, "function") for tool in objects(body.get("tools"))]
    return [
        OfferedTool(name=string(function.get("name")), schema=object_at(function, "parameters"))
        for function in functions
    ]


def wanted_schema(body: dict[str, Any]) -> dict[str, Any] | None:
    wanted = object_at(body, "response_format")
    if wanted.get("type") == "json_object":
        return {"type": "object"}
    return object_at(wanted, "json_schema", "schema") or None


def _texts(message: int, role: Role, content: Any) -> list[Passage]:
    return [Passage(message=message, role=role, kind="text", text=text) for text in texts(content)]


def _head(reply: Reply) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reply.id}",
        "object": "chat.completion.chunk",
        "created": reply.created,
        "model": reply.model,
    }


def _chunk(reply: Reply, delta: dict[str, Any], finish_reason: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return Event(sse(_head(reply) | {"choices": [choice]}))


def _tool_call(reply: Reply, number: int) -> dict[str, Any]:
    call = reply.calls[number]
    function = {"name": call.name, "arguments": dumps(call.arguments)}
    return {"id": reply.call_id(number), "type": "function", "function": function}


def _finish_reason(reply: Reply) -> str:
    if reply.is_cut_off:
        return "length"
    return "tool_calls" if reply.calls else "stop"


def _usage(reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
