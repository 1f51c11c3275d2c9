"""One turn: what the server does when a model request comes in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

FailureKind = Literal[
    "rate_limit",
    "usage_limit",
    "quota",
    "unauthorized",
    "forbidden",
    "bad_request",
    "model_not_found",
    "context_too_long",
    "server_error",
    "unavailable",
    "overloaded",
]
Portable = Literal["shell", "write"]


class ScriptError(Exception):
    """Raised when a script is malformed or cannot be played; the message starts with the place."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Token counts, put into the API's own fields as they are."""

    input_tokens: int = 100
    output_tokens: int = 20
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call. A portable one is turned into a call of the client's own shell or file tool."""

    name: str
    arguments: dict[str, Any]
    portable: Portable | None = None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An error reply. The vendor's usual status, message and headers, where none are given."""

    kind: FailureKind
    status: int | None = None
    message: str | None = None
    retry_after_s: float | None = None
    """Rate limit: the wait that is announced; usage limit: the time until the reset."""
    in_stream: bool | None = None
    """A 200 whose stream carries the error; by default where the vendor does it so."""


@dataclass(frozen=True, kw_only=True)
class RawReply:
    """Any reply, byte by byte."""

    status: int
    body: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Where the reply stops. `after` counts pieces of text or arguments; None is before the headers."""

    kind: Literal["stall", "drop"]
    after: int | None = None
    limit_s: float | None = None
    """A stall goes on by itself after so long; else only `ModelServer.release` or `close` end it."""
    how: Literal["reset", "close"] = "reset"


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What is answered. Without text, calls, failure and raw reply it is an empty answer."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    failure: Failure | None = None
    raw: RawReply | None = None
    fault: Fault | None = None
    piece_delay_s: float = 0.0
    """The pause before each piece of text or arguments."""
    head_delay_s: float = 0.0
    pieces: int = 8
    """Into how many pieces a text is cut, at most, for streaming."""
    is_cut_off: bool = False
    """Ends as if the limit of output tokens was reached."""
    usage: Usage | None = None
    repeats: int | None = 1
    """How many requests get this turn; None is all from here on."""

    def times(self, count: int) -> Self:
        """The same for so many requests."""
        return replace(self, repeats=count)

    def forever(self) -> Self:
        """The same for all requests from here on."""
        return replace(self, repeats=None)

    def using(
        self,
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cache_read_tokens: int = 0,
        cache_write_tokens: int = 0,
        reasoning_tokens: int = 0,
    ) -> Self:
        """The same, with this usage reported."""
        usage = Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_tokens=cache_read_tokens,
            cache_write_tokens=cache_write_tokens,
            reasoning_tokens=reasoning_tokens,
        )
        return replace(self, usage=usage)

    def slowly(self, piece_delay_s: float, *, head_delay_s: float = 0.0, pieces: int = 8) -> Self:
        """The same, with a pause before the headers and before each piece."""
        return replace(self, piece_delay_s=piece_delay_s, head_delay_s=head_delay_s, pieces=pieces)

    def stalled(self, after: int | None = None, *, limit_s: float | None = None) -> Self:
        """The same, silent after so many pieces, or before the headers."""
        return replace(self, fault=Fault(kind="stall", after=after, limit_s=limit_s))

    def dropped(self, after: int | None = None, *, how: Literal["reset", "close"] = "reset") -> Self:
        """The same, with the connection broken after so many pieces, or before the headers."""
        return replace(self, fault=Fault(kind="drop", after=after, how=how))

    def cut_off(self) -> Self:
        """The same, ended as if the limit of output tokens was reached."""
        return replace(self, is_cut_off=True)
