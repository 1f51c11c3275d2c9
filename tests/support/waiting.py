"""Waiting with a deadline. No test sleeps for a fixed time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.1


def eventually(
    fn: Callable[[], T],
    within_s: float = 10.0,
    what: str = "",
    *,
    journal: str | os.PathLike[str] | None = None,
) -> T:
    """Call `fn` until it returns something true, and return that.

    An exception in `fn` means "not yet". After `within_s`, an AssertionError names `what` was awaited and the
    last result of `fn`; with `journal` (a packet or its events.jsonl) it also shows the last events.
    """
    __tracebackhide__ = True
    give_up_mono = time.monotonic() + within_s
    pause_s = _FIRST_PAUSE_S
    while True:
        # The clock is read before the call: a check that began in time counts.
        is_last = time.monotonic() >= give_up_mono
        cause: Exception | None = None
        try:
            value = fn()
            if value:
                return value
            last = f"last value: {value!r}"
        except Exception as error:  # shown below, with its traceback as the cause
            cause = error
            last = f"last exception: {type(error).__name__}: {error}"
        if is_last:
            lines = [f"not within {within_s:g} s: {what or getattr(fn, '__qualname__', repr(fn))}", last]
            if journal is not None:
                lines += ["journal:", journal_tail(journal)]
            raise AssertionError("\n".join(lines)) from cause
        time.sleep(pause_s)  # noqa: TID251 - this is the one place where tests sleep
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)


def journal_tail(path: str | os.PathLike[str], lines: int = 30) -> str:
    """The last lines of a journal as text, or why there are none."""
    path = os.fspath(path)
    if os.path.isdir(path):
        path = os.path.join(path, "events.jsonl")
    try:
        with open(path, "rb") as file:
            tail = file.read().decode("utf-8", "replace").splitlines()[-lines:]
    except OSError as error:
        return f"  ({error})"
    return "\n".join(f"  {line[:400]}" for line in tail) or "  (empty)"


def holds(check: Callable[[], object], for_s: float) -> None:
    """Call `check`, which asserts, again and again for this long: nothing must happen meanwhile."""
    ends_mono = time.monotonic() + for_s
    while True:
        check()
        if time.monotonic() >= ends_mono:
            return
        time.sleep(_LONGEST_PAUSE_S)  # noqa: TID251 - as above
