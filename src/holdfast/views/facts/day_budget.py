"""What the queue has spent today of `budget_per_day`."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model import day_budget
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Home


_CENT_USD = 0.01


def as_text(home: Home) -> str:
    """`$4.91 of $20.00 spent today`, `at least …` if the cost of some tasks is unknown; empty without such a
    budget."""
    used, limit_usd, is_partial = _read(home)
    return "" if limit_usd is None else day_budget.as_text(used, limit_usd, is_partial=is_partial)


def removed_usd(home: Home, known_usd: float | None) -> float | None:
    """What tasks cost today that are not in the home any more, at least; None if nothing is known to be
    missing. `known_usd`: the cost of the last 24 hours, of the tasks that are there."""
    missing_usd = _read(home)[0] - (known_usd or 0.0)
    return round(missing_usd, 6) if missing_usd >= _CENT_USD else None


def exceeded(home: Home) -> str:
    """Why nothing is started today; empty if something may be."""
    used, limit_usd, is_partial = _read(home)
    return day_budget.refusal(used, limit_usd, is_partial=is_partial)


def _read(home: Home) -> tuple[float, float | None, bool]:
    """The sum of today, the limit, and whether more was spent, as the keeper last wrote them."""
    try:
        loop: dict[str, Any] = atomic.read_json(home.loop) or {}
        settings: dict[str, Any] = (atomic.read_json(home.settings) or {}).get("loop") or {}
        spent: dict[str, Any] = loop.get("spent") or {}
        used = spent.get("*", 0.0)  # of all pools
        unpriced: dict[str, Any] = loop.get("unpriced") or {}
        unpriced_day = unpriced.get("*")
    except (HoldfastError, AttributeError):
        return 0.0, None, False
    limit: Any = settings.get("budget_usd")
    today = clock.local_day(clock.now())
    if not isinstance(used, (int, float)) or loop.get("spent_day") != today:
        used = 0.0
    return used, limit if isinstance(limit, (int, float)) else None, unpriced_day == today
