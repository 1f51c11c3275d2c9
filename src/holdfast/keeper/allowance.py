"""What time of day and money allow: windows of pools, and budgets per day. Pure.

Only queue tasks count, when their agents report what they cost: a task that is running may still exceed a
budget by its own cost, which `--budget-usd` limits.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.model import day_budget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

#: The key of all pools together in `spent`.
HOME = "*"


def add(
    spent: Mapping[str, float], day: str, *, pool: str, cost_usd: float, now: float
) -> tuple[dict[str, float], str]:
    """The sums after a task of a pool cost this, and their day: they start at zero at local midnight."""
    today = clock.local_day(now)
    before: Mapping[str, float] = spent if day == today else {}
    return {
        **before,
        HOME: before.get(HOME, 0.0) + cost_usd,
        pool: before.get(pool, 0.0) + cost_usd,
    }, today


def spent_today(spent: Mapping[str, float], day: str, *, now: float) -> Mapping[str, float]:
    """The sums, if they are of today."""
    return spent if day == clock.local_day(now) else {}


def unknown_today(unpriced: Mapping[str, str], *, now: float) -> frozenset[str]:
    """The pools of which more was spent today than is known."""
    today = clock.local_day(now)
    return frozenset(pool for pool, day in unpriced.items() if day == today)


def over_budget(
    spent: Mapping[str, float], limit_usd: float | None, unknown: AbstractSet[str] = frozenset()
) -> str:
    """Why nothing is started today; empty if something may be. `unknown`: see `unknown_today`."""
    return day_budget.refusal(spent.get(HOME, 0.0), limit_usd, is_partial=HOME in unknown)


def closed_pools(
    windows: Mapping[str, str],
    budgets: Mapping[str, float],
    spent: Mapping[str, float],
    unknown: AbstractSet[str] = frozenset(),
    *,
    now: float,
) -> dict[str, str]:
    """The pools of which nothing may start now, each with the reason."""
    closed: dict[str, str] = {}
    for pool, text in windows.items():
        window = clock.parse_window(text)
        if window is not None and clock.opens_in_s(window, now) > 0:
            closed[pool] = f"the pool {pool} starts at {text.partition('-')[0].strip()} (pool_windows)"
    return {**closed, **spent_pools(budgets, spent, unknown)}


def spent_pools(
    budgets: Mapping[str, float], spent: Mapping[str, float], unknown: AbstractSet[str] = frozenset()
) -> dict[str, str]:
    """The pools whose budget of today is spent, each with the reason."""
    return {
        pool: f"the pool {pool} starts nothing before midnight: "
        f"{day_budget.as_text(used, limit_usd, is_partial=pool in unknown)} (pool_budgets in your settings)"
        for pool, limit_usd in budgets.items()
        if (used := spent.get(pool, 0.0)) >= limit_usd
    }
