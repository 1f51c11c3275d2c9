"""The budget of a packet: how many paid calls. Pure."""

from __future__ import annotations


def paid_left(paid_calls: int, budget: int | None) -> int | None:
    """How many calls may still be made; None for any number. Ask before the call, and count the call before it is made: it costs
    what it costs, however it ends."""
    return None if budget is None else max(0, budget - paid_calls)


def has_call_left(left: int | None) -> bool:
    """Whether one more call fits into what `paid_left` said."""
    return left is None or left > 0
