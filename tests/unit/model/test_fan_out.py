"""The record of a fan-out: rows follow the plan, whatever the file says."""

from __future__ import annotations

from holdfast.model.fan_out import LEFT_OUT, MERGED, OPEN, FanOut, Row, begun, planned
from holdfast.model.spec import PlanItem

ITEMS = tuple(PlanItem(id=name, title=name, prompt=name) for name in ("a", "b"))


def test_tasks_are_those_of_the_plan() -> None:
    forged = FanOut(rows=(Row(id="a", task="../../other", state=MERGED), Row(id="x", task="f.x")))
    rows = planned(forged, "f", ITEMS).rows
    assert [(row.id, row.task, row.state) for row in rows] == [("a", "f.a", MERGED), ("b", "f.b", OPEN)]
    asked = begun(FanOut(planning=Row(id="y", task="other")), "f", 1, asks=True).planning
    assert asked is not None
    assert (asked.id, asked.task) == ("plan", "f.plan")
    assert begun(None, "f", 1, asks=False).planning is None


def test_a_retry_of_the_parent_opens_what_was_left_out() -> None:
    left = Row(id="a", task="f.a", state=LEFT_OUT, returned=2, made=True, judged_run=3)
    done = Row(id="b", task="f.b", state=MERGED, returned=1, made=True)
    record = FanOut(run=1, rows=(left, done))
    assert begun(record, "f", 1, asks=False).rows == (left, done)
    opened = left.evolve(state=OPEN, returned=0, made=False)
    assert begun(record, "f", 2, asks=False).rows == (opened, done)
