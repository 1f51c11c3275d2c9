"""The fold of a task that continues: new budgets, agents that are available again, limits that are over."""

from __future__ import annotations

import pytest

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.spec import PipelineSpec, StageSpec
from tests.support.story import Story

PIPELINE = PipelineSpec(intent="feature", group="impl", profile="standard", paid_call_budget=1)


def triaged(attempt: int, stage: str) -> ev.FailureTriaged:
    return ev.FailureTriaged(
        stage=stage, attempt=attempt, outcome="crashed", failure_class="unknown", signature="s"
    )


# ── budgets ──


@pytest.mark.req("INT-2")
@pytest.mark.parametrize("outcome", ["max_turns", "max_budget"])
def test_to_resume_a_task_whose_program_stopped_at_its_own_limit_grants_it_again(outcome: str) -> None:
    story = Story().attempt(1).tell(ev.AgentText(attempt=1, offset=1, text="a turn"))
    story.end(1, outcome).move("interrupted")
    assert (story.task.has_reached_any_budget, story.task.run_turns) == (True, 1)
    story.move("spawning")
    assert (story.task.grants, story.task.run_turns) == (0, 0)


def test_to_resume_a_task_for_another_reason_grants_nothing() -> None:
    story = Story().attempt(1).end(1, "auth").move("interrupted").move("spawning")
    assert story.task.grants == 0


def test_to_approve_a_stage_is_not_to_grant_a_budget() -> None:
    story = Story(pipeline=PIPELINE).attempt(1).end(1, "success").move("completing")
    assert story.task.has_reached_any_budget
    story.move("interrupted", approval="a_run").move("spawning")
    assert story.task.grants == 0


def test_a_retry_begins_with_what_was_used_so_far_put_aside() -> None:
    story = Story().attempt(1)
    story.tell(ev.AgentUsage(attempt=1, offset=1, input_tokens=60, output_tokens=40, cumulative=True))
    story.tell(ev.AgentText(attempt=1, offset=2, text="one turn"))
    story.end(1, "crashed").move("abandoned").tell(ev.RunOpened(run=2, request="r"))
    task = story.task
    assert (task.total_usage.input_tokens, task.run_usage.input_tokens or 0) == (60, 0)
    assert (task.turns, task.run_turns) == (1, 0)


# ── stages side by side ──


def test_time_that_several_worked_in_passes_once() -> None:
    stages = tuple(StageSpec(name=name, agent="a", group="g") for name in ("one", "two"))
    story = Story(stages).open(1, stage="one").open(2, stage="two").start(1).start(2).move("running")
    story.end(1, "success", lived_s=50.0).end(2, "success", lived_s=50.0)
    assert story.task.active_s == 51.0


def test_a_retry_judges_earlier_failures_again() -> None:
    """A triage of the last run says nothing about this one."""
    stages = tuple(StageSpec(name=name, agent="a", group="g") for name in ("one", "two"))
    story = Story(stages, pipeline=PIPELINE).open(1, stage="one").open(2, stage="two").start(1).start(2)
    story.move("running").end(1, "success").end(2, "crashed").tell(triaged(2, "two")).move("completing")
    failed = story.task.find(2)
    assert isinstance(failed, Attempt)
    assert failed.triage is not None
    story.move("killed").tell(ev.RunOpened(run=2, request="r"))
    assert [attempt.triage for attempt in story.task.current] == [None, None]


# ── agents that were out ──


@pytest.mark.parametrize("onward", ["resume", "retry"])
def test_an_agent_that_a_person_had_to_see_to_is_tried_again(onward: str) -> None:
    story = Story().attempt(1).end(1, "auth")
    stage_state = story.task.stage_states["a_run"]
    assert stage_state.unavailable == {"a": None}
    if onward == "resume":
        story.move("interrupted").move("spawning")
    else:
        story.move("failed").tell(ev.RunOpened(run=2, request="r"))
    assert stage_state.unavailable == {}


def test_an_agent_that_is_out_for_a_time_stays_out_when_a_person_lets_the_task_go_on() -> None:
    story = Story().attempt(1)
    until = clock.iso(story.now + 600)
    story.end(1, "rate_limit", noticed_at=clock.iso(story.now), resets_at=until)
    story.move("interrupted").move("spawning")
    assert story.task.stage_states["a_run"].unavailable == {"a": until}


def test_a_reset_that_has_passed_already_is_no_announcement() -> None:
    story = Story().attempt(1)
    noticed_at = clock.iso(story.now)
    story.end(1, "rate_limit", noticed_at=noticed_at, resets_at=clock.iso(story.now - 5))
    until = story.task.stage_states["a_run"].unavailable["a"]
    assert until is not None
    assert clock.parse_iso(until) - clock.parse_iso(noticed_at) >= 60
