"""The fold: from the events of a journal to a task."""

from __future__ import annotations

import pytest

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model import manifest
from holdfast.model.fold import CRASH_LIMIT, QUICK_DEATH_S
from holdfast.model.state import Interrupted, Waiting
from holdfast.model.status import Status
from holdfast.model.usage import Usage
from tests.support.story import BEGIN, BOOT, Story


def test_a_new_task_has_its_spec_and_state() -> None:
    task = Story(status="queued").task
    assert task.status is Status.QUEUED
    assert task.stage == "a_run"
    assert task.deadline_s == 100.0
    assert task.created_at == clock.iso(BEGIN + 1)
    assert not task.has_ended


def test_a_success_is_decided_marked_and_then_the_end() -> None:
    story = Story().attempt(1).end(1, "success")
    assert story.task.has_undecided
    story.move("completing", reason="success")
    assert not story.task.has_undecided
    story.tell(ev.StageDone(stage="a_run", attempt=1))
    assert story.task.stage is None
    story.move("completed", reason="success")
    assert story.task.has_ended
    assert story.task.finished_at == clock.iso(story.now)
    assert story.task.active_s == 10.0


@pytest.mark.parametrize(("lived_s", "is_past"), [(99.0, False), (100.0, True)])
def test_a_deadline_is_over_when_its_active_time_is_used_up(lived_s: float, is_past: bool) -> None:
    story = Story().attempt(1).end(1, "crashed", lived_s=lived_s).move("crashed")
    story.move("abandoned", reason="the last failure: context deadline exceeded")
    assert story.task.is_past_deadline == is_past
    shown = manifest.render(story.task, "", manifest.Observed())
    assert shown["is_past_deadline"] == is_past


def test_a_crash_and_its_resume() -> None:
    story = Story().attempt(1).end(1, "crashed").move("crashed")
    story.tell(ev.RetryPlanned(stage="a_run", consecutive=1, total=1, delay_s=0.0)).move("spawning")
    story.attempt(2, mode="resume")
    task = story.task
    assert (task.failures_in_a_row, task.total_retries, task.last_number) == (1, 1, 2)
    assert task.attempt is not None
    assert task.attempt.number == 2
    assert task.attempt.is_open
    story.end(2, "success", was_healthy=True)
    assert (task.failures_in_a_row, task.total_retries, task.active_s) == (0, 1, 20.0)


def test_an_end_of_another_attempt_changes_nothing() -> None:
    story = Story().attempt(1).end(9, "crashed")
    assert story.task.attempt is not None
    assert story.task.attempt.is_open
    assert story.task.active_s == 0.0


def test_voids_are_counted_in_a_row_and_keep_their_number() -> None:
    story = Story()
    for number in (1, 2):
        story.tell(
            ev.AttemptOpened(attempt=number, attempt_id="ses_0", stage="a_run", agent="a", mode="fresh"),
            ev.AttemptVoid(attempt=number, reason="r"),
        )
    assert (story.task.voids_in_a_row, story.task.last_number) == (2, 2)
    assert story.task.total_retries == 0
    story.attempt(3)
    assert story.task.voids_in_a_row == 0


def test_lost_ends_are_counted_in_a_row_until_one_is_seen_or_was_healthy() -> None:
    story, counts = Story(), list[int]()
    ends = [("lost", False), ("lost", False), ("lost", True), ("lost", False), ("crashed", False)]
    for number, (outcome, was_healthy) in enumerate(ends, start=1):
        story.attempt(number).end(number, outcome, was_healthy=was_healthy).move("crashed").move("spawning")
        counts.append(story.task.stage_state("a_run").lost_in_a_row)
    assert counts == [1, 2, 0, 1, 0]


def test_attempts_that_ran_are_distinguished_from_those_that_never_did() -> None:
    story = Story().attempt(1).end(1, "crashed").move("crashed").move("spawning")
    story.tell(
        ev.AttemptOpened(
            attempt=2, attempt_id="ses_2", stage="a_run", agent="a", mode="resume", session_id="S"
        ),
        ev.AttemptVoid(attempt=2, reason="r"),
    )
    story.attempt(3).end(3, "spawn_failed", exec_errno=2)
    assert story.task.stage_states["a_run"].times_ran == 1
    assert story.task.stage_states["a_run"].ran is not None
    assert story.task.stage_states["a_run"].ran.number == 1


def test_a_wait_has_a_time_and_the_next_move_forgets_it() -> None:
    story = (
        Story()
        .attempt(1)
        .end(1, "crashed")
        .move("crashed")
        .move("waiting", wake_at="2027-01-01T00:00:00.000Z")
    )
    assert story.task.state == Waiting(wake_at="2027-01-01T00:00:00.000Z")
    story.move("spawning")
    assert story.task.waiting is None


