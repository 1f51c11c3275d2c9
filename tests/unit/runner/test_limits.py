"""Which limit an attempt has reached."""

from __future__ import annotations

import pytest

from holdfast.model import events as ev
from holdfast.model.spec import Limits, PipelineSpec, StageSpec
from holdfast.runner.plan import limits
from tests.support.story import Story

PIPELINE = PipelineSpec(
    intent="feature", group="impl", profile="standard", max_wallclock_s=900.0, acceptance_timeout_s=60.0
)
NO_LIMITS = Limits(deadline_s=None)


def reached(
    story: Story, *, lived_s: float = 0.0, output_bytes: int = 0, number: int = 1
) -> limits.Reached | None:
    attempt = story.task.find(number)
    assert attempt is not None
    return limits.reached(story.task, attempt, lived_s=lived_s, output_bytes=output_bytes)


def left_s(story: Story, lived_s: float, number: int = 1) -> float:
    attempt = story.task.find(number)
    assert attempt is not None
    return limits.left_s(story.task, attempt, lived_s)


def test_without_limits_none_is_reached() -> None:
    story = Story(limits=NO_LIMITS).attempt(1)
    assert reached(story, lived_s=1e9, output_bytes=10**9) is None
    assert left_s(story, 1e9) == 3600.0


@pytest.mark.req("BUD-1")
def test_the_deadline_counts_all_attempts() -> None:
    story = Story(limits=Limits(deadline_s=100.0)).attempt(1).end(1, "crashed", lived_s=60.0)
    story.move("crashed").move("spawning").attempt(2)
    assert reached(story, lived_s=39.9, number=2) is None
    found = reached(story, lived_s=40.0, number=2)
    assert found is not None
    assert (found.intent, found.reason) == ("deadline", "its deadline of 1m40s is over")
    assert left_s(story, 30.0, number=2) == 10.0


@pytest.mark.req("BUD-2")
@pytest.mark.parametrize(
    ("timeout_s", "pipeline", "stage_s", "over_s", "reason"),
    [
        (600.0, None, None, 600.0, "the attempt exceeded its 10m00s limit"),
        (None, PIPELINE, None, 900.0, "the call exceeded its 15m00s limit (budgets.max_wallclock_sec)"),
        (600.0, PIPELINE, 700.0, 600.0, "the attempt exceeded its 10m00s limit"),
        (None, PIPELINE, 300.0, 300.0, "the call of a exceeded its 5m00s limit"),
        (1200.0, PIPELINE, 1000.0, 900.0, "the call exceeded its 15m00s limit (budgets.max_wallclock_sec)"),
    ],
)
def test_the_tightest_limit_on_a_call_is_named(
    timeout_s: float | None, pipeline: PipelineSpec | None, stage_s: float | None, over_s: float, reason: str
) -> None:
    stage = StageSpec(name="a_run", agent="a", timeout_s=stage_s)
    story = Story((stage,), limits=NO_LIMITS.evolve(timeout_s=timeout_s), pipeline=pipeline).attempt(1)
    assert reached(story, lived_s=over_s - 0.1) is None
    assert left_s(story, over_s - 0.5) == pytest.approx(0.5)
    assert reached(story, lived_s=over_s) == limits.Reached(intent="timeout", reason=reason)


@pytest.mark.req("SUP-17")
def test_parallel_stages_have_a_limit_together_and_one_alone_has_none() -> None:
    pipeline = PIPELINE.evolve(join_timeout_s=100.0)
    stages = tuple(StageSpec(name=name, agent="a", group="g") for name in ("one", "two"))
    story = Story(stages, limits=NO_LIMITS, pipeline=pipeline).open(1, stage="one").start(1)
    assert reached(story, lived_s=100.0) is None
    story.open(2, stage="two").start(2)
    reason = "a parallel stage exceeded its 1m40s limit"
    assert reached(story, lived_s=100.0) == limits.Reached(intent="timeout", reason=reason)


