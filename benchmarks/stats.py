"""Statistics for the rows of the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def percentile(values: Sequence[float], percent: float) -> float:
    """The given percentile, interpolated. Raises ValueError without values."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def median(values: Sequence[float]) -> float:
    """The median."""
    return percentile(values, 50)


def milliseconds(nanoseconds: Iterable[int]) -> list[float]:
    """Convert nanoseconds to milliseconds."""
    return [value / 1e6 for value in nanoseconds]


def number(value: float) -> str:
    """Three significant digits, without an exponent: `0.213`, `16.4`, `1250`."""
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:.0f}"
    digits = 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:.{digits}f}"