def test_an_interrupt_asks_and_its_answer_goes_to_the_next_agent_that_runs() -> None:
    story = Story().attempt(1).end(1, "stopped").move("interrupted", interrupt="which one?")
    assert story.task.state == Interrupted(question="which one?", since=clock.iso(story.now))
    story.move("spawning", answer="the blue one", request="R")
    assert story.task.interrupted is None
    assert story.task.answer == "the blue one"
    assert story.task.requests == {"R": None}
    story.attempt(2).end(2, "spawn_failed", exec_errno=2)
    assert story.task.answer == "the blue one"
    story.move("crashed").move("spawning").attempt(3).end(3, "crashed")
    assert story.task.answer is None


def test_a_request_is_known_by_its_effect_and_then_by_its_answer() -> None:
    story = Story().attempt(1).tell(ev.StopIntended(attempt=1, intent="stop", reason="r", request="R"))
    assert story.task.requests == {"R": None}
    answer = ev.RequestApplied(request="R", verb="stop", by="me")
    story.tell(answer)
    assert story.task.requests == {"R": answer}


def test_the_intent_belongs_to_its_attempt() -> None:
    story = Story().attempt(1).tell(ev.StopIntended(attempt=7, intent="stop", reason="r"))
    assert story.task.attempt is not None
    assert story.task.attempt.intent is None
    story.tell(ev.StopIntended(attempt=1, intent="stop", reason="r"))
    assert story.task.attempt.intent is not None


def test_a_retry_opens_a_run_with_counters_and_active_time_at_zero() -> None:
    story = Story().attempt(1).end(1, "crashed").move("crashed")
    story.tell(ev.RetryPlanned(stage="a_run", consecutive=3, total=3, delay_s=0.0)).move("abandoned")
    story.tell(ev.RunOpened(run=2, request="R"))
    task = story.task
    assert (task.status, task.run, task.finished_at) == (Status.SPAWNING, 2, None)
    assert (task.failures_in_a_row, task.total_retries, task.active_s) == (0, 0, 0.0)
    assert task.deadline_s == 100.0
    assert task.last_number == 1


@pytest.mark.parametrize("deadline_s", [5.0, None])
def test_a_retry_may_bring_another_deadline(deadline_s: float | None) -> None:
    story = (
        Story()
        .move("killed")
        .tell(ev.RunOpened(run=2, request="R", deadline_s=deadline_s, sets_deadline=True))
    )
    assert story.task.deadline_s == deadline_s


@pytest.mark.parametrize(
    ("from_stage", "left"),
    [(None, None), ("b_run", "b_run"), ("a_run", "a_run"), ("c_run", "c_run"), ("x", None)],
)
def test_a_retry_drops_the_markers_from_its_stage_on(from_stage: str | None, left: str | None) -> None:
    story = Story(stages=("a_run", "b_run", "c_run"))
    for number, stage in enumerate(("a_run", "b_run", "c_run"), 1):
        story.tell(ev.StageDone(stage=stage, attempt=number))
    assert story.task.stage is None
    story.tell(ev.RunOpened(run=2, request="R", from_stage=from_stage))
    assert story.task.stage == left


def _hello(pid: int) -> ev.RunnerStarted:
    return ev.RunnerStarted(pid=pid, version="0", **BOOT)


def test_quick_deaths_of_runners_are_counted() -> None:
    story = Story()
    for pid in range(CRASH_LIMIT + 1):
        story.tell(_hello(pid))
    assert story.task.runner_crashes == CRASH_LIMIT


def test_a_slow_death_begins_a_new_count() -> None:
    story = Story().tell(_hello(1), _hello(2), _hello(3))
    assert story.task.runner_crashes == 2
    story.tell(_hello(4), after_s=QUICK_DEATH_S + 1)
    assert story.task.runner_crashes == 0


def test_a_runner_that_left_did_not_die() -> None:
    story = Story().tell(_hello(1), ev.RunnerLeft(pid=1, reason="interrupted"), _hello(2))
    assert story.task.runner_crashes == 0


def test_progress_of_the_task_forgives_the_runners() -> None:
    story = Story().tell(_hello(1), _hello(2)).attempt(1)
    assert story.task.runner_crashes == 0


def test_what_the_agent_said() -> None:
    where: dict[str, int] = {"attempt": 1, "offset": 10}
    story = Story().attempt(1, session=None)
    story.tell(
        ev.AgentSession(session_id="N", **where),
        ev.AgentText(text="first", **where),
        ev.AgentText(text="last", **where),
        ev.AgentToolStarted(tool_id="1", name="Bash", **where),
        ev.AgentToolStarted(tool_id="2", name="Edit", **where),
        ev.AgentToolFinished(attempt=1, offset=90, tool_id="1", is_error=True),
    )
    task, attempt = story.task, story.task.attempt
    assert attempt is not None
    assert task.session_id == attempt.session_id == "N"
    assert (task.messages, task.tool_calls, attempt.last_text) == (2, 2, "last")
    assert list(attempt.open_tools) == ["2"]
    assert attempt.tool_failed
    assert not attempt.denied_tools
    assert attempt.reached["stdout"][0] == 90


