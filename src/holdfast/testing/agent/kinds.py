"""The kinds of arguments that a step can take, each with its test and its description."""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def as_object(value: Any) -> dict[str, Any] | None:
    """`value` if it is a JSON object, otherwise None."""
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


def as_list(value: Any) -> list[Any] | None:
    """`value` if it is a JSON list, otherwise None."""
    return value if isinstance(value, list) else None  # pyright: ignore[reportUnknownVariableType]


def _is_number(value: Any) -> bool:
    # bool is an int in Python; NaN and infinity pass json.loads. Neither is allowed.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e12


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_signal(value: Any) -> bool:
    return isinstance(value, str) and "SIG" + value in signal.Signals.__members__


def _is_catchable(value: Any) -> bool:
    return _is_signal(value) and value not in ("KILL", "STOP")


def _are(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: (items := as_list(value)) is not None and all(map(is_right, items))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_expectations(value: Any) -> bool:
    expected = as_object(value)
    return expected is not None and all(
        item is True or item is None or isinstance(item, str) for item in expected.values()
    )


def _is_action(value: Any) -> bool:
    leave = as_object(value)
    if leave is None:
        return value in ("agent", "default", "ignore")
    return (
        {"exit"} <= leave.keys() <= {"exit", "after_s"}
        and KINDS["exit"][1](leave["exit"])
        and _is_number(leave.get("after_s", 0))
    )


#: kind → (description of the expected value; the test)
KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "text": ("a string", _is_text),
    "bool": ("true or false", lambda v: isinstance(v, bool)),
    "number": ("a number, at least 0", _is_number),
    "seconds": ("a number of seconds, at least 0", _is_number),
    "forever": ('a number of seconds, or "forever"', lambda v: v == "forever" or _is_number(v)),
    "count": ("a whole number, at least 1", lambda v: _is_whole(v) and v >= 1),
    "whole": ("a whole number, at least 0", lambda v: _is_whole(v) and v >= 0),
    "port": ("a port number from 0 to 65535", lambda v: _is_whole(v) and 0 <= v <= 65535),
    "exit": ("an exit status from 0 to 255", lambda v: _is_whole(v) and 0 <= v <= 255),
    "signal": ('a signal name such as "TERM"', _is_signal),
    "catchable": ('a signal name such as "TERM", not KILL or STOP', _is_catchable),
    "signals": (
        'a list of signal names such as ["TERM", "INT"], without KILL and STOP',
        _are(_is_catchable),
    ),
    "action": ('"agent", "default", "ignore" or {"exit": N, "after_s": S}', _is_action),
    "words": ("a list of strings", _are(_is_text)),
    "object": ("an object", lambda v: as_object(v) is not None),
    "variables": ("an object of strings, true (is set) and null (is absent)", _are_expectations),
    "stream": ('"stdout" or "stderr"', lambda v: v in ("stdout", "stderr")),
    "wait": ('"forever" or "stdin"', lambda v: v in ("forever", "stdin")),
}
