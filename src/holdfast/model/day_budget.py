"""Sentences about budgets of a day, which the keeper writes and the views repeat."""

from __future__ import annotations


def as_text(used_usd: float, limit_usd: float, *, is_partial: bool) -> str:
    """`$4.91 of $20.00 spent today`; `at least …` if more was spent than is known."""
    return f"{'at least ' if is_partial else ''}${used_usd:.2f} of ${limit_usd:.2f} spent today"


def refusal(used_usd: float, limit_usd: float | None, *, is_partial: bool) -> str:
    """Why the queue starts nothing today; empty if it may."""
    if limit_usd is None or used_usd < limit_usd:
        return ""
    spent = as_text(used_usd, limit_usd, is_partial=is_partial)
    return f"no task is started before midnight: {spent} (budget_per_day in your settings)"
