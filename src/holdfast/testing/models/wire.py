"""What every API module has to offer, and the pieces they share."""

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
    """Bytes that are sent in one go."""

    data: bytes
    is_piece: bool = False
    """Carries text or arguments: what `after` and the delay of a turn count."""
    is_end: bool = False
    """Belongs to the regular end of the stream; a stall or drop comes before it at the latest."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer that is to be encoded."""

    id: str
    """Unique in the life of all servers; part of every id in the reply."""
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
        """The text as it is streamed."""
        return cut(self.text, self.pieces)

    def call_id(self, number: int) -> str:
        """The id of the call of this number."""
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
        """Of the API."""
        ...

    def stream(self, reply: Reply, /) -> Iterator[Event]:
        """A reply, piece by piece."""
        ...

    def whole(self, reply: Reply, /) -> dict[str, Any]:
        """A reply in one body."""
        ...

    def refusal(self, failure: Failure, model: str, /) -> Refusal:
        """A failure, as the vendor tells it."""
        ...

    def broken_stream(self, failure: Failure, reply: Reply, /) -> Iterator[Event] | None:
        """A failure in the middle of a stream; None where it is told before, as a refusal."""
        ...

    def passages(self, body: dict[str, Any], /) -> list[Passage]:
        """What a model reads of a request, in order."""
        ...

    def offered(self, body: dict[str, Any], /) -> list[OfferedTool]:
        """The tools that a request lets the model use."""
        ...

    def wanted_schema(self, body: dict[str, Any], /) -> dict[str, Any] | None:
        """The JSON Schema that the answer must have; None where any text will do."""
        ...


def dumps(value: Any) -> str:
    """JSON as the vendors write it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def encoded(value: Any) -> bytes:
    """The same in bytes."""
    # A lone surrogate in a script is legal JSON but not UTF-8.
    return dumps(value).encode("utf-8", "backslashreplace")


def sse(value: Any, event: str | None = None) -> bytes:
    """One server-sent event."""
    head = b"" if event is None else f"event: {event}\n".encode()
    return head + b"data: " + encoded(value) + b"\n\n"


def cut(text: str, count: int) -> list[str]:
    """`text` in at most `count` pieces of whole words; a single word is cut anywhere."""
    units: Sequence[str] = re.findall(r"\s*\S+(?:\s+$)?|\s+", text)
    if len(units) == 1:
        units = text
    count = min(count, len(units))
    marks = [len(units) * number // count for number in range(count + 1)] if count else []
    return ["".join(units[begin:end]) for begin, end in pairwise(marks)]
