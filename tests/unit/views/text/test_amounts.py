"""Amounts are short, and what is unknown is not zero."""

from __future__ import annotations

import pytest

from holdfast.views.text import amounts


@pytest.mark.parametrize(
    ("count", "noun", "said"),
    [
        (0, "retry", "0 retries"),
        (1, "retry", "1 retry"),
        (1, "interrupt", "1 interrupt"),
        (2_000_000, "task", "2000000 tasks"),
        (0.25, "task", "0.25 tasks"),
        (1.0, "task", "1 task"),
    ],
)
def test_counts_have_their_plural(count: float, noun: str, said: str) -> None:
    assert amounts.plural(count, noun) == said


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (999, "999"), (1000, "1.0k"), (12345, "12.3k"), (999_960, "1.0M"), (4_500_000, "4.5M")],
)
def test_numbers_are_short(count: int, shown: str) -> None:
    assert amounts.short(count) == shown


def test_an_unreported_amount_is_unknown() -> None:
    assert amounts.usage(None) == "tokens unknown, cost unknown"
    assert amounts.usage(None, paid_calls=1) == "tokens unknown, cost unknown"
    assert amounts.usage({"cost_usd": 0.0}, paid_calls=0) == "no paid calls"
    assert amounts.usage({"cost_usd": 0.5}, paid_calls=0) == "tokens unknown, cost $0.50"
    assert amounts.usage({"input_tokens": 0, "output_tokens": 0, "cost_usd": None}) == amounts.usage({})
    told = {"input_tokens": 12_300, "output_tokens": 5, "cost_usd": 1.2}
    assert amounts.usage(told) == "12.3k tokens in, 5 out, cost $1.20"


def test_an_unreported_cost_is_unknown_not_zero() -> None:
    assert amounts.cost({"usage": {"cost_usd": None}}) == ""
    assert amounts.cost({"usage": {"cost_usd": 0.0}}) == "$0.00"
