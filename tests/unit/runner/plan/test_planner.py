"""Which part of the planner decides, in which order, and what it does in states in which nothing runs."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model import events as ev
from holdfast.model.fold import CRASH_LIMIT
from holdfast.model.spec import Limits, PipelineSpec, QueueSpec
from holdfast.runner.plan.facts import PreparedInterrupt
from holdfast.runner.plan.step import (
    AnswerRequest,
    EndTask,
    Heartbeat,
    IntendStop,
    Leave,
    OpenAttempts,
    Report,
    Step,
    Watch,
    WriteInterruptFile,
)
from tests.support.planning import alive, asking, cleaned, memory, moving, next_step, request
from tests.support.story import BOOT, Story

PIPELINE = PipelineSpec(intent="feature", group="impl", profile="standard")
LOOP = f"{CRASH_LIMIT} runners in a row died on this task without progress"
SAVED = PreparedInterrupt(question="q", reason="q", is_saved=True, is_announced=True)
#: The facts of a plain task whose stages have what they need.
READY: dict[str, Any] = {"remembered": memory(preflight_run=1)}


def after_crashes(story: Story, crashes: int = CRASH_LIMIT) -> Story:
    """Runners that died at once, and the one that is there now."""
    for pid in range(crashes + 1):
        story.tell(ev.RunnerStarted(pid=pid, version="0", **BOOT))
    return story


# ── the order ──


@pytest.mark.parametrize(
    "story",
    [
        Story(),
        Story().attempt(1),
        Story().attempt(1).end(1, "crashed"),
        after_crashes(Story()),
        Story().move("interrupted"),
        Story().move("killed"),
    ],
    ids=["starting", "running", "ended attempt", "crash loop", "interrupted", "ended"],
)
def test_a_request_comes_before_everything_else(story: Story) -> None:
    remembered = memory(interrupting=SAVED)
    observed = {"executions": {1: alive(signal_in_s=0.0)}, "interrupt_file": "q"}
    step = next_step(story, remembered, request=request("no such verb"), **observed)
    assert isinstance(step, AnswerRequest)


@pytest.mark.parametrize(
    "story",
    [Story(), Story().attempt(1), Story().attempt(1).end(1, "crashed"), after_crashes(Story())],
    ids=["starting", "running", "ended attempt", "crash loop"],
)
def test_an_interrupt_that_was_begun_is_completed_first(story: Story) -> None:
    step = next_step(story, memory(interrupting=SAVED), executions={1: alive(signal_in_s=0.0)})
    assert step == WriteInterruptFile(question="q")


def test_an_open_chore_comes_before_the_attempts_that_it_judges() -> None:
    story = Story(pipeline=PIPELINE).attempt(1).end(1, "success").move("completing")
    story.open(2, kind="gate", agent="command", session_id=None).start(2)
    assert next_step(story, executions={2: alive()}) == Heartbeat()


def test_an_open_attempt_comes_before_the_ended_one_beside_it() -> None:
    story = Story(("one", "two"), pipeline=PIPELINE).open(1, stage="one").open(2, stage="two")
    story.start(1).start(2).move("running").end(1, "crashed")
    assert next_step(story, executions={2: alive()}, heartbeat_in_s=4.0) == Watch(wait_s=4.0)


# ── states in which nothing runs ──


@pytest.mark.parametrize(
    ("story", "remembered", "is_closed", "step"),
    [
        (Story(status="queued"), {}, False, Leave(reason="queued")),
        (Story().move("interrupted"), {}, False, Report()),
        (Story().move("interrupted"), {"is_reported": True}, False, Leave(reason="interrupted")),
        *((Story().move(end), {}, False, EndTask()) for end in ("failed", "abandoned", "killed")),
        *((Story().move(end), {}, True, Leave(reason=end)) for end in ("failed", "abandoned", "killed")),
        (Story(status="queued").move("completed"), {}, False, EndTask()),
        (Story(status="queued").move("completed"), {}, True, Leave(reason="completed")),
    ],
)
def test_a_task_at_rest(story: Story, remembered: dict[str, Any], is_closed: bool, step: Step) -> None:
    assert next_step(story, memory(**remembered), is_closed=is_closed) == step
    # An interrupt file changes nothing: its question was asked, or needs no answer.
    assert next_step(story, memory(**remembered), is_closed=is_closed, interrupt_file="q") == step


# ── waiting ──


def waiting(**more: Any) -> Story:
    story = Story(limits=Limits(base_interval_s=30.0), **more)
    return story.attempt(1).end(1, "rate_limit").move("waiting", wake_at="2027-01-15T09:00:00.000Z")


@pytest.mark.parametrize(
    ("queue", "left_s", "wait_s", "interrupt_file", "step"),
    [
        (None, 500.0, 500.0, None, Watch(wait_s=30.0)),
        (None, 12.5, 500.0, None, Watch(wait_s=12.5)),
        (None, 12.5, 500.0, "which one?", asking("which one?")),
        (None, 0.0, 500.0, None, moving("waiting", "spawning", "the wait is over")),
        (None, -3.0, 500.0, None, moving("waiting", "spawning", "the wait is over")),
        # The interrupt file is found again before the next attempt starts.
        (None, 0.0, 500.0, "which one?", moving("waiting", "spawning", "the wait is over")),
        # A long wait gave the slot away.
        (QueueSpec(), 0.0, 60.0, None, moving("waiting", "queued", "the wait is over")),
        (QueueSpec(), 0.0, 59.9, None, moving("waiting", "spawning", "the wait is over")),
        (QueueSpec(), 1.0, 500.0, None, Watch(wait_s=1.0)),
    ],
)
def test_a_wait(
    queue: QueueSpec | None, left_s: float, wait_s: float, interrupt_file: str | None, step: Step
) -> None:
    observed = {"wait_left_s": left_s, "wait_s": wait_s, "interrupt_file": interrupt_file}
    assert next_step(waiting(queue=queue), **observed) == step


def test_a_wait_is_looked_at_every_minute_because_the_clock_can_be_set() -> None:
    story = Story(limits=Limits(base_interval_s=600.0)).attempt(1).end(1, "quota").move("waiting")
    assert next_step(story, wait_left_s=500.0) == Watch(wait_s=60.0)


# ── output that cannot be redacted ──


def test_a_task_whose_output_cannot_be_redacted_is_stopped_and_left_to_a_person() -> None:
    problem = "the pattern '(?<=x)y' cannot be applied"
    assert next_step(Story(), problem=problem, **READY) == asking(problem)
    running = {"executions": {1: alive()}, "heartbeat_in_s": 4.0}
    stop = IntendStop(numbers=(1,), intent="interrupt", reason=problem)
    assert next_step(Story().attempt(1), problem=problem, **running) == stop
    assert next_step(Story().move("interrupted"), problem=problem) == Report()


# ── runners that die ──


def test_a_task_on_which_runners_die_is_left_to_a_person() -> None:
    assert next_step(after_crashes(Story(), CRASH_LIMIT - 1), **READY) == OpenAttempts(stages=("a_run",))
    assert next_step(after_crashes(Story()), **READY) == asking(LOOP)


@pytest.mark.parametrize("state", ["crashed", "hung", "waiting", "completing"])
def test_a_person_is_asked_in_any_state_in_which_nothing_is_left_to_stop(state: str) -> None:
    story = Story(pipeline=PIPELINE).attempt(1).end(1, "crashed").move(state)
    assert next_step(after_crashes(story)) == asking(LOOP)


def with_intent(story: Story, number: int, intent: str) -> Story:
    return story.tell(ev.StopIntended(attempt=number, intent=intent, reason="r"))


@pytest.mark.parametrize(
    "story",
    [
        Story().attempt(1),
        Story().open(1),
        Story().attempt(1).end(1, "crashed"),
        Story(pipeline=PIPELINE).open(1, kind="prepare", agent="command", session_id=None),
        Story(pipeline=PIPELINE).open(1, kind="prepare", agent="command", session_id=None).end(1, "success"),
        with_intent(Story().attempt(1), 1, "hang"),
    ],
    ids=["running", "opened", "ended", "open chore", "ended chore", "stopped for a hang"],
)
def test_in_a_crash_loop_everything_is_stopped_before_a_person_is_asked(story: Story) -> None:
    observed = {"executions": {1: alive()}, "heartbeat_in_s": 4.0}
    stop = IntendStop(numbers=(1,), intent="interrupt", reason=LOOP)
    assert next_step(after_crashes(story), cleaned(1), **observed) == stop


@pytest.mark.parametrize("intent", ["stop", "interrupt"])
def test_in_a_crash_loop_a_stop_that_is_intended_goes_on(intent: str) -> None:
    story = after_crashes(with_intent(Story().attempt(1), 1, intent))
    assert next_step(story, executions={1: alive(signal_in_s=7.0)}, heartbeat_in_s=4.0) == Watch(wait_s=4.0)


def test_in_a_crash_loop_only_the_execution_without_an_intent_is_stopped() -> None:
    story = Story(("one", "two"), pipeline=PIPELINE).open(1, stage="one").open(2, stage="two")
    story = after_crashes(with_intent(story.start(1).start(2).move("running"), 1, "stop"))
    step = next_step(story, executions={1: alive(), 2: alive()})
    assert step == IntendStop(numbers=(2,), intent="interrupt", reason=LOOP)


@pytest.mark.parametrize(
    ("story", "step"),
    [
        (Story(status="queued"), Leave(reason="queued")),
        (Story().move("interrupted"), Report()),
        (Story().move("killed"), EndTask()),
        # Only its last files are left to write.
        (
            Story().attempt(1).end(1, "success").move("completing", reason="success"),
            moving("completing", "completed", "success"),
        ),
    ],
    ids=["queued", "interrupted", "ended", "completing"],
)
def test_a_crash_loop_asks_no_person_if_nothing_can_be_done(story: Story, step: Step) -> None:
    if story.task.status == "completing":
        story.tell(ev.StageDone(stage="a_run", attempt=1))
    assert next_step(after_crashes(story), cleaned(1)) == step
