"""Paid calls and time limits of a packet."""

from __future__ import annotations

import pytest

from holdfast.pipeline.budget import has_call_left, may_call, paid_left, tightest


@pytest.mark.req("BUD-4")
def test_a_call_fits_until_as_many_were_made_as_there_may_be() -> None:
    assert [may_call(made, 2) for made in range(4)] == [True, True, False, False]
    assert may_call(0, 0) is False
    assert may_call(10**6, None) is True


@pytest.mark.req("BUD-4")
def test_what_is_left() -> None:
    assert [paid_left(made, 2) for made in range(4)] == [2, 1, 0, 0]
    assert paid_left(7, None) is None
    assert (has_call_left(None), has_call_left(1), has_call_left(0)) == (True, True, False)


@pytest.mark.req("BUD-2")
@pytest.mark.parametrize(
    ("limits", "seconds", "name"),
    [
        ((900.0, 3600.0, 18000.0), 900.0, "its limit of 900 s per call (budgets.max_wallclock_sec)"),
        ((900.0, 600.5, None), 600.5, "its limit of 600.5 s per attempt (timeout_s)"),
        ((900.0, 3600.0, 12.0), 12.0, "what is left of its deadline, 12 s"),
        ((None, None, 12.0), 12.0, "what is left of its deadline, 12 s"),
        ((900.0, 900.0, 900.0), 900.0, "its limit of 900 s per call (budgets.max_wallclock_sec)"),
        ((900.0, None, -3.0), 0.0, "what is left of its deadline, 0 s"),
    ],
)
def test_the_tightest_limit_is_named(
    limits: tuple[float | None, float | None, float | None], seconds: float, name: str
) -> None:
    found = tightest(*limits)
    assert found is not None
    assert (found.seconds, found.name) == (seconds, name)


def test_no_limit_at_all() -> None:
    assert tightest(None, None, None) is None
