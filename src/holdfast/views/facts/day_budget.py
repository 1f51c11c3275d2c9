"""What the queue has spent today of `budget_per_day`."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Home


def as_text(home: Home) -> str:
    """`$4.91 of $20.00 spent today`; empty without such a budget."""
    used, limit_usd = _read(home)
    return f"${used:.2f} of ${limit_usd:.2f} spent today" if limit_usd is not None else ""


def exceeded(home: Home) -> str:
    """Why nothing is started today; empty if something may be."""
    used, limit_usd = _read(home)
    if limit_usd is None or used < limit_usd:
        return ""
    return f"no task is started before midnight: {as_text(home)} (budget_per_day in your settings)"


def _read(home: Home) -> tuple[float, float | None]:
    """The sum of today and the limit, as the keeper last wrote them."""
    try:
        loop: dict[str, Any] = atomic.read_json(home.loop) or {}
        settings: dict[str, Any] = (atomic.read_json(home.settings) or {}).get("loop") or {}
        spent: dict[str, Any] = loop.get("spent") or {}
        used = spent.get("*", 0.0)  # of all pools
    except (HoldfastError, AttributeError):
        return 0.0, None
    limit: Any = settings.get("budget_usd")
    is_today = loop.get("spent_day") == clock.local_day(clock.now())
    if not isinstance(limit, (int, float)) or not isinstance(used, (int, float)):
        return 0.0, None
    return used if is_today else 0.0, limit
