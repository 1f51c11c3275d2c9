"""The budgets of a fan-out: divided among its tasks, and never granted twice."""

from __future__ import annotations

from holdfast.fanout.children import left_of
from holdfast.model.spec import Limits
from holdfast.model.usage import Usage


def test_work_that_goes_back_has_what_is_left() -> None:
    limits = Limits(budget_usd=1.0, budget_tokens=100)
    used = Usage(input_tokens=30, output_tokens=20, cost_usd=0.25)
    assert left_of(limits, used) == {"budgets.budget_usd": "0.750000", "budgets.budget_tokens": "50"}
    assert left_of(limits, Usage(input_tokens=300, cost_usd=2.0)) == {
        "budgets.budget_usd": "0.000000",
        "budgets.budget_tokens": "0",
    }


def test_what_is_not_limited_or_not_known_is_not_changed() -> None:
    assert left_of(Limits(), Usage(cost_usd=1.0)) == {}
    assert left_of(Limits(budget_usd=1.0), Usage()) == {}
