"""After a chore: clean up, then its result, a second try, or what its failure means."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model import events as ev
from holdfast.model.spec import PipelineSpec, QualitySpec, QueueSpec
from holdfast.runner.plan.facts import ChoreResult, WorkspaceFacts
from holdfast.runner.plan.step import (
    Journal,
    ReleaseWorkspace,
    SaveContext,
    Step,
    Sweep,
    TakeChoreResult,
    Watch,
    WriteFiles,
)
from tests.support.planning import FAILURE, NOW, asking, cleaned, memory, moving, next_step
from tests.support.story import Story

PIPELINE = PipelineSpec(intent="feature", group="impl", profile="standard")
GOOD, BAD, MUTE = (
    ChoreResult(is_usable=True),
    ChoreResult(is_usable=False, complaint="no room"),
    ChoreResult(is_usable=False),
)


def opened(kind: str, **more: Any) -> Story:
    """Chore 2 of a stage, after attempt 1 where it judges one."""
    story = Story(**{"pipeline": PIPELINE, **more})
    if kind == "gate":
        story.attempt(1).end(1, "success").move("completing")
    return story.open(2, kind=kind, agent="command", session_id=None).start(2)


def ended(kind: str, outcome: str = "success", *, end: dict[str, Any] | None = None, **more: Any) -> Story:
    """A chore that ended and left nothing running."""
    story = opened(kind, **more).end(2, outcome, **(end or {}))
    return story.tell(ev.AttemptSwept(attempt=2, killed=[], spared=[], proof="none left"))


def failed(kind: str, reason: str, *, counts: bool = True) -> ev.ChoreFailed:
    return ev.ChoreFailed(stage="a_run", attempt=2, kind=kind, reason=reason, counts=counts)


def killed(kind: str, times_before: int = 0) -> Story:
    """A chore that was killed, after others of its stage."""
    story = ended(kind, "crashed", end={"detail": "SIGKILL", "exit_signal": 9})
    story.task.stage_state("a_run").failed_chores_in_a_row = times_before
    return story


KINDS = ("prepare", "pre_work", "gate")


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_chore_its_processes_its_files_then_its_result(kind: str) -> None:
    story = opened(kind).end(2, "success")
    assert next_step(story) == Sweep(number=2)
    assert next_step(story, memory(sweep_due_mono={2: NOW.mono + 0.5})) == Watch(wait_s=0.5)
    story.tell(ev.AttemptSwept(attempt=2, killed=[], spared=[], proof="none left"))
    assert next_step(story, chore_result=GOOD) == WriteFiles(number=2)
    assert next_step(story, cleaned(2), chore_result=GOOD) == TakeChoreResult(number=2)


@pytest.mark.parametrize("outcome", ["crashed", "lost", "failed"])
def test_a_result_counts_however_its_process_ended(outcome: str) -> None:
    assert next_step(ended("gate", outcome), cleaned(2), chore_result=GOOD) == TakeChoreResult(number=2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["killed", "lost"])
def test_a_chore_that_died_is_tried_again_twice(kind: str, how: str) -> None:
    story = killed(kind) if how == "killed" else ended(kind, "lost", end={"detail": "SIGKILL"})
    reason = f"{'crashed' if how == 'killed' else 'lost'}: SIGKILL"
    again = Journal(events=(failed(kind, reason),))
    for times in (0, 1):
        story.task.stage_state("a_run").failed_chores_in_a_row = times
        assert next_step(story, cleaned(2), chore_result=MUTE) == again
    story.task.stage_state("a_run").failed_chores_in_a_row = 2
    assert next_step(story, cleaned(2), chore_result=MUTE) != again


def record(step: Step) -> tuple[ev.Event, ...]:
    return step.interrupt.before if isinstance(step, SaveContext) else getattr(step, "events", ())


@pytest.mark.parametrize(
    ("story", "result", "reason"),
    [
        (ended("prepare", "failed"), BAD, "no room"),
        (ended("prepare", "failed", end={"detail": "exit 1"}), MUTE, "failed: exit 1"),
        (killed("prepare", 2), MUTE, "its process died 3 times: crashed: SIGKILL"),
        (killed("prepare", 2), BAD, "its process died 3 times: no room"),
    ],
    ids=["complains", "says nothing", "died", "died and complains"],
)
def test_a_workspace_that_cannot_be_prepared_ends_the_task_before_a_call(
    story: Story, result: ChoreResult, reason: str
) -> None:
    step = next_step(story, cleaned(2), chore_result=result)
    first, second = record(step)[:2]
    own = reason.removeprefix("its process died 3 times: ")
    assert first == failed("prepare", own)
    assert isinstance(second, ev.FailureTriaged)
    assert (second.outcome, second.detail) == ("prepare_failed", reason)
    reason = f"a_run cannot start: {reason}"
    assert step == moving("spawning", "failed", reason, before=(first, second), **FAILURE)


def test_a_workspace_of_a_queued_task_that_cannot_be_prepared_is_left_to_a_person() -> None:
    step = next_step(ended("prepare", "failed", queue=QueueSpec()), cleaned(2), chore_result=BAD)
    question = "a_run cannot start: no room; fix it, then 'holdfast resume t'"
    assert step == asking(question, before=record(step), **FAILURE)
    assert record(step)[0] == failed("prepare", "no room")


@pytest.mark.req("GAT-11")
def test_checks_before_the_work_that_cannot_run_are_a_remark_for_the_agent() -> None:
    quality = QualitySpec(pre_work=("make lint",))
    step = next_step(ended("pre_work", "failed", quality=quality), cleaned(2), chore_result=BAD)
    checked = ev.PreWorkChecked(stage="a_run", passed=False, reasons=("no room",))
    assert step == Journal(events=(failed("pre_work", "no room"), checked))


def test_a_gate_that_cannot_run_does_not_pass() -> None:
    step = next_step(ended("gate", "failed"), cleaned(2), chore_result=BAD)
    judged = ev.GateJudged(stage="a_run", attempt=1, passed=False, failed="gate_broken", reasons=("no room",))
    assert step == Journal(events=(failed("gate", "no room"), judged))
    long = ChoreResult(is_usable=False, complaint="x" * 5000)
    step = next_step(ended("gate", "failed"), cleaned(2), chore_result=long)
    assert isinstance(step, Journal)
    assert [len(event.reasons[0]) for event in step.events if isinstance(event, ev.GateJudged)] == [1000]


# ── chores that were stopped ──


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intent", ["stop", "interrupt", "deadline", "output"])
def test_a_chore_that_was_stopped_with_the_task_is_dropped_and_does_not_count(kind: str, intent: str) -> None:
    story = opened(kind).tell(ev.StopIntended(attempt=2, intent=intent, reason="ours"))
    story.end(2, "crashed", exit_signal=15)
    story.tell(ev.AttemptSwept(attempt=2, killed=[], spared=[], proof="none left"))
    held = cleaned(2, workspace=WorkspaceFacts(is_held=True))
    # Even if it has a result: it runs again when the task continues.
    assert next_step(story, held, chore_result=GOOD) == ReleaseWorkspace()
    dropped = (failed(kind, "ours", counts=False),)
    old = "completing" if kind == "gate" else "spawning"
    steps = {
        "stop": moving(old, "killed", "ours", before=dropped),
        "deadline": moving(old, "abandoned", "ours", before=dropped),
    }
    step = next_step(story, cleaned(2), chore_result=GOOD)
    cause = "output" if intent == "output" else ""
    assert step == steps.get(intent, asking("ours", cause=cause, before=dropped))


@pytest.mark.parametrize(("result", "is_taken"), [(GOOD, True), (MUTE, False)])
def test_a_chore_that_exceeded_its_time_is_judged_by_what_it_left(
    result: ChoreResult, is_taken: bool
) -> None:
    story = opened("gate").tell(ev.StopIntended(attempt=2, intent="timeout", reason="too long"))
    story.end(2, "timeout", detail="too long")
    story.tell(ev.AttemptSwept(attempt=2, killed=[], spared=[], proof="none left"))
    step = next_step(story, cleaned(2), chore_result=result)
    if is_taken:
        assert step == TakeChoreResult(number=2)
    else:
        assert record(step)[0] == failed("gate", "timeout: too long")