@pytest.mark.parametrize(("commands", "over_s"), [(1, 20 * 60.0 + 300.0), (40, 2 * 40 * 60.0 + 300.0)])
def test_a_chore_has_time_for_its_commands(commands: int, over_s: float) -> None:
    """Each of them also runs on the tree of the task's start."""
    pipeline = PIPELINE.evolve(acceptance_commands=("true",) * commands)
    story = Story(limits=NO_LIMITS, pipeline=pipeline)
    story.open(1, agent="command", kind="gate", session_id=None).start(1)
    assert reached(story, lived_s=over_s - 1) is None
    found = reached(story, lived_s=over_s)
    assert found is not None
    assert (found.intent, "gate of a_run" in found.reason) == ("timeout", True)


def test_output_has_a_limit_and_zero_means_no_limit() -> None:
    story = Story(limits=NO_LIMITS.evolve(output_bytes=100)).attempt(1)
    assert reached(story, output_bytes=100) is None
    found = reached(story, output_bytes=101)
    assert found is not None
    assert found.intent == "output"
    assert reached(Story(limits=NO_LIMITS.evolve(output_bytes=0)).attempt(1), output_bytes=10**15) is None


def test_a_budget_is_reached_by_the_whole_task_and_not_by_one_that_is_finished() -> None:
    story = Story(limits=NO_LIMITS.evolve(budget_tokens=100)).attempt(1)
    story.tell(ev.AgentUsage(attempt=1, offset=1, input_tokens=60, output_tokens=39, cumulative=True))
    assert reached(story) is None
    story.tell(ev.AgentUsage(attempt=1, offset=2, input_tokens=60, output_tokens=40, cumulative=True))
    found = reached(story)
    assert found is not None
    assert (found.intent, "100 of 100 tokens" in found.reason) == ("budget", True)
    # Its result is there: stopping it now would save nothing.
    story.tell(ev.AgentResult(attempt=1, offset=3, is_error=False))
    assert reached(story) is None


def test_what_a_person_granted_counts() -> None:
    story = Story(limits=NO_LIMITS.evolve(budget_tokens=100)).attempt(1)
    story.tell(
        ev.AgentUsage(attempt=1, offset=1, input_tokens=100, cumulative=True),
        ev.StopIntended(attempt=1, intent="budget", reason="r"),
    )
    story.end(1, "stopped").move("interrupted").move("spawning").attempt(2)
    assert reached(story, number=2) is None
    story.tell(ev.AgentUsage(attempt=2, offset=1, input_tokens=100, cumulative=True))
    found = reached(story, number=2)
    assert found is not None
    assert "100 of 100" in found.reason


def test_a_retry_has_the_whole_budget_before_it() -> None:
    story = Story(limits=NO_LIMITS.evolve(budget_tokens=100, max_turns=1)).attempt(1)
    story.tell(ev.AgentUsage(attempt=1, offset=1, input_tokens=100, cumulative=True))
    story.tell(*(ev.AgentText(attempt=1, offset=n, text="a turn") for n in (2, 3)))
    story.tell(ev.StopIntended(attempt=1, intent="budget", reason="r")).end(1, "stopped").move("abandoned")
    story.tell(ev.RunOpened(run=2, request="r")).open(2, session_id="T").start(2).move("running")
    assert reached(story, number=2) is None
    story.tell(ev.AgentUsage(attempt=2, offset=1, input_tokens=100, cumulative=True))
    found = reached(story, number=2)
    assert found is not None
    assert "100 of 100" in found.reason


@pytest.mark.req("BUD-1")
def test_the_deadline_is_about_time_that_passed_not_about_how_many_worked_in_it() -> None:
    stages = tuple(StageSpec(name=name, agent="a", group="g") for name in ("one", "two"))
    story = Story(stages, limits=Limits(deadline_s=100.0)).open(1, stage="one").open(2, stage="two")
    story.start(1).start(2).move("running").end(1, "success", lived_s=60.0)
    assert reached(story, lived_s=60.0, number=2) is None
    assert left_s(story, 60.0, number=2) == pytest.approx(39.0)
    found = reached(story, lived_s=99.0, number=2)
    assert found is not None
    assert found.intent == "deadline"
