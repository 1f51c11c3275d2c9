"""Completing: the gates of successful attempts first, then what the others need, then what is next."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.spec import Limits, PipelineSpec, QualitySpec, StageSpec
from holdfast.pipeline.triage import Failure
from holdfast.runner.plan.facts import Remembered, StartFailure, WorkspaceFacts
from holdfast.runner.plan.step import (
    DismissRecorders,
    Journal,
    MarkStage,
    OpenChore,
    PassPlainGate,
    PostNotice,
    ReleaseWorkspace,
    SaveContext,
    Step,
    TakeWorkspace,
    TriageFailure,
    Watch,
)
from tests.support.planning import FAILURE, NOW, asking, cleaned, memory, moved, moving, next_step
from tests.support.story import Story

PIPELINE = PipelineSpec(intent="feature", group="impl", profile="standard", retry_budget=1)
IMPL = StageSpec(name="impl", agent="a", writes=True)
REVIEW = StageSpec(name="review", agent="a")
LENSES = tuple(StageSpec(name=name, agent="a", group="g") for name in ("one", "two"))
NO_DEADLINE = Limits(deadline_s=None)
HELD = WorkspaceFacts(is_held=True)


def completing(*stages: StageSpec, outcomes: tuple[str, ...] = ("success",), **more: Any) -> Story:
    """The attempts 1, 2, … of the first stages ended like this, and the successful ones go to their gates."""
    story = Story(stages, **{"limits": NO_DEADLINE, "pipeline": PIPELINE, **more})
    pairs = list(enumerate(zip(stages, outcomes, strict=False), 1))
    for number, (stage, _) in pairs:
        story.open(number, stage=stage.name, session_id=f"S{number}").start(number)
    story.move("running")
    for number, (_, outcome) in pairs:
        story.end(number, outcome)
    return story.move("completing", reason="success")


def judged(stage: str, number: int = 1, *, failed: str = "", reasons: tuple[str, ...] = ()) -> ev.GateJudged:
    return ev.GateJudged(stage=stage, attempt=number, passed=not failed, failed=failed, reasons=reasons)


def triaged(stage: str, number: int = 1, *, failure_class: str = "contract_violation") -> ev.FailureTriaged:
    return ev.FailureTriaged(
        stage=stage, attempt=number, outcome="success", failure_class=failure_class, signature=stage
    )


def held(*numbers: int, **known: Any) -> Remembered:
    return cleaned(*numbers, workspace=HELD, **known)


# ── the gate of a plain run ──


def test_the_gate_of_a_plain_run_is_its_own_success() -> None:
    story = completing(StageSpec(name="a_run", agent="a"), pipeline=None)
    assert next_step(story) == DismissRecorders(numbers=(1,))
    assert next_step(story, cleaned(1)) == PassPlainGate(number=1)
    story.tell(ev.StageDone(stage="a_run", attempt=1))
    assert next_step(story, cleaned(1)) == moving("completing", "completed", "success")


def test_checks_that_only_look_before_the_work_are_no_gate() -> None:
    quality = QualitySpec(pre_work=("make lint",))
    assert next_step(completing(REVIEW, pipeline=None, quality=quality), cleaned(1)) == PassPlainGate(
        number=1
    )


# ── the gate of a pipeline ──


@pytest.mark.req("GAT-1")
def test_a_stage_is_judged_marked_and_followed_by_the_next() -> None:
    story = completing(IMPL, REVIEW)
    assert next_step(story) == DismissRecorders(numbers=(1,))
    assert next_step(story, cleaned(1)) == TakeWorkspace()
    assert next_step(story, held(1)) == OpenChore(stage="impl", kind="gate", judged=1)
    story.tell(judged("impl"))
    assert next_step(story, held(1)) == MarkStage(number=1)
    story.tell(ev.StageDone(stage="impl", attempt=1))
    assert next_step(story, held(1)) == ReleaseWorkspace()
    assert next_step(story, cleaned(1)) == moving("completing", "spawning", "next is review")


def test_a_gate_waits_for_the_workspace_and_an_interrupt_file_ends_the_wait() -> None:
    taken = cleaned(1, workspace=WorkspaceFacts(writer="other", again_mono=NOW.mono + 0.5))
    waiting = Watch(wait_s=0.5, waiting_for="the workspace (other is writing)")
    assert next_step(completing(IMPL), taken) == waiting
    assert next_step(completing(IMPL), taken, interrupt_file="q") == asking("q")
    # A stage that only reads needs no lock.
    assert next_step(completing(REVIEW), taken) == OpenChore(stage="review", kind="gate", judged=1)


def test_an_interrupt_file_does_not_keep_a_gate_from_judging_but_the_next_stage_from_starting() -> None:
    story = completing(REVIEW, IMPL)
    gate = OpenChore(stage="review", kind="gate", judged=1)
    assert next_step(story, cleaned(1), interrupt_file="q") == gate
    story.tell(judged("review"), ev.StageDone(stage="review", attempt=1))
    assert next_step(story, cleaned(1), interrupt_file="q") == asking("q")
    story.tell(ev.StageDone(stage="impl", attempt=2))
    assert next_step(story, cleaned(1), interrupt_file="q") == moving("completing", "completed", "success")


def test_a_gate_whose_recorders_die_at_once_is_left_to_a_person() -> None:
    story = completing(REVIEW)
    for number in (2, 3, 4):
        story.open(number, stage="review", kind="gate", agent="command").tell(
            ev.AttemptVoid(attempt=number, reason="r")
        )
    question = "the gate of review cannot be started: its recorders die at once"
    assert next_step(story, cleaned(1)) == asking(question)


def test_a_gate_that_could_not_be_forked_is_tried_again_after_a_pause() -> None:
    failure = StartFailure(kind="process", stage="review", reason="why", again_mono=NOW.mono + 0.5)
    waiting = Watch(wait_s=0.5, waiting_for="room for another process")
    assert next_step(completing(REVIEW), cleaned(1, start_failure=failure)) == waiting
    due = failure.evolve(again_mono=NOW.mono)
    step = next_step(completing(REVIEW), cleaned(1, start_failure=due))
    assert step == OpenChore(stage="review", kind="gate", judged=1)


# ── a gate that did not pass ──

REASONS = ("no tests", "no docs", "no names", "no end")
REFUSED = "the gate of impl did not pass: no tests; no docs; no names"


def refused(failed: str = "headings") -> Story:
    return completing(IMPL).tell(judged("impl", failed=failed, reasons=REASONS))


@pytest.mark.req("GAT-5", "GAT-7", "GAT-9")
def test_a_refusal_is_announced_triaged_and_followed() -> None:
    story = refused()
    assert next_step(story, held(1)) == PostNotice(event="quality_gate", reason=REFUSED, attempt=1)
    failure = Failure(
        stage="impl",
        outcome="success",
        detail="no tests; no docs; no names",
        gate_failed="headings",
        gate_reasons=REASONS,
    )
    announced = held(1, refusals_announced={1})
    assert next_step(story, announced) == TriageFailure(number=1, failure=failure)
    story.tell(triaged("impl"))
    # The triage is recorded: a successor does not announce it again.
    assert next_step(story, held(1)) == ReleaseWorkspace()
    reason = f"{REFUSED} (contract_violation: no automatic retry)"
    assert next_step(story, cleaned(1)) == moving("completing", "failed", reason, **FAILURE)


def test_a_gate_that_could_not_run_is_a_failure_of_the_tools() -> None:
    step = next_step(refused("gate_broken"), held(1, refusals_announced={1}))
    assert isinstance(step, TriageFailure)
    assert (step.failure.outcome, step.failure.gate_failed) == ("gate_broken", "gate_broken")


def test_a_gate_that_does_not_say_which_check_failed_is_a_failure_of_the_gate() -> None:
    refusal = judged("impl", failed="headings").evolve(failed="")
    step = next_step(completing(IMPL).tell(refusal), held(1, refusals_announced={1}))
    assert isinstance(step, TriageFailure)
    assert step.failure.gate_failed == "gate"


def test_a_refusal_that_is_retried_goes_straight_to_the_next_attempt() -> None:
    story = refused().tell(triaged("impl", failure_class="unknown"))
    reason = f"{REFUSED} (unknown, retry 1 of 1 for this signature)"
    backoff = moved("completing", "waiting", f"backoff after {reason}", wake_at=clock.iso(NOW.wall + 5.0))
    planned = ev.RetryPlanned(stage="impl", consecutive=1, total=1, delay_s=5.0)
    assert next_step(story, cleaned(1)) == Journal(events=(planned, backoff))
    # Its record was torn: the failure is counted once.
    story.tell(planned)
    assert next_step(story, cleaned(1)) == Journal(events=(backoff,))


def test_without_a_retry_left_a_refusal_ends_the_task() -> None:
    story = completing(IMPL, limits=Limits(deadline_s=None, max_retries=0))
    story.tell(judged("impl", failed="headings", reasons=REASONS), triaged("impl", failure_class="unknown"))
    reason = f"no retries are allowed; the last failure: {REFUSED} (unknown, retry 1 of 1 for this signature)"
    assert next_step(story, cleaned(1)) == moving("completing", "abandoned", reason, **FAILURE)


# ── the repository's own checks ──


@pytest.mark.req("GAT-11", "INT-2")
@pytest.mark.parametrize(
    ("failed", "word"), [("post_work", "failed"), ("gate_broken", "could not run")], ids=["failed", "broken"]
)
def test_checks_of_the_repository_that_fail_are_announced_and_left_to_a_person(
    failed: str, word: str
) -> None:
    quality = QualitySpec(post_work=("make test",))
    story = completing(REVIEW, pipeline=None, quality=quality)
    assert next_step(story, cleaned(1)) == OpenChore(stage="review", kind="gate", judged=1)
    story.tell(judged("review", failed=failed, reasons=("make test: 1",)))
    reason = f"quality gate {word}: make test: 1"
    assert next_step(story, cleaned(1)) == PostNotice(event="quality_gate", reason=reason, attempt=1)
    assert next_step(story, cleaned(1, refusals_announced={1})) == asking(reason, cause="checks")
    story.task.spec = story.task.spec.evolve(interrupt_off=("quality",))
    reason += " (not asking: interrupt_off has quality)"
    moved = moving("completing", "failed", reason, cause="checks")
    assert next_step(story, cleaned(1, refusals_announced={1})) == moved


@pytest.mark.req("GAT-10")
@pytest.mark.parametrize("pipeline", [PIPELINE.evolve(repair_times=2), None], ids=["pipeline", "plain"])
def test_a_command_that_cannot_start_is_not_repaired_and_judged_again_when_a_person_resumes(
    pipeline: PipelineSpec | None,
) -> None:
    quality = None if pipeline is not None else QualitySpec(accept=("tool",), repair_times=2)
    story = completing(IMPL, pipeline=pipeline, quality=quality)
    refusal = judged("impl", failed="acceptance", reasons=("`tool`: 127",)).evolve(cannot_start=True)
    story.tell(refusal)
    known = cleaned(1, refusals_announced={1})
    if pipeline is not None:
        step = next_step(story, known)
        assert isinstance(step, TriageFailure)
        assert step.failure.outcome == "cannot_start"
        story.tell(triaged("impl", failure_class="tooling").evolve(outcome="cannot_start"))
    step = next_step(story, known)
    assert isinstance(step, SaveContext)
    assert step.interrupt.cause == "setup"
    assert step.interrupt.reason.startswith(("acceptance failed: `tool`: 127", "the gate of impl"))
    state = story.move("interrupted", interrupt=step.interrupt.question).task.stage_state("impl")
    assert not state.awaits_gate
    story.move("spawning")
    assert state.awaits_gate
    story.tell(refusal).move("running").move("completing").move("interrupted", interrupt="?")
    story.move("spawning", answer="do without it")
    assert not state.awaits_gate


# ── parallel stages ──


def gates_done(*outcomes: str, **more: Any) -> Story:
    """The first of two parallel stages passed its gate and is marked."""
    story = completing(*LENSES, outcomes=outcomes, **more)
    return story.tell(judged("one", 1), ev.StageDone(stage="one", attempt=1))


def test_the_gates_of_parallel_stages_run_one_after_the_other() -> None:
    story = completing(*LENSES, outcomes=("success", "success"))
    assert next_step(story) == DismissRecorders(numbers=(1, 2))
    assert next_step(story, cleaned(1, 2)) == OpenChore(stage="one", kind="gate", judged=1)
    story = gates_done("success", "success")
    assert next_step(story, cleaned(1, 2)) == OpenChore(stage="two", kind="gate", judged=2)
    story.tell(judged("two", 2), ev.StageDone(stage="two", attempt=2))
    assert next_step(story, cleaned(1, 2)) == moving("completing", "completed", "success")


def test_what_a_failed_parallel_stage_needs_comes_after_the_gates() -> None:
    story = completing(*LENSES, outcomes=("success", "crashed"))
    assert next_step(story, cleaned(1, 2)) == OpenChore(stage="one", kind="gate", judged=1)
    step = next_step(gates_done("success", "crashed"), cleaned(1, 2))
    assert step == TriageFailure(number=2, failure=Failure(stage="two", outcome="crashed", detail=""))


@pytest.mark.parametrize(
    ("outcome", "more", "step"),
    [
        ("quota", {}, moving("completing", "waiting", "quota", wake_at=clock.iso(NOW.wall + 60.0))),
        ("auth", {"pipeline": None}, asking("auth", **FAILURE)),
        ("failed", {"pipeline": None}, moving("completing", "failed", "failed", **FAILURE)),
    ],
)
def test_a_failed_parallel_stage_is_followed_from_completing(
    outcome: str, more: dict[str, Any], step: Step
) -> None:
    story = gates_done("success", outcome, **more)
    if story.task.spec.pipeline is not None:
        story.tell(triaged("two", 2, failure_class="transient").evolve(outcome=outcome))
    assert next_step(story, cleaned(1, 2)) == step


def test_another_agent_takes_over_a_failed_parallel_stage() -> None:
    story = gates_done("success", "auth", pipeline=None, failover=("b",))
    assert next_step(story, cleaned(1, 2)) == Journal(
        events=(
            ev.AgentSwitched(stage="two", old="a", new="b", reason="a: auth"),
            moved("completing", "waiting", "a: auth", wake_at=clock.iso(NOW.wall)),
            moved("waiting", "spawning", "b takes over"),
        )
    )


def test_a_stage_whose_gate_refused_and_one_that_failed_are_followed_together() -> None:
    story = completing(*LENSES, outcomes=("success", "auth"))
    story.tell(judged("one", 1, failed="headings"), triaged("one", 1, failure_class="unknown"))
    story.tell(triaged("two", 2, failure_class="auth").evolve(outcome="auth"))
    step = next_step(story, memory(recorders_dismissed={1, 2}))
    assert step == asking("auth (auth: no automatic retry)", **FAILURE)
