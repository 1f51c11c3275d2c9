"""Paid calls of a packet."""

from __future__ import annotations

import pytest

from holdfast.pipeline.budget import has_call_left, paid_left


@pytest.mark.req("BUD-4")
def test_what_is_left() -> None:
    assert [paid_left(made, 2) for made in range(4)] == [2, 1, 0, 0]
    assert paid_left(7, None) is None
    assert (has_call_left(None), has_call_left(1), has_call_left(0)) == (True, True, False)
