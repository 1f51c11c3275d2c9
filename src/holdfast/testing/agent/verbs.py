"""All verbs with their arguments: the one table for checks, builders and docs."""

from __future__ import annotations

#: Arguments of every verb: when to perform the step at all.
COMMON = {"once": "bool", "times": "count", "tries": "count"}


class Verb:
    """Where a verb is implemented, and its arguments.

    `short` is the argument that a bare value stands for: `{"say": "hi"}` is `{"say": {"text": "hi"}}`. A
    standing verb (`is_standing`) changes the process for the rest of its life, so a resumed process performs
    it again although it was completed before.
    """

    def __init__(
        self,
        module: str,
        arguments: dict[str, str],
        *,
        short: str | None = None,
        required: tuple[str, ...] = (),
        is_standing: bool = False,
    ) -> None:
        self.module = module
        self.arguments = arguments
        self.short = short
        self.required = required
        self.is_standing = is_standing


def _talk(arguments: dict[str, str], short: str | None = None, *required: str) -> Verb:
    return Verb("talk", arguments, short=short, required=required)


VERBS: dict[str, Verb] = {
    # Output.
    "say": _talk({"text": "text"}, "text", "text"),
    "print": _talk({"text": "text", "stream": "stream"}, "text", "text"),
    "pace": _talk(
        {"lines": "count", "every_s": "seconds", "text": "text", "raw": "bool"},
        None,
        "lines",
        "every_s",
    ),
    "flood": _talk({"bytes": "count", "line_bytes": "count", "raw": "bool", "stream": "stream"}, "bytes"),
    "long_line": _talk({"bytes": "count", "raw": "bool"}, "bytes"),
    "half_line": _talk({"text": "text", "finish_after_s": "seconds"}, "text"),
    "ask": _talk({"text": "text", "wait": "wait"}, "text", "text"),
    "usage": _talk(
        {
            "input_tokens": "whole",
            "output_tokens": "whole",
            "cache_read_tokens": "whole",
            "cost_usd": "number",
        }
    ),
    "announce_retry": _talk(
        {
            "delay_s": "seconds",
            "wait_s": "forever",
            "attempt": "count",
            "max_retries": "count",
            "error_status": "whole",
            "error": "text",
        },
        "delay_s",
        "delay_s",
    ),
    "result": _talk(
        {
            "text": "text",
            "subtype": "text",
            "is_error": "bool",
            "api_error_status": "whole",
            "terminal_reason": "text",
            "errors": "words",
            "denied": "words",
        },
        "text",
    ),
    # Effects.
    "tool": Verb(
        "work",
        {
            "name": "text",
            "run_s": "seconds",
            "busy_s": "seconds",
            "command": "text",
            "arguments": "object",
            "output": "text",
            "fails": "bool",
            "stays_open": "bool",
        },
        short="name",
    ),
    "write": Verb(
        "work",
        {"path": "text", "content": "text", "append": "bool"},
        required=("path",),
    ),
    "holdfast": Verb(
        "work",
        {"argv": "words", "wait": "bool", "pid_file": "text"},
        short="argv",
        required=("argv",),
    ),
    "sleep": Verb("work", {"s": "seconds"}, short="s", required=("s",)),
    "wait_file": Verb("work", {"path": "text", "limit_s": "seconds"}, short="path", required=("path",)),
    "expect_env": Verb("work", {"variables": "variables"}, required=("variables",)),
    "interrupt_request": Verb("work", {"text": "text"}, short="text", required=("text",)),
    # Processes left running.
    "grandchild": Verb(
        "offspring",
        {
            "s": "seconds",
            "pid_file": "text",
            "ignore_signals": "bool",
            "strip_env": "bool",
            "orphan": "bool",
            "hold_output": "bool",
        },
        short="s",
    ),
    "server": Verb(
        "offspring",
        {"port": "port", "pid_file": "text", "port_file": "text", "limit_s": "count"},
    ),
    # Endings.
    "crash": Verb("ending", {"signal": "signal", "exit": "exit"}, short="signal"),
    "exit": Verb("ending", {"code": "exit"}, short="code", required=("code",)),
    "hang": Verb("ending", {"cpu": "bool"}),
    "linger": Verb("ending", {"s": "forever"}, short="s"),
    "rate_limit": Verb("ending", {"text": "text", "resets_in_s": "seconds"}, short="text"),
    "unauthorized": Verb("ending", {"text": "text"}, short="text"),
    "kill_group": Verb("ending", {"signal": "signal"}, short="signal"),
    "ignore": Verb(
        "ending", {"signals": "signals"}, short="signals", required=("signals",), is_standing=True
    ),
    "fail_if_running": Verb("ending", {}, is_standing=True),
}
