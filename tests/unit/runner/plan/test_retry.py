"""A failure is counted once, even if its record was torn; then the task retries, waits or ends."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.decision import Decision, Then
from holdfast.model.spec import Limits, PipelineSpec, StageSpec
from holdfast.model.status import Status
from holdfast.runner.plan.retry import retry_events
from holdfast.runner.plan.step import Journal, Step
from tests.support.planning import FAILURE, NOW, cleaned, memory, moved, moving, next_step
from tests.support.story import Story

CRASHED = Decision(then=Then.RETRY, status=Status.CRASHED, reason="why")
PIPELINE = PipelineSpec(intent="feature", group="impl", profile="standard", retry_budget=0)
LENSES = tuple(StageSpec(name=name, agent="a", group="g") for name in ("one", "two"))


def failed(outcome: str = "crashed", *, failures: int = 0, **limits: Any) -> Story:
    """An attempt that ended, after this many failures in a row."""
    story = Story(limits=Limits(**{"deadline_s": None, **limits})).attempt(1).end(1, outcome)
    story.tell(ev.AttemptSwept(attempt=1, killed=[], spared=[], proof="none left"))
    story.task.failures_in_a_row = story.task.total_retries = failures
    return story


def record(story: Story, decision: Decision = CRASHED, outcome: str = "crashed") -> tuple[ev.Event, ...]:
    return retry_events(story.task, decision, NOW, outcome=outcome, stage="a_run")


def states(events: tuple[ev.Event, ...]) -> list[str]:
    return [str(event.new) for event in events if isinstance(event, ev.TaskMoved)]


# ── the pause ──


@pytest.mark.req("SUP-6", "BUD-7")
@pytest.mark.parametrize(
    ("failures", "outcome", "pause_s", "delay_s"),
    [
        (0, "crashed", 0.0, 0.0),
        (1, "crashed", 0.0, 30.0),
        (2, "crashed", 0.0, 60.0),
        (9, "crashed", 0.0, 300.0),
        # A program that cannot be executed is not there a moment later either.
        (0, "spawn_failed", 0.0, 30.0),
        (0, "crashed", 5.0, 5.0),
        (0, "crashed", 500.0, 30.0),
    ],
)
def test_the_pause_grows_with_the_failures(
    failures: int, outcome: str, pause_s: float, delay_s: float
) -> None:
    story = failed(failures=failures)
    events = record(story, CRASHED.evolve(pause_s=pause_s), outcome)
    count = failures + 1
    planned = ev.RetryPlanned(stage="a_run", consecutive=count, total=count, delay_s=delay_s)
    if delay_s:
        wake_at = clock.iso(NOW.wall + delay_s)
        onward = moved("crashed", "waiting", "backoff after why", wake_at=wake_at)
    else:
        onward = moved("crashed", "spawning", "resume after why")
    assert events == (moved("running", "crashed", "why"), planned, onward)


def test_a_pause_ends_with_the_deadline() -> None:
    story = failed(failures=5, deadline_s=20.0)
    *_, planned, _ = record(story)
    assert isinstance(planned, ev.RetryPlanned)
    assert planned.delay_s == 10.0


def test_a_timeout_is_retried_without_a_pause() -> None:
    events = record(failed(failures=5), CRASHED.evolve(status=Status.TIMEOUT))
    assert states(events) == ["timeout", "spawning"]


# ── the caps ──


@pytest.mark.req("BUD-7")
@pytest.mark.parametrize(
    ("most", "failures", "outcome", "end", "reason"),
    [
        (0, 0, "crashed", "abandoned", "no retries are allowed; the last failure: why"),
        (1, 1, "crashed", "abandoned", "its one retry is used up; the last failure: why"),
        (3, 3, "crashed", "abandoned", "all 3 retries are used up; the last failure: why"),
        (3, 3, "spawn_failed", "failed", "all 3 retries are used up; the last failure: why"),
    ],
)
def test_without_a_retry_left_the_task_ends(
    most: int, failures: int, outcome: str, end: str, reason: str
) -> None:
    events = record(failed(failures=failures, max_retries=most), outcome=outcome)
    assert events == (moved("running", "crashed", "why"), moved("crashed", end, reason, **FAILURE))


def test_a_failure_that_burns_no_retry_needs_none_left() -> None:
    events = record(failed(failures=3, max_retries=3), CRASHED.evolve(burns=False))
    assert states(events) == ["crashed", "waiting"]
    assert isinstance(events[1], ev.RetryPlanned)
    assert (events[1].total, events[1].burned) == (3, False)


def test_after_the_deadline_nothing_is_retried() -> None:
    story = failed(deadline_s=10.0)
    over = moved("crashed", "abandoned", "its deadline is over; the last failure: why", **FAILURE)
    assert record(story, CRASHED.evolve(burns=False)) == (moved("running", "crashed", "why"), over)


# ── torn records ──


def whole(story: Story) -> Journal:
    """The record that counts the failure."""
    step = next_step(story, cleaned(1))
    assert isinstance(step, Journal)
    return step


def rest(story: Story) -> Story:
    """Take the steps after a torn record until the next attempt may start."""
    for _ in range(5):
        if story.task.status in (Status.SPAWNING, Status.WAITING):
            return story
        story.tell(*whole(story).events)
    raise AssertionError(f"still {story.task.status}")


@pytest.mark.req("BUD-7")
@pytest.mark.parametrize("cut", range(4))
@pytest.mark.parametrize("failures", [0, 3])
def test_a_record_that_was_torn_anywhere_counts_the_failure_once(cut: int, failures: int) -> None:
    story = failed(failures=failures)
    story.tell(*whole(story).events[:cut])
    rest(story)
    assert (story.task.failures_in_a_row, story.task.total_retries) == (failures + 1, failures + 1)


@pytest.mark.parametrize("cut", range(4))
def test_a_torn_record_after_recorders_that_died_counts_once(cut: int) -> None:
    """No attempt is left that the count could belong to."""
    story = Story(limits=Limits(deadline_s=None))
    for number in (1, 2, 3):
        story.open(number).tell(ev.AttemptVoid(attempt=number, reason="r"))
    step = next_step(story, memory(preflight_run=1))
    assert isinstance(step, Journal)
    story.tell(*step.events[:cut])
    while story.task.status not in (Status.SPAWNING, Status.WAITING) or story.task.voids_in_a_row:
        step = next_step(story, memory(preflight_run=1))
        assert isinstance(step, Journal)
        story.tell(*step.events)
    assert (story.task.failures_in_a_row, story.task.total_retries) == (1, 1)


@pytest.mark.parametrize("state", ["crashed", "hung"])
@pytest.mark.parametrize(
    ("outcome", "planned"),
    [
        ("crashed", {"consecutive": 1, "total": 1}),
        ("lost", {"consecutive": 0, "total": 0, "burned": False}),
        ("unknown_session", {"consecutive": 1, "total": 1, "fresh_session": True}),
    ],
)
def test_a_state_without_a_plan_is_planned(state: str, outcome: str, planned: dict[str, Any]) -> None:
    story = failed(outcome).move(state, reason="why")
    events = (ev.RetryPlanned(stage="a_run", delay_s=0.0, **planned),)
    assert next_step(story) == moving(state, "spawning", "resume after why", before=events)


@pytest.mark.parametrize("state", ["crashed", "hung", "timeout"])
@pytest.mark.parametrize("delay_s", [0.0, 8.0])
def test_a_plan_without_its_move_is_completed(state: str, delay_s: float) -> None:
    story = failed().move(state, reason="why")
    story.tell(ev.RetryPlanned(stage="a_run", consecutive=1, total=1, delay_s=delay_s))
    if delay_s and state != "timeout":
        wake_at = clock.iso(NOW.wall + delay_s)
        onward = moving(state, "waiting", "backoff after why", wake_at=wake_at)
    else:
        onward = moving(state, "spawning", "resume after why")
    assert next_step(story) == onward


def test_a_timeout_without_a_plan_ends_the_task() -> None:
    story = failed().move("timeout", reason="too long")
    assert next_step(story) == moving("timeout", "abandoned", "too long", **FAILURE)


@pytest.mark.parametrize("cut", range(2))
def test_a_record_of_the_last_failure_that_was_torn_ends_the_task_too(cut: int) -> None:
    """No retry is left: the state that the task passed through must not earn it another one."""
    story = failed(failures=3, max_retries=3)
    assert states(whole(story).events) == ["crashed", "abandoned"]
    story.tell(*whole(story).events[:cut])
    story.tell(*whole(story).events)
    assert story.task.status is Status.ABANDONED


def test_a_timeout_that_ends_the_task_ends_it_although_a_parallel_session_is_given_up() -> None:
    """The note about the other session is no plan for a retry of this task."""
    story = Story(LENSES, limits=Limits(deadline_s=None, on_limit="end"), pipeline=PIPELINE)
    story.open(1, stage="one").open(2, stage="two").start(1).start(2).move("running")
    story.tell(ev.StopIntended(attempt=1, intent="timeout", reason="too long"))
    for number, outcome, kind in ((1, "timeout", "timeout"), (2, "unknown_session", "transient")):
        stage = LENSES[number - 1].name
        story.end(number, outcome).tell(
            ev.AttemptSwept(attempt=number, killed=[], spared=[], proof="none left"),
            ev.FailureTriaged(
                stage=stage, attempt=number, outcome=outcome, failure_class=kind, signature=stage
            ),
        )
    story.task.spec = story.task.spec.evolve(pipeline=PIPELINE.evolve(retry_budget=1))
    story.task.signatures["one"]["count"] = 2
    step: Step = next_step(story, cleaned(1, 2))
    assert isinstance(step, Journal)
    assert states(step.events) == ["timeout"]
    assert any(isinstance(event, ev.RetryPlanned) for event in step.events)
    story.tell(*step.events)
    step = next_step(story, cleaned(1, 2))
    assert isinstance(step, Journal)
    assert states(step.events) == ["abandoned"]
