"""Which packets are removed."""

from __future__ import annotations

import pytest

from holdfast.model.retention import Candidate, choose

DAY = 86400.0
#: Ended five, four, … days ago; 10 bytes each.
FIVE = [Candidate(task_id=f"t{age}", ended=-age * DAY, size_bytes=10) for age in (3, 1, 5, 2, 4)]


@pytest.mark.req("AUD-5", "AUD-6")
@pytest.mark.parametrize(
    ("rules", "gone"),
    [
        ({}, ["t5", "t4", "t3", "t2", "t1"]),
        ({"keep": 2}, ["t5", "t4", "t3"]),
        ({"keep": 9}, []),
        ({"older_than_s": 2.5 * DAY}, ["t5", "t4", "t3"]),
        ({"older_than_s": 2.5 * DAY, "keep": 4}, ["t5"]),
        ({"max_bytes": 30}, ["t5", "t4"]),
        ({"max_bytes": 50}, []),
        ({"max_bytes": 0}, ["t5", "t4", "t3", "t2", "t1"]),
        ({"max_bytes": 0, "keep": 3}, ["t5", "t4"]),
        ({"older_than_s": 4.5 * DAY, "max_bytes": 30}, ["t5", "t4"]),
    ],
)
def test_the_oldest_go_first_and_the_newest_stay(rules: dict, gone: list[str]) -> None:
    assert [found.task_id for found, _ in choose(FIVE, 0.0, **rules)] == gone
