"""Attempts as people count them. Pure.

In the journal, chores and takeovers share the numbers of attempts. People count attempts alone, as in `show`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class AttemptNumbers:
    """The numbers of a task's attempts, from the lines passed to `apply`."""

    def __init__(self) -> None:
        self._others = 0
        self._shown: dict[int, str] = {}

    def apply(self, line: dict[str, Any]) -> None:
        """Take a line of the journal into account."""
        kind, number = line.get("type"), line.get("attempt")
        if kind not in ("attempt.opened", "takeover.started") or type(number) is not int:
            return
        what = "takeover" if kind == "takeover.started" else str(line.get("kind") or "agent")
        self._others += what != "agent"
        self._shown[number] = what if what != "agent" else str(number - self._others)

    def shown(self, number: Any) -> str:
        """`2`, or what it is if it is no attempt: `prepare`, `gate`, `takeover`. Unknown ones as they are."""
        return self._shown.get(number, str(number)) if type(number) is int else str(number or "-")
