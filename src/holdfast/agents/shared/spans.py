"""Spans of time as the programs write them: `1h49m8s`, `15 hours 23 minutes`, `34.07s`, `28ms`."""

from __future__ import annotations

import re

#: A longer wait is an error in the message; a task must not wait for it.
LONGEST_S = 35 * 86400.0
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhd])", re.IGNORECASE)


def seconds(text: str) -> float | None:
    """The length of a span; None if no part of it is understood. A unit is known by its first letter."""
    parts = _PART.findall(text)
    return sum(float(number) * _UNITS_S[unit.lower()] for number, unit in parts) if parts else None
