"""Windows of pools and budgets per day."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from holdfast import clock
from holdfast.keeper import allowance


@pytest.fixture(autouse=True)
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.delenv("TZ")
    time.tzset()


def at(local: str) -> float:
    """A time of 31 January in local time."""
    return time.mktime(time.strptime(f"2026-01-31 {local}", "%Y-%m-%d %H:%M"))


@pytest.mark.parametrize(
    ("window", "now", "closed_for_s"),
    [
        ("22:00-06:00", "21:59", 60),
        ("22:00-06:00", "22:00", 0),
        ("22:00-06:00", "05:59", 0),
        ("22:00-06:00", "06:00", 16 * 3600),
        ("09:00-17:00", "08:00", 3600),
        ("09:00-17:00", "16:59", 0),
        ("09:00-17:00", "17:00", 16 * 3600),
    ],
)
def test_a_window_may_span_midnight(window: str, now: str, closed_for_s: float) -> None:
    assert clock.opens_in_s(clock.parse_window(window), at(now)) == closed_for_s


@pytest.mark.parametrize("text", ["", "22:00", "22:00-", "22-06", "22:00-22:00", "25:00-06:00", "a-b"])
def test_what_is_no_window(text: str) -> None:
    assert clock.parse_window(text) is None


def test_sums_start_at_zero_at_local_midnight() -> None:
    spent, day = allowance.add({}, "", pool="nightly", cost_usd=2.0, now=at("23:30"))
    spent, day = allowance.add(spent, day, pool="default", cost_usd=1.0, now=at("23:40"))
    assert (spent, day) == ({"*": 3.0, "nightly": 2.0, "default": 1.0}, "2026-01-31")
    assert allowance.spent_today(spent, day, now=at("23:59")) == spent
    assert allowance.spent_today(spent, day, now=at("23:59") + 60) == {}
    assert allowance.add(spent, day, pool="nightly", cost_usd=0.5, now=at("23:59") + 60) == (
        {"*": 0.5, "nightly": 0.5},
        "2026-02-01",
    )


def test_a_budget_says_why_nothing_starts() -> None:
    assert allowance.over_budget({"*": 4.99}, 5.0) == ""
    assert allowance.over_budget({"*": 99.0}, None) == ""
    assert "$5.00 of $5.00 spent today" in allowance.over_budget({"*": 5.0}, 5.0)


def test_pools_are_closed_by_the_clock_or_by_their_budget() -> None:
    windows, budgets = {"nightly": "22:00-06:00"}, {"cheap": 1.0}
    assert allowance.closed_pools(windows, budgets, {"cheap": 0.5}, now=at("23:00")) == {}
    closed = allowance.closed_pools(windows, budgets, {"cheap": 1.5}, now=at("12:00"))
    assert "starts at 22:00" in closed["nightly"]
    assert "$1.50 of $1.00 spent today" in closed["cheap"]
