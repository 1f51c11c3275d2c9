"""Budgets of a packet: how many paid calls, and how long one may take. Pure."""

from __future__ import annotations

from holdfast.model.record import Record


class Limit(Record):
    """A time limit and what it is called."""

    seconds: float
    name: str


def may_call(paid_calls: int, budget: int | None) -> bool:
    """Whether another paid call fits. Ask before the call, and count the call before it is made: it costs what it costs,
    however it ends."""
    return budget is None or paid_calls < budget


def paid_left(paid_calls: int, budget: int | None) -> int | None:
    """How many calls may still be made; None for any number."""
    return None if budget is None else max(0, budget - paid_calls)


def has_call_left(left: int | None) -> bool:
    """Whether one more call fits into what `paid_left` said."""
    return left is None or left > 0


def tightest(
    call_s: float | None,
    attempt_s: float | None,
    task_left_s: float | None,
    *,
    call_from: str = "budgets.max_wallclock_sec",
) -> Limit | None:
    """Of the three nested limits (call ≤ attempt ≤ task) the one that comes first, with the words that name it;
    None where there is none. Of two equal ones the inner is named."""
    found = [
        Limit(seconds=max(0.0, seconds), name=words.format(s=_number(seconds)))
        for seconds, words in (
            (call_s, f"its limit of {{s}} s per call ({call_from})"),
            (attempt_s, "its limit of {s} s per attempt (timeout_s)"),
            (task_left_s, "what is left of its deadline, {s} s"),
        )
        if seconds is not None
    ]
    return min(found, key=_seconds, default=None)


def _seconds(limit: Limit) -> float:
    return limit.seconds


def _number(seconds: float) -> str:
    return f"{max(0.0, seconds):.1f}".removesuffix(".0")
