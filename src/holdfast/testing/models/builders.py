"""Functions that create turns: `[text("hi"), shell("ls"), rate_limit(retry_after_s=2), text("done")]`."""

from __future__ import annotations

from typing import Any, Literal

from holdfast.testing.models.turns import Call, Failure, FailureKind, RawReply, Turn

LONG = "one two three four five six seven eight"


def text(text: str, /) -> Turn:
    """A text answer."""
    return Turn(text=text)


def empty() -> Turn:
    """An answer without content."""
    return Turn()


def call(name: str, arguments: dict[str, Any] | None = None) -> Call:
    """A tool call, for `tools`."""
    return Call(name=name, arguments=arguments or {})


def tool(name: str, arguments: dict[str, Any] | None = None, *, text: str = "") -> Turn:
    """One tool call, after `text` if there is any."""
    return Turn(text=text, calls=(call(name, arguments),))


def tools(*calls: Call, text: str = "") -> Turn:
    """Several tool calls in one answer."""
    return Turn(text=text, calls=calls)


def shell(command: str, *, text: str = "") -> Turn:
    """A call of the client's own shell tool, whatever its name."""
    return Turn(text=text, calls=(Call(name="", arguments={"command": command}, portable="shell"),))


def write(path: str, content: str, *, text: str = "") -> Turn:
    """A call of the client's own tool for writing a file, or of its shell tool."""
    arguments = {"path": path, "content": content}
    return Turn(text=text, calls=(Call(name="", arguments=arguments, portable="write"),))


def failure(
    kind: FailureKind,
    *,
    status: int | None = None,
    message: str | None = None,
    retry_after_s: float | None = None,
    in_stream: bool | None = None,
) -> Turn:
    """An error in the format of the client's API."""
    return Turn(
        failure=Failure(
            kind=kind, status=status, message=message, retry_after_s=retry_after_s, in_stream=in_stream
        )
    )


def rate_limit(retry_after_s: float | None = None, *, in_stream: bool | None = None) -> Turn:
    """429. A delay is announced in Retry-After (Gemini: RetryInfo and a quota per minute)."""
    return failure("rate_limit", retry_after_s=retry_after_s, in_stream=in_stream)


def usage_limit(resets_in_s: float = 3600) -> Turn:
    """429: the plan's allowance is used up until a known time (Gemini: the quota per day)."""
    return failure("usage_limit", retry_after_s=resets_in_s)


def quota() -> Turn:
    """Credit or quota is exhausted; waiting does not help."""
    return failure("quota")


def unauthorized(message: str | None = None) -> Turn:
    """401."""
    return failure("unauthorized", message=message)


def forbidden(message: str | None = None) -> Turn:
    """403."""
    return failure("forbidden", message=message)


def bad_request(message: str | None = None) -> Turn:
    """400."""
    return failure("bad_request", message=message)


def model_not_found() -> Turn:
    """404."""
    return failure("model_not_found")


def context_too_long() -> Turn:
    """The prompt exceeds the model's limit."""
    return failure("context_too_long")


def server_error(status: int = 500) -> Turn:
    """500, or another status with the same body."""
    return failure("server_error", status=status)


def unavailable() -> Turn:
    """503."""
    return failure("unavailable")


def overloaded(status: int | None = None) -> Turn:
    """The vendor is overloaded: 529 from Anthropic, 503 from the others."""
    return failure("overloaded", status=status)


def raw(status: int, body: str = "", headers: dict[str, str] | None = None) -> Turn:
    """A literal reply."""
    return Turn(raw=RawReply(status=status, body=body, headers=tuple((headers or {}).items())))


def stall(after: int | None = None, *, text: str = LONG, limit_s: float | None = None) -> Turn:
    """A reply that stalls before the headers or after `after` pieces; see `Fault`."""
    return Turn(text=text).stalled(after, limit_s=limit_s)


def drop(after: int | None = None, *, text: str = LONG, how: Literal["reset", "close"] = "reset") -> Turn:
    """A reply that is disconnected before the headers or after `after` pieces."""
    return Turn(text=text).dropped(after, how=how)


def slow(text: str = LONG, *, piece_delay_s: float = 0.5, pieces: int = 8) -> Turn:
    """A text with a delay before each piece."""
    return Turn(text=text).slowly(piece_delay_s, pieces=pieces)