def test_an_announced_wait_ends_with_the_next_word() -> None:
    story = Story().attempt(1).tell(ev.AgentRetry(attempt=1, offset=1, delay_s=30.0))
    assert story.task.attempt is not None
    assert story.task.attempt.retry_at == clock.iso(story.now + 30)
    story.tell(ev.AgentText(attempt=1, offset=2, text="back"))
    assert story.task.attempt.retry_at is None


def test_a_retry_is_a_limit_by_its_field_and_not_by_its_text() -> None:
    for is_limited, reason in ((True, "the service refused"), (False, "line 429")):
        event = ev.AgentRetry(attempt=1, offset=1, reason=reason, is_limited=is_limited)
        story = Story().attempt(1).tell(event)
        assert story.task.attempt is not None
        assert story.task.attempt.is_limited is is_limited


def test_an_agent_event_of_another_attempt_changes_nothing() -> None:
    story = Story().attempt(2).tell(ev.AgentText(attempt=1, offset=5, text="late"))
    assert story.task.messages == 0


def test_events_that_mean_nothing_here_change_nothing() -> None:
    story = Story().attempt(1)
    before = dict(vars(story.task))
    story.tell(ev.Unknown(data={"type": "task.painted"}), ev.JournalRepaired(dropped_bytes=1, fragment="{"))
    assert vars(story.task) == before


# ── usage ──

UNKNOWN = Usage()
SOME = Usage(input_tokens=10, output_tokens=5, cost_usd=0.5)


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        (UNKNOWN, UNKNOWN, UNKNOWN),
        (UNKNOWN, SOME, SOME),
        (SOME, UNKNOWN, SOME),
        (SOME, SOME, Usage(input_tokens=20, output_tokens=10, cost_usd=1.0)),
        (Usage(cost_usd=0.0), UNKNOWN, Usage(cost_usd=0.0)),
        (Usage(input_tokens=1), Usage(cost_usd=2.0), Usage(input_tokens=1, cost_usd=2.0)),
    ],
)
def test_unknown_and_unknown_stays_unknown(left: Usage, right: Usage, total: Usage) -> None:
    assert left.plus(right) == total


def test_usage_of_attempts_is_added_and_a_cumulative_report_replaces() -> None:
    def usage(attempt: int, tokens: int, *, cumulative: bool) -> ev.AgentUsage:
        return ev.AgentUsage(attempt=attempt, offset=1, input_tokens=tokens, cumulative=cumulative)

    story = Story().attempt(1)
    story.tell(usage(1, 10, cumulative=True), usage(1, 25, cumulative=True)).end(1, "crashed")
    assert story.task.spending.usage == Usage(input_tokens=25)
    story.move("crashed").move("spawning").attempt(2)
    story.tell(usage(2, 5, cumulative=False), usage(2, 5, cumulative=False)).end(2, "success")
    assert story.task.spending.usage == Usage(input_tokens=35)
    assert story.task.spending.usage.cost_usd is None


def test_what_a_takeover_used_is_unknown_until_its_session_is_reported() -> None:
    def takeover(number: int) -> tuple[ev.Event, ev.Event]:
        began = ev.TakeoverStarted(
            attempt=number, attempt_id=f"t{number}", stage="a_run", agent="a", session_id="s"
        )
        return began, ev.TakeoverEnded(attempt=number, how="handed_back")

    def of_session(attempt: int, tokens: int, cost_usd: float | None = None) -> ev.AgentUsage:
        return ev.AgentUsage(
            attempt=attempt,
            offset=1,
            input_tokens=tokens,
            cost_usd=cost_usd,
            cumulative=True,
            of_session=True,
        )

    story = Story().attempt(1, session="s")
    story.tell(of_session(1, 10, 0.1)).end(1, "stopped")
    assert (story.task.spending.unpriced, story.task.spending.uncounted) == ({}, {})
    story.move("interrupted").tell(*takeover(2)).move("spawning")
    assert (story.task.spending.unpriced, story.task.spending.uncounted) == ({2: "s"}, {2: "s"})
    assert manifest.render(story.task, "", manifest.Observed())["usage"]["uncounted_takeovers"] == 1
    # Tokens of the whole session include those of the person; its cost is still unknown.
    story.attempt(3, mode="resume", session="s").tell(of_session(3, 50)).end(3, "stopped")
    assert (list(story.task.spending.unpriced), story.task.spending.uncounted) == ([2, 3], {})
    assert story.task.spending.usage.input_tokens == 50
    assert "uncounted_takeovers" not in manifest.render(story.task, "", manifest.Observed())["usage"]
    assert story.task.attempt_count == 2
    story.move("spawning").attempt(4, mode="resume", session="s")
    story.tell(of_session(4, 60, 0.5)).end(4, "success")
    assert story.task.spending.unpriced == {}
