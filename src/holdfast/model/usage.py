"""Usage: tokens and cost."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.spec import Limits


class Usage(Record):
    """Tokens and cost. None means unknown, not zero."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None

    def minus(self, other: Usage) -> Usage:
        """The difference to `other`; never below zero."""
        return Usage(
            input_tokens=_subtract(self.input_tokens, other.input_tokens),
            output_tokens=_subtract(self.output_tokens, other.output_tokens),
            cost_usd=_subtract(self.cost_usd, other.cost_usd),
        )

    def plus(self, other: Usage | ev.AgentUsage) -> Usage:
        """The sum. Unknown plus unknown is unknown."""
        return Usage(
            input_tokens=_add(self.input_tokens, other.input_tokens),
            output_tokens=_add(self.output_tokens, other.output_tokens),
            cost_usd=_add(self.cost_usd, other.cost_usd),
        )


def budget_reached(usage: Usage, turns: int, limits: Limits) -> str | None:
    """A sentence about the used-up budget; None if there is none. An unknown cost never reaches a budget."""
    if limits.budget_usd is not None and usage.cost_usd is not None and usage.cost_usd >= limits.budget_usd:
        return f"its budget is used up: ${usage.cost_usd:.2f} of ${limits.budget_usd:.2f}"
    tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    if limits.budget_tokens is not None and tokens >= limits.budget_tokens:
        return f"its budget is used up: {tokens} of {limits.budget_tokens} tokens"
    if limits.max_turns is not None and turns > limits.max_turns:
        return f"it took more than {limits.max_turns} turns"
    return None


def over_budget(usage: Usage, turns: int, limits: Limits) -> str:
    """`$5.00 of $1.00`, if more was used than the budget: some programs report it only with their result."""
    found: list[str] = []
    if limits.budget_usd is not None and usage.cost_usd is not None and usage.cost_usd > limits.budget_usd:
        found.append(f"${usage.cost_usd:.2f} of ${limits.budget_usd:.2f}")
    tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    if limits.budget_tokens is not None and tokens > limits.budget_tokens:
        found.append(f"{tokens} of {limits.budget_tokens} tokens")
    if limits.max_turns is not None and turns > limits.max_turns:
        found.append(f"{turns} of {limits.max_turns} turns")
    return ", ".join(found)


def _subtract(left: Any, right: Any) -> Any:
    return left if left is None or right is None else max(0, left - right)


def _add(left: Any, right: Any) -> Any:
    return right if left is None else left if right is None else left + right
