"""Usage: tokens and cost."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Usage(Record):
    """Tokens and cost; null is unknown, never zero."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None

    def minus(self, other: Usage) -> Usage:
        """What came on top of `other`; never below zero."""
        return Usage(
            input_tokens=_subtract(self.input_tokens, other.input_tokens),
            output_tokens=_subtract(self.output_tokens, other.output_tokens),
            cost_usd=_subtract(self.cost_usd, other.cost_usd),
        )

    def plus(self, other: Usage | ev.AgentUsage) -> Usage:
        """The sum, in which unknown and unknown stays unknown."""
        return Usage(
            input_tokens=_add(self.input_tokens, other.input_tokens),
            output_tokens=_add(self.output_tokens, other.output_tokens),
            cost_usd=_add(self.cost_usd, other.cost_usd),
        )


def _subtract(left: Any, right: Any) -> Any:
    return left if left is None or right is None else max(0, left - right)


def _add(left: Any, right: Any) -> Any:
    return right if left is None else left if right is None else left + right
