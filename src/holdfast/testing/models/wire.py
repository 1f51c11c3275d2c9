"""The protocol of API modules, and what they share."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from holdfast.testing.models.turns import Call, Failure, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.testing.models.shapes import OfferedTool, Passage


class Event(NamedTuple):
    """Bytes that are sent together."""

    data: bytes
    is_piece: bool = False
    """Whether it has text or arguments; `after` and the delay of a turn count these."""
    is_end: bool = False
    """Whether it belongs to the regular end of the stream; a fault happens before it at the latest."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer, before encoding."""

    id: str
    """Unique among all servers; part of every id in the reply."""
    model: str
    text: str
    calls: tuple[Call, ...]
    usage: Usage
    pieces: int = 8
    is_cut_off: bool = False
    freeform: frozenset[str] = frozenset()
    """Names of the tools that take plain text."""
    created: int = 0
    body: dict[str, Any] = field(default_factory=dict[str, Any])
    """The request."""

    def text_pieces(self) -> list[str]:
        """The pieces of the streamed text."""
        return cut(self.text, self.pieces)

    def call_id(self, number: int) -> str:
        """The id of the call with this number."""
        return f"call_{self.id}_{number}"


class Refusal(NamedTuple):
    """An error reply of a vendor."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str]


class Api(Protocol):
    """One API: encoding of replies, the vendor's errors, and reading of requests. Implemented by modules."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """The name of the API."""
        ...

    def stream(self, reply: Reply, /) -> Iterator[Event]:
        """A reply as a stream of events."""
        ...

    def whole(self, reply: Reply, /) -> dict[str, Any]:
        """A reply in one body."""
        ...

    def refusal(self, failure: Failure, model: str, /) -> Refusal:
        """A failure, as the vendor reports it."""
        ...

    def broken_stream(self, failure: Failure, reply: Reply, /) -> Iterator[Event] | None:
        """A stream that reports a failure; None if the failure is a refusal before the stream."""
        ...

    def passages(self, body: dict[str, Any], /) -> list[Passage]:
        """The parts of a request that a model reads, in order."""
        ...

    def offered(self, body: dict[str, Any], /) -> list[OfferedTool]:
        """The tools that a request offers to the model."""
        ...

    def wanted_schema(self, body: dict[str, Any], /) -> dict[str, Any] | None:
        """The JSON Schema of the wanted answer; None if any text is accepted."""
        ...


def dumps(value: Any) -> str:
    """JSON in the vendors' style."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def encoded(value: Any) -> bytes:
    """The same in bytes."""
    # A lone surrogate in a script is valid JSON but not UTF-8.
    return dumps(value).encode("utf-8", "backslashreplace")


def sse(value: Any, event: str | None = None) -> bytes:
    """One server-sent event."""
    head = b"" if event is None else f"event: {event}\n".encode()
    return head + b"data: " + encoded(value) + b"\n\n"


def cut(text: str, count: int) -> list[str]:
    """`text` in at most `count` pieces of whole words; a single word is split anywhere."""
    units: Sequence[str] = re.findall(r"\s*\S+(?:\s+$)?|\s+", text)
    if len(units) == 1:
        units = text
    count = min(count, len(units))
    marks = [len(units) * number // count for number in range(count + 1)] if count else []
    return ["".join(units[begin:end]) for begin, end in pairwise(marks)]
