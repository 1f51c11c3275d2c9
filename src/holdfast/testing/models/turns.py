"""One turn: the server's reaction to a model request."""

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
    """Raised if a script is malformed or cannot be played; the message starts with the position."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Token counts, reported in the fields of the API without conversion."""

    input_tokens: int = 100
    output_tokens: int = 20
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call. A portable one becomes a call of the client's own shell or file tool."""

    name: str
    arguments: dict[str, Any]
    portable: Portable | None = None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An error reply. Status, message and headers default to those of the vendor."""

    kind: FailureKind
    status: int | None = None
    message: str | None = None
    retry_after_s: float | None = None
    """For a rate limit, the announced delay; for a usage limit, the time until the reset."""
    in_stream: bool | None = None
    """Whether the error comes inside a stream with status 200; by default, as the vendor does."""


@dataclass(frozen=True, kw_only=True)
class RawReply:
    """A literal reply."""

    status: int
    body: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Where the reply stops. `after` counts pieces of text or arguments; None means before the headers."""

    kind: Literal["stall", "drop"]
    after: int | None = None
    limit_s: float | None = None
    """A stall ends after this time; without a limit, `ModelServer.release` or `close` ends it."""
    how: Literal["reset", "close"] = "reset"


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One answer. Without text, calls, failure and raw reply, it is empty."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    failure: Failure | None = None
    raw: RawReply | None = None
    fault: Fault | None = None
    piece_delay_s: float = 0.0
    """Delay before each piece of text or arguments."""
    head_delay_s: float = 0.0
    pieces: int = 8
    """Maximum number of pieces of a streamed text."""
    is_cut_off: bool = False
    """Whether it ends as if the limit of output tokens was reached."""
    usage: Usage | None = None
    repeats: int | None = 1
    """How many requests get this turn; None means all that follow."""

    def times(self, count: int) -> Self:
        """The same turn for `count` requests."""
        return replace(self, repeats=count)

    def forever(self) -> Self:
        """The same turn for all requests that follow."""
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
        """The same turn, reporting this usage."""
        usage = Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_tokens=cache_read_tokens,
            cache_write_tokens=cache_write_tokens,
            reasoning_tokens=reasoning_tokens,
        )
        return replace(self, usage=usage)

    def slowly(self, piece_delay_s: float, *, head_delay_s: float = 0.0, pieces: int = 8) -> Self:
        """The same turn, with a delay before the headers and before each piece."""
        return replace(self, piece_delay_s=piece_delay_s, head_delay_s=head_delay_s, pieces=pieces)

    def stalled(self, after: int | None = None, *, limit_s: float | None = None) -> Self:
        """The same turn, stalled after `after` pieces, or before the headers."""
        return replace(self, fault=Fault(kind="stall", after=after, limit_s=limit_s))

    def dropped(self, after: int | None = None, *, how: Literal["reset", "close"] = "reset") -> Self:
        """The same turn, disconnected after `after` pieces, or before the headers."""
        return replace(self, fault=Fault(kind="drop", after=after, how=how))

    def cut_off(self) -> Self:
        """The same turn, ended as if the limit of output tokens was reached."""
        return replace(self, is_cut_off=True)
