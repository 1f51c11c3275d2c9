"""Steps that print something."""

# ruff: noqa: A002 - arguments are named as in the scenario file

from __future__ import annotations

from typing import Literal, Self, Unpack

from holdfast.testing.builder.steps import Steps, When

Stream = Literal["stdout", "stderr"]


class Talk(Steps):
    """The verbs of `holdfast.testing.agent.steps.talk`."""

    def say(self, text: str, **when: Unpack[When]) -> Self:
        """A text event, or a line."""
        return self.step("say", text=text, **when)

    def print(self, text: str, *, stream: Stream | None = None, **when: Unpack[When]) -> Self:
        """Raw text, verbatim."""
        return self.step("print", text=text, stream=stream, **when)

    def pace(
        self,
        lines: int,
        every_s: float,
        *,
        text: str | None = None,
        raw: bool | None = None,
        **when: Unpack[When],
    ) -> Self:
        """N lines, one every few seconds; `{n}` in the text is the number."""
        return self.step("pace", lines=lines, every_s=every_s, text=text, raw=raw, **when)

    def flood(
        self,
        bytes: int | None = None,
        *,
        line_bytes: int | None = None,
        raw: bool | None = None,
        stream: Stream | None = None,
        **when: Unpack[When],
    ) -> Self:
        """Lines as fast as they are read."""
        return self.step("flood", bytes=bytes, line_bytes=line_bytes, raw=raw, stream=stream, **when)

    def long_line(self, bytes: int | None = None, *, raw: bool | None = None, **when: Unpack[When]) -> Self:
        """A single line of N bytes."""
        return self.step("long_line", bytes=bytes, raw=raw, **when)

    def half_line(
        self,
        text: str | None = None,
        *,
        finish_after_s: float | None = None,
        **when: Unpack[When],
    ) -> Self:
        """Half a line; the next step's output follows immediately, or the other half after a while."""
        return self.step("half_line", text=text, finish_after_s=finish_after_s, **when)

    def ask(
        self, text: str, *, wait: Literal["forever", "stdin"] | None = None, **when: Unpack[When]
    ) -> Self:
        """A question without a newline; then it blocks forever, or until a line comes on stdin."""
        return self.step("ask", text=text, wait=wait, **when)

    def usage(
        self,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cache_read_tokens: int | None = None,
        cost_usd: float | None = None,
        **when: Unpack[When],
    ) -> Self:
        """Tokens and dollars, counted into the following messages and the result."""
        return self.step(
            "usage",
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_tokens=cache_read_tokens,
            cost_usd=cost_usd,
            **when,
        )

    def announce_retry(
        self,
        delay_s: float,
        *,
        wait_s: float | Literal["forever"] | None = None,
        attempt: int | None = None,
        max_retries: int | None = None,
        error_status: int | None = None,
        error: str | None = None,
        **when: Unpack[When],
    ) -> Self:
        """The CLI's retry event, then the announced wait, or `wait_s`."""
        return self.step(
            "announce_retry",
            delay_s=delay_s,
            wait_s=wait_s,
            attempt=attempt,
            max_retries=max_retries,
            error_status=error_status,
            error=error,
            **when,
        )

    def result(
        self,
        text: str | None = None,
        *,
        subtype: str | None = None,
        is_error: bool | None = None,
        api_error_status: int | None = None,
        terminal_reason: str | None = None,
        errors: list[str] | None = None,
        denied: list[str] | None = None,
        **when: Unpack[When],
    ) -> Self:
        """The final result; the process continues with the next step."""
        return self.step(
            "result",
            text=text,
            subtype=subtype,
            is_error=is_error,
            api_error_status=api_error_status,
            terminal_reason=terminal_reason,
            errors=errors,
            denied=denied,
            **when,
        )
