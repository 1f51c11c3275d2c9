"""What the conductor of a fan-out does next."""

from __future__ import annotations

from holdfast.fanout.decide import Child, Create, Finish, LeaveOut, Merge, SendBack, Wait, next_step
from holdfast.model.fan_out import LEFT_OUT, MERGED, FanOut, Row
from holdfast.model.spec import PlanItem

DONE = Child(status="completed", is_settled=True)


def item(name: str, *depends_on: str) -> PlanItem:
    return PlanItem(id=name, title=name, prompt=name, depends_on=depends_on)


def rows(**states: str | Row) -> FanOut:
    return FanOut(
        rows=tuple(
            each if isinstance(each, Row) else Row(id=name, task=f"f.{name}", state=each)
            for name, each in states.items()
        )
    )


def test_an_item_starts_once_everything_it_depends_on_is_merged() -> None:
    items = (item("a"), item("b", "a"))
    assert next_step(items, rows(a="open", b="open"), {}) == Create(item="a")
    assert next_step(items, rows(a="open", b="open"), {"a": Child(status="running")}) == Wait()
    assert next_step(items, rows(a=MERGED, b="open"), {}) == Create(item="b")
    step = next_step(items, rows(a=LEFT_OUT, b="open"), {})
    assert step == LeaveOut(item="b", reason="it depends on a, which was left out")


def test_tasks_start_before_others_are_merged_and_merges_follow_the_plan() -> None:
    items = (item("a"), item("b"), item("c"))
    state = rows(a="open", b="open", c="open")
    assert next_step(items, state, {"a": DONE, "b": DONE}) == Create(item="c")
    assert next_step(items, state, {"a": DONE, "b": DONE, "c": DONE}) == Merge(item="a")
    slow = Child(status="running")
    assert next_step(items, state, {"a": slow, "b": DONE, "c": slow}) == Merge(item="b")


def test_work_that_was_refused_goes_back_until_there_is_a_new_run() -> None:
    items, judged = (item("a"),), rows(a=Row(id="a", task="f.a", judged_run=1))
    assert next_step(items, judged, {"a": DONE}) == SendBack(item="a")
    assert next_step(items, judged, {"a": DONE.evolve(run=2)}) == Merge(item="a")
    # A request is pending, or a person has to answer.
    assert next_step(items, judged, {"a": DONE.evolve(is_settled=False)}) == Wait()
    assert next_step(items, judged, {"a": Child(status="interrupted", is_settled=True)}) == Wait()


def test_a_task_that_failed_is_left_out_and_retried_after_a_retry_of_the_parent() -> None:
    failed = Child(status="failed", is_settled=True, reason="no idea")
    step = next_step((item("a"),), rows(a="open"), {"a": failed})
    assert step == LeaveOut(item="a", reason="its task failed: no idea")
    judged = rows(a=Row(id="a", task="f.a", judged_run=1))
    assert next_step((item("a"),), judged, {"a": failed}) == SendBack(item="a")
    # A person had retried it alone, and it failed again: the retry of the parent tries it, but only once.
    again, reason = failed.evolve(run=2), "its task failed: no idea"
    assert next_step((item("a"),), judged, {"a": again}) == SendBack(item="a", reason=reason)
    tried = rows(a=Row(id="a", task="f.a", judged_run=1, made=True))
    assert next_step((item("a"),), tried, {"a": again}) == LeaveOut(item="a", reason=reason)


def test_it_ends_when_nothing_is_open() -> None:
    assert next_step((item("a"), item("b")), rows(a=MERGED, b=LEFT_OUT), {}) == Finish()
