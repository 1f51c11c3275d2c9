"""Steps that print something."""

# ruff: noqa: A002 - arguments are named as in the scenario file

from __future__ import annotations

import os
import time

from holdfast.testing.agent.output import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.testing.agent.play import Play

FLOOD_BYTES = 100 * 1000 * 1000
LONG_LINE_BYTES = 5 * 1000 * 1000


def say(play: Play, *, text: str) -> None:
    play.dialect.say(text)


def print_(play: Play, *, text: str, stream: str = "stdout") -> None:
    play.out.write(encode(text), _fd(stream))


def pace(play: Play, *, lines: int, every_s: float, text: str = "line {n}", raw: bool = False) -> None:
    # Timed against the clock instead of equal sleeps, so that the pace does not drift.
    began = time.monotonic()
    for n in range(1, lines + 1):
        time.sleep(max(0.0, began + (n - 1) * every_s - time.monotonic()))
        line = text.replace("{n}", str(n))
        if raw:
            play.out.line(line)
        else:
            play.dialect.say(line)


def flood(
    play: Play,
    *,
    bytes: int = FLOOD_BYTES,
    line_bytes: int = 4096,
    raw: bool = False,
    stream: str = "stdout",
) -> None:
    """Complete, numbered lines as fast as they are read, until `bytes` are reached."""
    end = play.out.total_bytes + bytes
    filler = "x" * line_bytes
    n = 0
    while play.out.total_bytes < end:
        n += 1
        text = f"flood {n} {filler}"[:line_bytes]
        is_plain = raw or stream == "stderr"
        play.out.write(encode(text + "\n") if is_plain else play.dialect.text_line(text), _fd(stream))


def long_line(play: Play, *, bytes: int = LONG_LINE_BYTES, raw: bool = False) -> None:
    """One line with `bytes` characters of text (plus what the dialect adds)."""
    text = "x" * bytes
    play.out.write(encode(text + "\n") if raw else play.dialect.text_line(text))


def half_line(
    play: Play,
    *,
    text: str = "this line is torn in the middle",
    finish_after_s: float | None = None,
) -> None:
    """The first half of a line; the next output follows without a break.

    With `finish_after_s`, the second half comes after that time, and the line is complete.
    """
    line = play.dialect.text_line(text)
    half = len(line) // 2
    play.out.write(line[:half])
    if finish_after_s is not None:
        time.sleep(finish_after_s)
        play.out.write(line[half:])


def ask(play: Play, *, text: str, wait: str = "forever") -> None:
    """A question without a newline, as on a terminal; then nothing until an answer comes."""
    play.out.write(encode(text))
    if wait == "forever":
        play.pause("forever")
    while (char := os.read(0, 1)) and char != b"\n":
        pass


def usage(
    play: Play,
    *,
    input_tokens: int = 0,
    output_tokens: int = 0,
    cache_read_tokens: int = 0,
    cost_usd: float = 0.0,
) -> None:
    play.dialect.use(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cache_read_tokens,
        cost_usd=cost_usd,
    )


def announce_retry(
    play: Play,
    *,
    delay_s: float,
    wait_s: float | str | None = None,
    attempt: int = 1,
    max_retries: int = 10,
    error_status: int = 429,
    error: str = "rate_limit",
) -> None:
    """Announce a retry, then wait as long as announced, or for `wait_s` if it differs."""
    play.dialect.retry_announced(
        delay_s=delay_s,
        attempt=attempt,
        max_retries=max_retries,
        error_status=error_status,
        error=error,
    )
    play.pause(delay_s if wait_s is None else wait_s)


def result(play: Play, **arguments: Any) -> None:
    """The final result. The process continues with the next step; at the end it exits with 1 on an error."""
    play.exit_code = 1 if play.dialect.result(**arguments) else 0


def _fd(stream: str) -> int:
    return 2 if stream == "stderr" else 1
