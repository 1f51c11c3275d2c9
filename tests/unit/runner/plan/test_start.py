"""What must come before the agents of the due stages start: one check after the other."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.spec import Limits, PipelineSpec, QualitySpec, QueueSpec, StageSpec
from holdfast.runner.plan.facts import PreflightProblem, Remembered, StartFailure, WorkspaceFacts
from holdfast.runner.plan.step import (
    Journal,
    OpenAttempts,
    OpenChore,
    Preflight,
    SaveContext,
    Step,
    TakeWorkspace,
    Watch,
)
from tests.support.planning import FAILURE, NOW, asking, memory, moved, moving, next_step
from tests.support.story import Story

PIPELINE = PipelineSpec(intent="feature", group="impl", profile="standard", paid_call_budget=3)
IMPL = StageSpec(name="impl", agent="a", writes=True)
REVIEW = StageSpec(name="review", agent="a")
LENSES = tuple(StageSpec(name=name, agent="a", group="g") for name in ("one", "two"))
START = OpenAttempts(stages=("a_run",))


def ready(**known: Any) -> Remembered:
    """The preflight is done and the workspace is held."""
    return memory(**{"preflight_run": 1, "workspace": WorkspaceFacts(is_held=True), **known})


def workspace_of(stage: str) -> ev.WorkspacePrepared:
    return ev.WorkspacePrepared(stage=stage, path="/p", kind="in_place", tree="t", base_tree="t")


def pipeline(*stages: StageSpec, prepared: tuple[str, ...] = (), **more: Any) -> Story:
    """A task of these stages; the workspace of the `prepared` ones is recorded."""
    story = Story(stages, **{"pipeline": PIPELINE, **more})
    return story.tell(*(workspace_of(stage) for stage in prepared))


def voids(story: Story, times: int = 3, **more: Any) -> Story:
    """Recorders that died before their process existed."""
    for number in range(1, times + 1):
        story.open(number, **more).tell(ev.AttemptVoid(attempt=number, reason="r"))
    return story


def again(story: Story) -> Story:
    """An attempt was made and failed, and the next one is due."""
    return story.end(1, "crashed").move("crashed").move("spawning")


def triaged(step: Step) -> ev.FailureTriaged:
    """The triage in the record of a step."""
    events = step.interrupt.before if isinstance(step, SaveContext) else ()
    events = step.events if isinstance(step, Journal) else events
    return next(event for event in events if isinstance(event, ev.FailureTriaged))


# ── what starts ──


def test_a_task_that_has_what_it_needs_starts_its_agent() -> None:
    assert next_step(Story(), ready()) == START


@pytest.mark.req("PIP-10", "PIP-13")
def test_parallel_stages_start_together_without_those_that_are_done() -> None:
    story = pipeline(IMPL, *LENSES, prepared=("impl", "one"))
    assert next_step(story, ready()) == OpenAttempts(stages=("impl",))
    story.tell(ev.StageDone(stage="impl", attempt=1))
    assert next_step(story, ready()) == OpenAttempts(stages=("one", "two"))
    story.tell(ev.StageDone(stage="one", attempt=2))
    assert next_step(story, ready()) == OpenAttempts(stages=("two",))


def test_without_a_due_stage_a_person_names_one() -> None:
    story = Story().tell(ev.StageDone(stage="a_run", attempt=1))
    question = "no stage is due: name the one to run with 'holdfast retry --from'"
    assert next_step(story, ready()) == asking(question)


# ── recorders that die ──


def test_recorders_that_die_at_once_are_a_failure_to_start_after_the_third() -> None:
    assert next_step(voids(Story(), 2), ready()) == START
    reason = "spawn_failed: could not be started: 3 recorders died before the agent existed"
    backoff = moved("crashed", "waiting", f"backoff after {reason}", wake_at=clock.iso(NOW.wall + 30.0))
    planned = ev.RetryPlanned(stage="a_run", consecutive=1, total=1, delay_s=30.0)
    step = next_step(voids(Story(limits=Limits(deadline_s=None))), ready())
    assert step == Journal(events=(moved("spawning", "crashed", reason), planned, backoff))


def test_recorders_that_die_at_once_fail_the_task_once_no_retry_is_left() -> None:
    step = next_step(voids(Story(limits=Limits(max_retries=0))), ready())
    assert isinstance(step, Journal)
    assert [event.new for event in step.events if isinstance(event, ev.TaskMoved)] == ["crashed", "failed"]


# ── interrupt files ──


@pytest.mark.req("INT-1")
def test_an_interrupt_file_stops_the_start() -> None:
    assert next_step(Story(), ready(), interrupt_file="which one?") == asking("which one?")


def test_an_interrupt_file_that_asks_for_approval_leaves_the_approval_to_its_check() -> None:
    """A runner was killed after it left the file: the interrupt must still say which stage waits."""
    story = pipeline(IMPL.evolve(approval=True))
    question = "impl waits for approval: 'holdfast approve t'"
    left = {"interrupt_file": question, "file_asks_approval": "impl"}
    assert next_step(story, ready(), **left) == asking(question, approval="impl")
    # A file that no runner wrote, whatever it says, and one for a stage that is approved or not due.
    assert next_step(story, ready(), interrupt_file=question) == asking(question)
    assert next_step(story, ready(), **{**left, "file_asks_approval": "review"}) == asking(question)
    story.tell(ev.ApprovalGiven(stage="impl", by="me", request="R"))
    assert next_step(story, ready(), **left) == asking(question)


# ── back to the gate ──


def test_a_stage_that_was_interrupted_at_its_gate_goes_back_to_it_and_not_to_its_agent() -> None:
    story = pipeline(IMPL, prepared=("impl",)).attempt(1, stage="impl").end(1, "success").move("completing")
    story.move("interrupted").move("spawning")
    assert next_step(story, ready()) == moving("spawning", "running", "back to the gate")
    story.move("running")
    assert next_step(story, ready()) == moving("running", "completing", "back to the gate")


def test_a_stage_whose_gate_has_judged_starts_its_agent_again() -> None:
    story = pipeline(IMPL, prepared=("impl",)).attempt(1, stage="impl").end(1, "success").move("completing")
    story.tell(ev.GateJudged(stage="impl", attempt=1, passed=False, failed="acceptance"))
    assert next_step(story.move("interrupted").move("spawning"), ready()) == OpenAttempts(stages=("impl",))


# ── the preflight ──


def command(**more: Any) -> Story:
    story = Story(stages=(StageSpec(name="a_run", agent="command"),), **more)
    story.task.spec = story.task.spec.evolve(agent="command")
    return story


@pytest.mark.parametrize(
    ("story", "observed", "step"),
    [
        (Story(), {}, Preflight()),
        (command(), {}, START),
        (command(), {"has_project": False}, Preflight()),
        (command(bootstrap="default"), {}, Preflight()),
        (command(pipeline=PIPELINE), {}, Preflight()),
        # It was called before, so what it needs was there.
        (again(Story().attempt(1)), {}, START),
        (again(command().open(1, agent="command").start(1).move("running")), {"has_project": False}, START),
        # A void is no call.
        (voids(Story(), 1), {}, Preflight()),
    ],
    ids=["new", "command", "no project", "bootstrap", "pipeline", "called", "command called", "void"],
)
def test_before_the_first_call_everything_is_looked_for(
    story: Story, observed: dict[str, Any], step: Step
) -> None:
    assert next_step(story, **observed) == step


PROBLEMS = (PreflightProblem(text="no git"), PreflightProblem(text="no model"))


@pytest.mark.req("PKT-6")
@pytest.mark.parametrize(
    ("more", "is_asked"),
    [
        ({}, False),
        ({"queue": QueueSpec()}, True),
        ({"queue": QueueSpec(), "interrupt_off": ("error",)}, False),
    ],
    ids=["plain", "queued", "queued, asks nobody"],
)
def test_what_is_missing_ends_the_task_before_a_call_and_a_queued_task_asks(
    more: dict[str, Any], is_asked: bool
) -> None:
    step = next_step(Story(**more), ready(problems=PROBLEMS))
    failure = triaged(step)
    found = (failure.stage, failure.attempt, failure.outcome, failure.detail, failure.missing_program)
    assert found == ("a_run", 0, "preflight_failed", "no git; no model", "")
    reason = "a_run cannot start: no git; no model"
    if is_asked:
        assert step == asking(f"{reason}; fix it, then 'holdfast resume t'", before=(failure,), **FAILURE)
    else:
        assert step == moving("spawning", "failed", reason, before=(failure,), **FAILURE)


def test_a_missing_program_is_recorded_as_a_fact_and_not_only_in_the_text() -> None:
    missing = PreflightProblem(text="a is not there", missing_program="a")
    failure = triaged(next_step(Story(), ready(problems=(*PROBLEMS, missing))))
    assert (failure.missing_program, failure.detail) == ("a", "no git; no model; a is not there")


def test_every_run_has_its_preflight() -> None:
    story = Story().move("failed").tell(ev.RunOpened(run=2, request="R"))
    assert next_step(story, ready(problems=PROBLEMS)) == Preflight()


# ── budgets ──


def spent(*, on_limit: str = "ask", **more: Any) -> Story:
    """The budget of tokens was used up by the attempt before."""
    story = Story(limits=Limits(deadline_s=None, budget_tokens=10, on_limit=on_limit), **more)
    story.attempt(1).tell(ev.AgentUsage(attempt=1, offset=1, input_tokens=10, cumulative=True))
    return again(story)


@pytest.mark.req("BUD-9")
def test_a_budget_that_is_used_up_stops_the_next_call() -> None:
    story = spent()
    reason = story.task.budget_reached
    assert reason is not None
    assert "10 of 10 tokens" in reason
    assert next_step(story, ready()) == asking(reason, cause="budget")
    abandoned = moving("spawning", "abandoned", reason, cause="budget")
    assert next_step(spent(on_limit="end"), ready()) == abandoned
    not_asking = f"{reason} (not asking: interrupt_off has budget)"
    abandoned = moving("spawning", "abandoned", not_asking, cause="budget")
    assert next_step(spent(interrupt_off=("budget",)), ready()) == abandoned


@pytest.mark.req("BUD-4")
@pytest.mark.parametrize(
    ("calls", "stages", "more", "reason", "is_asked"),
    [
        (3, (REVIEW,), {}, "its 3 paid calls are used up (budgets.paid_call_budget)", True),
        (3, (REVIEW,), {"limits": Limits(on_limit="end")}, "its 3 paid calls are used up", False),
        (3, (REVIEW,), {"interrupt_off": ("budget",)}, "its 3 paid calls are used up", False),
        (2, LENSES, {}, "2 parallel stages need 2 paid calls, and 1 of 3 left", True),
    ],
    ids=["asks", "ends", "asks nobody", "parallel"],
)
def test_without_a_paid_call_left_no_stage_starts(
    calls: int, stages: tuple[StageSpec, ...], more: dict[str, Any], reason: str, is_asked: bool
) -> None:
    story = pipeline(*stages, **more)
    story.task.paid_calls = calls - 1
    step = next_step(again(story.attempt(1, stage=stages[0].name)), ready())
    failure = triaged(step)
    found = (failure.stage, failure.outcome, failure.failure_class)
    assert found == (stages[0].name, "budget", "budget")
    assert reason in failure.detail
    if is_asked:
        assert step == asking(failure.detail, before=(failure,), **FAILURE)
    else:
        assert step == moving("spawning", "failed", failure.detail, before=(failure,), **FAILURE)


# ── a start that failed ──


def failed_start(kind: str, again_mono: float = 0.0) -> Remembered:
    failure = StartFailure(kind=kind, stage="impl", reason="why", again_mono=again_mono)
    return ready(start_failure=failure)


@pytest.mark.parametrize(
    ("remembered", "step"),
    [
        (
            failed_start("process", NOW.mono + 0.5),
            Watch(wait_s=0.5, waiting_for="room for another process"),
        ),
        (failed_start("process", NOW.mono), START),
        (failed_start("session"), asking("why")),
        (failed_start("prompt"), moving("spawning", "failed", "impl cannot start: why")),
    ],
    ids=["no process", "no process before", "session", "prompt"],
)
def test_a_start_that_failed(remembered: Remembered, step: Step) -> None:
    assert next_step(Story(), remembered) == step


def test_a_prompt_of_a_pipeline_that_cannot_be_composed_is_triaged() -> None:
    step = next_step(pipeline(IMPL, prepared=("impl",)), failed_start("prompt"))
    assert triaged(step).outcome == "compose_failed"
    reason = "impl cannot start: why"
    assert step == moving("spawning", "failed", reason, before=(triaged(step),), **FAILURE)


# ── approval ──


@pytest.mark.req("INT-2")
def test_a_stage_that_needs_approval_waits_for_it() -> None:
    story = pipeline(REVIEW.evolve(approval=True))
    assert next_step(story, ready()) == asking(
        "review waits for approval: 'holdfast approve t'", approval="review"
    )
    story.tell(ev.ApprovalGiven(stage="review", by="me", request="R"))
    assert next_step(story, ready()) == OpenAttempts(stages=("review",))


def reviewed(*stages: StageSpec, confirm: tuple[str, ...], prepared: tuple[str, ...] = ()) -> Story:
    """A review that passed its gate, before these stages."""
    story = pipeline(REVIEW, *stages, prepared=prepared)
    passed = ev.GateJudged(stage="review", attempt=1, passed=True, confirm=confirm)
    story.attempt(1, stage="review").end(1, "success").move("completing").tell(passed)
    return story.tell(ev.StageDone(stage="review", attempt=1)).move("spawning")


def test_a_reviewer_can_ask_for_confirmation_once_for_the_stages_after_it() -> None:
    story = reviewed(*LENSES, confirm=("look at it", ""), prepared=("one",))
    question = "review asks to stop and confirm: look at it; one waits for approval: 'holdfast approve t'"
    assert next_step(story, ready()) == asking(question, approval="one")
    story.tell(ev.ApprovalGiven(stage="one", by="me", request="R"))
    assert next_step(story, ready()) == OpenAttempts(stages=("one", "two"))


def test_a_reviewer_need_not_say_why_and_one_who_asks_nothing_stops_nothing() -> None:
    question = "review asks to stop and confirm; impl waits for approval: 'holdfast approve t'"
    assert next_step(reviewed(IMPL, confirm=("",)), ready()) == asking(question, approval="impl")
    story = reviewed(IMPL, confirm=(), prepared=("impl",))
    assert next_step(story, ready()) == OpenAttempts(stages=("impl",))


# ── the workspace ──

HELD = WorkspaceFacts(is_held=True)
FREE = WorkspaceFacts()
TAKEN = WorkspaceFacts(writer="other", again_mono=NOW.mono + 0.5)
TAKEN_BEFORE = WorkspaceFacts(writer="other", again_mono=NOW.mono)


@pytest.mark.parametrize(
    ("story", "workspace", "step"),
    [
        (pipeline(IMPL), FREE, TakeWorkspace()),
        (pipeline(IMPL), TAKEN, Watch(wait_s=0.5, waiting_for="the workspace (other is writing)")),
        (pipeline(IMPL), TAKEN_BEFORE, TakeWorkspace()),
        (pipeline(IMPL), HELD, OpenChore(stage="impl", kind="prepare")),
        (pipeline(IMPL, prepared=("impl",)), HELD, OpenAttempts(stages=("impl",))),
        (pipeline(IMPL, prepared=("impl",)), FREE, TakeWorkspace()),
        # A stage that only reads needs no lock, and a worktree belongs to the task alone.
        (pipeline(REVIEW), FREE, OpenAttempts(stages=("review",))),
        (pipeline(IMPL, workspace="worktree"), FREE, OpenChore(stage="impl", kind="prepare")),
        # Nothing judges what a plain run changes.
        (Story((IMPL,)), FREE, OpenAttempts(stages=("impl",))),
    ],
    ids=[
        "free",
        "taken",
        "taken before",
        "held",
        "prepared",
        "prepared, not held",
        "reads",
        "worktree",
        "plain",
    ],
)
def test_a_stage_that_writes_takes_the_workspace_before_it_is_prepared(
    story: Story, workspace: WorkspaceFacts, step: Step
) -> None:
    assert next_step(story, ready(workspace=workspace)) == step


PREPARE = OpenChore(stage="review", kind="prepare")
OPEN = OpenAttempts(stages=("review",))
WRITES = REVIEW.evolve(writes=True)


def judged_beside() -> Story:
    """Of two parallel stages one was judged by its gate: its record of the workspace is of the past."""
    story = pipeline(*LENSES, prepared=("one",)).open(1, stage="one").start(1).move("running")
    story.end(1, "success").move("completing").tell(ev.GateJudged(stage="one", attempt=1, passed=True))
    return story.tell(ev.StageDone(stage="one", attempt=1)).move("spawning")


@pytest.mark.parametrize(
    ("story", "has_repository", "step"),
    [
        (pipeline(REVIEW), True, PREPARE),
        # Without git every file would be copied for a stage that should change none.
        (pipeline(REVIEW), False, OPEN),
        (pipeline(WRITES), False, PREPARE),
        (pipeline(REVIEW, workspace="worktree"), False, PREPARE),
        (pipeline(REVIEW, IMPL, prepared=("impl",), workspace="worktree"), False, PREPARE),
        (pipeline(REVIEW, pipeline=None, workspace="worktree"), False, PREPARE),
        (pipeline(REVIEW, pipeline=None, quality=QualitySpec()), True, OPEN),
        (pipeline(WRITES, pipeline=None, quality=QualitySpec()), False, PREPARE),
        (pipeline(REVIEW, pipeline=None), True, OPEN),
        (pipeline(*LENSES), True, OpenChore(stage="one", kind="prepare")),
        # Parallel stages that only read share one record.
        (pipeline(*LENSES, prepared=("one",)), True, OpenAttempts(stages=("one", "two"))),
        (judged_beside(), True, OpenChore(stage="two", kind="prepare")),
    ],
)
def test_which_stages_need_a_record_of_the_workspace(story: Story, has_repository: bool, step: Step) -> None:
    assert next_step(story, ready(), has_repository=has_repository) == step


# ── the repository's own checks ──


@pytest.mark.req("GAT-11")
def test_the_checks_of_the_repository_run_once_before_the_first_attempt() -> None:
    for quality in (QualitySpec(pre_work=("make lint",)), QualitySpec(clean_git=True)):
        story = Story(quality=quality)
        assert next_step(story, ready()) == OpenChore(stage="a_run", kind="pre_work")
        story.tell(ev.PreWorkChecked(stage="a_run", passed=False))
        assert next_step(story, ready()) == START
    assert next_step(Story(quality=QualitySpec(post_work=("make test",))), ready()) == START
    # A pipeline has its own gates.
    story = pipeline(REVIEW, quality=QualitySpec(pre_work=("make lint",)))
    assert next_step(story, ready()) == OPEN


# ── failover ──


def switched(old: str, new: str) -> Journal:
    reason = f"{old} is unavailable, {new} is available"
    return Journal(events=(ev.AgentSwitched(stage="a_run", old=old, new=new, reason=reason),))


@pytest.mark.req("BUD-9")
@pytest.mark.parametrize(
    ("unavailable", "agent", "step"),
    [
        ({}, "a", START),
        ({"a": 10.0}, "a", switched("a", "b")),
        ({"a": None}, "a", switched("a", "b")),
        ({"a": -1.0}, "a", START),
        # No agent is left, so the one that is tried reports it.
        ({"a": 10.0, "b": 10.0}, "a", START),
        ({"b": 10.0, "a": -1.0}, "b", switched("b", "a")),
    ],
    ids=["all are there", "out of quota", "needs a person", "back", "none", "the first is back"],
)
def test_an_agent_that_is_unavailable_is_replaced_by_one_that_is_not(
    unavailable: dict[str, float | None], agent: str, step: Step
) -> None:
    story = again(Story(failover=("b",), limits=Limits(deadline_s=None)).attempt(1))
    state = story.task.stage_state("a_run")
    state.agent = agent
    for name, minutes in unavailable.items():
        state.unavailable[name] = None if minutes is None else clock.iso(NOW.wall + 60 * minutes)
    assert next_step(story, ready()) == step


# ── the order ──


def test_the_checks_of_the_task_in_their_order() -> None:
    """Nothing is ready; the obstacles are removed one after the other."""
    quality = QualitySpec(pre_work=("make lint",))
    story = Story((IMPL,), quality=quality, failover=("b",), limits=Limits(deadline_s=None, max_turns=1))
    story.task.messages = 2
    story.task.stage_state("impl").unavailable["a"] = None
    remembered = memory(start_failure=StartFailure(kind="session", stage="impl", reason="held"))
    story.task.voids_in_a_row = 3
    assert isinstance(next_step(story, remembered, interrupt_file="q"), Journal)
    story.task.voids_in_a_row = 0
    assert next_step(story, remembered, interrupt_file="q") == asking("q")
    assert next_step(story, remembered) == Preflight()
    remembered.preflight_run = 1
    assert story.task.budget_reached is not None
    assert next_step(story, remembered) == asking(story.task.budget_reached, cause="budget")
    story.task.messages = 0
    assert next_step(story, remembered) == asking("held")
    remembered.start_failure = None
    assert next_step(story, remembered) == TakeWorkspace()
    remembered.workspace = HELD
    assert next_step(story, remembered) == OpenChore(stage="impl", kind="prepare")
    story.tell(workspace_of("impl"))
    assert next_step(story, remembered) == OpenChore(stage="impl", kind="pre_work")
    story.tell(ev.PreWorkChecked(stage="impl", passed=True))
    step = next_step(story, remembered)
    assert isinstance(step, Journal)
    assert isinstance(step.events[0], ev.AgentSwitched)
    story.tell(*step.events)
    assert next_step(story, remembered) == OpenAttempts(stages=("impl",))


def test_approval_and_paid_calls_come_before_the_workspace() -> None:
    story = pipeline(IMPL.evolve(approval=True))
    story.task.paid_calls = 3
    remembered = memory(preflight_run=1)
    assert next_step(story, remembered) == asking(
        "impl waits for approval: 'holdfast approve t'", approval="impl"
    )
    story.tell(ev.ApprovalGiven(stage="impl", by="me", request="R"))
    assert triaged(next_step(story, remembered)).failure_class == "budget"
    story.task.paid_calls = 0
    assert next_step(story, remembered) == TakeWorkspace()
