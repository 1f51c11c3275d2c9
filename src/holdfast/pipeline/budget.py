"""The budget of a packet: how many paid calls. Pure."""

from __future__ import annotations


def paid_left(paid_calls: int, budget: int | None) -> int | None:
    """How many calls may still be made; None means any number.

    Check before a call, and count the call before it is made: it costs the same however it ends.
    """
    return None if budget is None else max(0, budget - paid_calls)


def has_call_left(left: int | None) -> bool:
    """Whether `paid_left` allows one more call."""
    return left is None or left > 0
