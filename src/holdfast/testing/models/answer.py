"""Turns a scripted turn into an HTTP reply: status, headers and events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.testing.models.portable import resolve
from holdfast.testing.models.reading import offered_tools
from holdfast.testing.models.turns import Failure
from holdfast.testing.models.wire import Event, Reply, encoded

if TYPE_CHECKING:
    from holdfast.testing.models.record import ModelRequest
    from holdfast.testing.models.turns import Fault, Turn, Usage
    from holdfast.testing.models.wire import Api, Refusal

JSON = "application/json"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An HTTP reply, ready to be sent."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    content_type: str = JSON
    events: Iterator[Event]
    length: int | None = None
    """None if the reply is streamed in chunks."""
    fault: Fault | None = None
    piece_delay_s: float = 0.0
    head_delay_s: float = 0.0


def plain(
    status: int, body: bytes, *, headers: dict[str, str] | None = None, content_type: str = JSON
) -> Answer:
    """A reply with these bytes as its body."""
    events = iter([Event(body)])
    return Answer(
        status=status, headers=headers or {}, content_type=content_type, events=events, length=len(body)
    )


def as_json(status: int, value: object, headers: dict[str, str] | None = None) -> Answer:
    """A reply with this value as JSON."""
    return plain(status, encoded(value), headers=headers)


def refused(api: Api | None, status: int, message: str) -> Answer:
    """An error of the server itself, in the error format of the API if it is known."""
    if api is None:
        return as_json(status, {"error": {"message": message, "code": status}})
    return _refusal(api.refusal(Failure(kind="bad_request", status=status, message=message), ""))


def from_turn(turn: Turn, request: ModelRequest, api: Api, *, id: str, usage: Usage) -> Answer:
    """The reply for a turn. Raises ScriptError if the client does not offer the tool that the turn needs."""
    if turn.raw is not None:
        headers = dict(turn.raw.headers)
        content_type = headers.pop("Content-Type", JSON)
        body = turn.raw.body.encode()
        return plain(turn.raw.status, body, headers=headers, content_type=content_type)
    tools = offered_tools(request)
    reply = Reply(
        id=id,
        model=request.model,
        text=turn.text,
        calls=tuple(resolve(call, tools) for call in turn.calls),
        usage=turn.usage or usage,
        pieces=turn.pieces,
        is_cut_off=turn.is_cut_off,
        freeform=frozenset(tool.name for tool in tools if tool.is_freeform),
        created=int(request.at),
        body=request.json or {},
    )
    length: int | None = None
    content_type = JSON
    if turn.failure is not None:
        broken = api.broken_stream(turn.failure, reply) if request.streams else None
        if broken is None:
            return _refusal(api.refusal(turn.failure, request.model))
        events = broken
    elif request.streams:
        events = api.stream(reply)
    else:
        body = encoded(api.whole(reply))
        events, length = _parts(body, turn.pieces), len(body)
    if request.streams:
        is_array = request.route.is_json_array
        events = _array(events) if is_array else events
        content_type = JSON if is_array else "text/event-stream; charset=utf-8"
    return Answer(
        content_type=content_type,
        events=events,
        length=length,
        fault=turn.fault,
        piece_delay_s=turn.piece_delay_s,
        head_delay_s=turn.head_delay_s,
    )


def _refusal(refusal: Refusal) -> Answer:
    return as_json(refusal.status, refusal.body, refusal.headers)


def _parts(body: bytes, count: int) -> Iterator[Event]:
    """The body in parts: a fault can interrupt a body that is not streamed, too."""
    size = -(-len(body) // count)
    for begin in range(0, len(body), size):
        yield Event(body[begin : begin + size], is_piece=True, is_end=begin + size >= len(body))


def _array(events: Iterator[Event]) -> Iterator[Event]:
    """Server-sent events as the elements of one JSON array."""
    opening = b"["
    for event in events:
        yield event._replace(data=opening + event.data.removeprefix(b"data: ").rstrip())
        opening = b",\r\n"
    yield Event(b"]" if opening != b"[" else b"[]", is_end=True)
