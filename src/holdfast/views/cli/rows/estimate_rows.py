"""An estimate as rows of a table."""

from __future__ import annotations

from holdfast import clock
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.model.estimate import Estimate, Spread

HEAD = ("STAGE", "TASKS", "CALLS", "TOKENS", "COST", "TIME")
NO_HISTORY = "no history"


def rows(estimate: Estimate) -> list[tuple[str, ...]]:
    """One row per stage, and the total. Each figure is `p50 (p10–p90)`."""
    found = [
        (f"{each.stage}{'*' if each.is_other_model else ''}", str(each.tasks), *_figures(each.spread))
        if each.tasks
        else (each.stage, NO_HISTORY, "-", "-", "-", "-")
        for each in estimate.stages
    ]
    total = "total" if not estimate.unknown else "at least"
    return [*found, (total, str(estimate.tasks), *_figures(estimate.total))] if estimate.tasks else found


def notes(estimate: Estimate) -> list[str]:
    """What a reader must know about the numbers."""
    if not estimate.tasks:
        return ["no history: no task of this home has done one of these stages"]
    lines = [
        f"based on {amounts.plural(estimate.tasks, 'task')} of this home: median (p10–p90); the total adds up"
    ]
    if estimate.unknown:
        lines.append(f"no history, and not in the total: {', '.join(estimate.unknown)}")
    if other := [each.stage for each in estimate.stages if each.is_other_model]:
        lines.append(f"* with other models: {', '.join(other)}")
    return lines


def _figures(spread: dict[str, Any]) -> tuple[str, ...]:
    formats: tuple[tuple[str, Callable[[float], str]], ...] = (
        ("calls", lambda value: f"{value:.1f}".removesuffix(".0")),
        ("tokens", amounts.short),
        ("cost_usd", lambda value: f"${value:.2f}"),
        ("seconds", clock.duration_text),
    )
    return tuple(_cell(spread.get(name), form) for name, form in formats)


def _cell(spread: Spread | None, form: Callable[[float], str]) -> str:
    if spread is None:
        return "unknown"
    low, middle, high = form(spread.p10), form(spread.p50), form(spread.p90)
    return middle if low == high else f"{middle} ({low}–{high})"
