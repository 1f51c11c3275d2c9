"""OpenAI Responses: `/v1/responses`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.testing.models import openai_errors
from holdfast.testing.models.shapes import OfferedTool, Passage, as_text, object_at, objects, string, texts
from holdfast.testing.models.wire import Event, Refusal, Reply, cut, dumps, sse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.testing.models.turns import Failure

NAME = "responses"
#: Errors that the vendor reports inside a stream that has started with status 200.
_IN_STREAM = ("context_too_long", "quota")


class _Numbered:
    """Creates events with consecutive sequence numbers."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, kind: str, **fields: Any) -> Event:
        event = Event(sse({"type": kind, "sequence_number": self._number, **fields}, kind))
        self._number += 1
        return event


def stream(reply: Reply) -> Iterator[Event]:
    event = _Numbered()
    final = whole(reply)
    begun: dict[str, Any] = final | {
        "status": "in_progress",
        "output": [],
        "usage": None,
        "incomplete_details": None,
    }
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for index, item in enumerate(final["output"]):
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            yield from _message_events(event, reply, item, place)
        else:
            yield from _call_events(event, reply, item, place)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event(f"response.{final['status']}", response=final)._replace(is_end=True)


def _message_events(
    event: _Numbered, reply: Reply, item: dict[str, Any], place: dict[str, Any]
) -> Iterator[Event]:
    begun: dict[str, Any] = item | {"status": "in_progress", "content": []}
    yield event("response.output_item.added", output_index=place["output_index"], item=begun)
    [part] = item["content"]
    place = place | {"content_index": 0}
    yield event("response.content_part.added", **place, part=part | {"text": ""})
    for piece in reply.text_pieces():
        yield event("response.output_text.delta", **place, delta=piece)._replace(is_piece=True)
    yield event("response.output_text.done", **place, text=reply.text)
    yield event("response.content_part.done", **place, part=part)


def _call_events(
    event: _Numbered, reply: Reply, item: dict[str, Any], place: dict[str, Any]
) -> Iterator[Event]:
    is_freeform = item["type"] == "custom_tool_call"
    key = "input" if is_freeform else "arguments"
    name = "response.custom_tool_call_input" if is_freeform else "response.function_call_arguments"
    begun: dict[str, Any] = item | {"status": "in_progress", key: ""}
    yield event("response.output_item.added", output_index=place["output_index"], item=begun)
    for piece in cut(item[key], reply.pieces):
        yield event(f"{name}.delta", **place, delta=piece)._replace(is_piece=True)
    yield event(f"{name}.done", **place, **{key: item[key]})


def whole(reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    output = [_message(reply)] if reply.text else []
    output += [_call(reply, number) for number in range(len(reply.calls))]
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": reply.created,
        "status": "incomplete" if reply.is_cut_off else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if reply.is_cut_off else None,
        "model": reply.model,
        "output": output,
        "parallel_tool_calls": True,
        "usage": {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
    }


def refusal(failure: Failure, model: str) -> Refusal:
    refused = openai_errors.refusal(failure, model)
    if failure.kind == "context_too_long":
        error = refused.body["error"]
        error["param"] = "input"
        if failure.message is None:
            error["message"] = (
                "Your input exceeds the context window of this model. Please adjust your input and try again."
            )
    return refused


def broken_stream(failure: Failure, reply: Reply) -> Iterator[Event] | None:
    in_stream = failure.kind in _IN_STREAM if failure.in_stream is None else failure.in_stream
    if not in_stream or failure.status is not None:
        return None
    refused = refusal(failure, reply.model).body["error"]
    error = {"code": refused["code"] or refused["type"], "message": refused["message"]}
    event = _Numbered()
    begun: dict[str, Any] = whole(reply) | {"status": "in_progress", "output": [], "usage": None}
    failed: dict[str, Any] = begun | {"status": "failed", "error": error}
    return iter([event("response.created", response=begun), event("response.failed", response=failed)])


def passages(body: dict[str, Any]) -> list[Passage]:
    system = texts(body.get("instructions"))
    found = [Passage(message=-1, role="system", kind="text", text=text) for text in system]
    items = body.get("input")
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    for number, item in enumerate(objects(items)):
        kind = string(item.get("type"))
        name, id = string(item.get("name")), string(item.get("call_id"))
        if kind.endswith("_call"):
            text = as_text(item.get("arguments", item.get("input")))
            found.append(Passage(message=number, role="assistant", kind="call", text=text, name=name, id=id))
        elif kind.endswith("_call_output"):
            text = as_text(item.get("output"))
            found.append(Passage(message=number, role="tool", kind="result", text=text, name=name, id=id))
        elif kind in ("", "message"):
            given = item.get("role")
            role = given if given in ("user", "assistant") else "system"
            place = number if role != "system" else -1
            for text in texts(item.get("content")):
                found.append(Passage(message=place, role=role, kind="text", text=text))
    return found


def offered(body: dict[str, Any]) -> list[OfferedTool]:
    return [
        OfferedTool(
            name=string(tool.get("name")) or string(tool.get("type")),
            schema=object_at(tool, "parameters"),
            is_freeform=tool.get("type") == "custom",
        )
        for tool in objects(body.get("tools"))
    ]


def wanted_schema(body: dict[str, Any]) -> dict[str, Any] | None:
    wanted = object_at(body, "text", "format")
    return {"type": "object"} if wanted.get("type") == "json_object" else object_at(wanted, "schema") or None


def _message(reply: Reply) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
    id = f"msg_{reply.id}"
    return {"id": id, "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def _call(reply: Reply, number: int) -> dict[str, Any]:
    call = reply.calls[number]
    head = {"id": f"fc_{reply.id}_{number}", "status": "completed", "call_id": reply.call_id(number)}
    if call.name in reply.freeform:
        given = call.arguments.get("input")
        text = given if isinstance(given, str) else dumps(call.arguments)
        return head | {"type": "custom_tool_call", "name": call.name, "input": text}
    # A tool of a server is offered in a namespace: `mcp__server/tool`.
    space, _, name = call.name.rpartition("/")
    within = {"namespace": space} if space else {}
    return head | {"type": "function_call", "name": name, **within, "arguments": dumps(call.arguments)}
