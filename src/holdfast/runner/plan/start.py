"""Start the due stages: a list of preconditions, and the agents once all of them hold. Pure.

A precondition is named after what must hold before the start. It returns None if that holds, or else the step
that comes first.
"""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.decision import Then
from holdfast.model.execution import VOID_LIMIT
from holdfast.model.spec import StageSpec
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.runner.plan import policy, repair
from holdfast.runner.plan.facts import Facts, Now
from holdfast.runner.plan.moves import ask, move
from holdfast.runner.plan.step import (
    Journal,
    OpenAttempts,
    OpenChore,
    Preflight,
    Step,
    TakeWorkspace,
    Watch,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    TaskPrecondition = Callable[[Task, Facts, Now], Step | None]
    StagePrecondition = Callable[[Task, StageSpec, Facts, Now], Step | None]


def plan_start(task: Task, facts: Facts, now: Now) -> Step:
    """Start what is due, or take the first step that must come before."""
    for precondition in TASK_PRECONDITIONS:
        step = precondition(task, facts, now)
        if step is not None:
            return step
    for stage in task.due:
        for stage_precondition in STAGE_PRECONDITIONS:
            step = stage_precondition(task, stage, facts, now)
            if step is not None:
                return step
    return OpenAttempts(stages=tuple(stage.name for stage in task.due))


def is_plain(task: Task) -> bool:
    """Whether nothing surrounds its one agent: no pipeline, no worktree, no checks of the repository."""
    spec = task.spec
    return spec.pipeline is None and spec.workspace == "in_place" and spec.quality is None


# ── preconditions of the task ──


def _awaits_no_ci(task: Task, facts: Facts, now: Now) -> Step | None:
    """Otherwise its stages are done, and only the checks of its pull request are left."""
    if not task.awaits_ci:
        return None
    new = Status.RUNNING if task.status is Status.SPAWNING else Status.COMPLETING
    return move(task, new, "back to the checks of its pull request")


def _has_due_stage(task: Task, facts: Facts, now: Now) -> Step | None:
    if task.due:
        return None
    return ask(task, facts, "no stage is due: name the one to run with 'holdfast retry --from'")


def _can_start(task: Task, facts: Facts, now: Now) -> Step | None:
    """Otherwise the recorders of the last attempts died before an agent existed."""
    if task.voids_in_a_row < VOID_LIMIT:
        return None
    from holdfast.runner.plan import retry

    reason = f"could not be started: {task.voids_in_a_row} recorders died before the agent existed"
    decision = policy.after_attempt("spawn_failed", reason)
    return Journal(
        events=retry.retry_events(task, decision, now, outcome="spawn_failed", stage=task.due[0].name)
    )


def _is_not_interrupted(task: Task, facts: Facts, now: Now) -> Step | None:
    if facts.interrupt_file is None:
        return None
    if not is_plain(task):
        from holdfast.runner.plan import approval

        # A runner was killed between the interrupt file and the interrupt: it still waits for approval.
        for stage in task.due:
            if stage.name == facts.file_asks_approval and approval.question(task, stage) is not None:
                return None
    return ask(task, facts, facts.interrupt_file)


def _awaits_no_gate(task: Task, facts: Facts, now: Now) -> Step | None:
    """Otherwise the task was interrupted while the gate ran, or before a candidate was adopted: agents have
    done their part."""
    is_contest = any(stage.contest for stage in task.due)
    is_decided = is_contest and _is_chosen(task)
    if not is_decided and not any(task.stage_state(stage.name).awaits_gate for stage in task.due):
        return None
    new = Status.RUNNING if task.status is Status.SPAWNING else Status.COMPLETING
    return move(task, new, "back to the gate")


def _is_chosen(task: Task) -> bool:
    from holdfast.model import contest  # few tasks have candidates

    return contest.choice(task) is not None


def _has_what_it_needs(task: Task, facts: Facts, now: Now) -> Step | None:
    """What its stages need is looked for before the first call of a run."""
    spec, remembered = task.spec, facts.remembered
    is_bare = spec.agent == "command" and spec.pipeline is None and spec.bootstrap is None
    has_called = task.attempt is not None and task.attempt.agent == "command"
    is_begun = task.paid_calls > task.paid_before_run
    if (is_bare and facts.has_project) or is_begun or has_called:
        return None
    if remembered.preflight_run != task.run:
        return Preflight()
    if not remembered.problems:
        return None
    from holdfast.runner.plan import failures

    problems = remembered.problems
    return failures.stop_before_call(
        task,
        facts,
        task.stage or "",
        outcome="preflight_failed",
        reason="; ".join(problem.text for problem in problems),
        missing_program=next((each.missing_program for each in problems if each.missing_program), ""),
    )


def _has_budget(task: Task, facts: Facts, now: Now) -> Step | None:
    """Otherwise its money, tokens or turns were used up before this call."""
    if task.budget_reached is None:
        return None
    reason = repair.with_refusal(task, task.budget_reached)
    decision = policy.after_attempt("stopped", intent="budget", intent_reason=reason)
    decision = policy.at_limit(decision, "budget", task.spec.limits)
    decision = policy.without_asking(decision, "budget", task.spec.interrupt_off)
    if decision.then is Then.ASK:
        return ask(task, facts, decision.reason, cause=decision.cause)
    return move(task, decision.status, decision.reason, cause=decision.cause)


def _did_not_fail_to_start(task: Task, facts: Facts, now: Now) -> Step | None:
    failure = facts.remembered.start_failure
    if failure is None:
        return None
    if failure.kind == "process":
        return wait_for_process(facts, now)
    if failure.kind == "session":
        return ask(task, facts, failure.reason)
    if is_plain(task):
        return move(task, Status.FAILED, f"{failure.stage} cannot start: {failure.reason}")
    from holdfast.runner.plan import failures

    return failures.stop_before_call(
        task, facts, failure.stage, outcome="compose_failed", reason=failure.reason
    )


def wait_for_process(facts: Facts, now: Now) -> Step | None:
    """No process could be forked: pause before the next try."""
    failure = facts.remembered.start_failure
    if failure is None or failure.kind != "process" or now.mono >= failure.again_mono:
        return None
    return Watch(wait_s=failure.again_mono - now.mono, waiting_for="room for another process")


#: In this order.
TASK_PRECONDITIONS: tuple[TaskPrecondition, ...] = (
    _awaits_no_ci,
    _has_due_stage,
    _can_start,
    _is_not_interrupted,
    _awaits_no_gate,
    _has_what_it_needs,
    _has_budget,
    _did_not_fail_to_start,
)


# ── preconditions of a stage ──


def _is_approved(task: Task, stage: StageSpec, facts: Facts, now: Now) -> Step | None:
    if is_plain(task):
        return None
    from holdfast.runner.plan import approval

    question = approval.question(task, stage)
    return None if question is None else ask(task, facts, question, approval=stage.name)


def _has_call_left(task: Task, stage: StageSpec, facts: Facts, now: Now) -> Step | None:
    if not task.has_no_call_left:
        return None
    from holdfast.runner.plan import failures

    return failures.stop_without_calls(task, facts)


def has_workspace(task: Task, stage: StageSpec, facts: Facts, now: Now) -> Step | None:
    """A stage that writes in the project directory needs its lock; a worktree belongs to the task alone."""
    workspace = facts.remembered.workspace
    if is_plain(task) or not stage.writes or task.spec.workspace == "worktree" or workspace.is_held:
        return None
    if now.mono >= workspace.again_mono:
        return TakeWorkspace()
    if facts.interrupt_file is not None:
        return ask(task, facts, facts.interrupt_file)
    writer = workspace.writer or "another task"
    return Watch(wait_s=workspace.again_mono - now.mono, waiting_for=f"the workspace ({writer} is writing)")


def _is_prepared(task: Task, stage: StageSpec, facts: Facts, now: Now) -> Step | None:
    if task.stage_state(stage.name).workspace is not None or not needs_prepare(task, stage, facts):
        return None
    return open_chore(task, stage, "prepare", facts)


def needs_prepare(task: Task, stage: StageSpec, facts: Facts) -> bool:
    """Whether the workspace has to be made or recorded before the stage's agent starts.

    Parallel stages that only read share one record.
    """
    spec = task.spec
    if is_plain(task):
        return False
    if spec.workspace == "worktree" and not any(state.workspace for state in task.stage_states.values()):
        return True
    if stage.writes or spec.pipeline is None:
        return stage.writes
    beside = [task.stage_state(name) for name in task.parallel_stages(stage.name)]
    if any(state.workspace is not None and state.gate is None for state in beside):
        return False
    # Without git, every file would be read and copied for stages that should change none.
    return spec.workspace == "worktree" or facts.has_repository


def _is_checked(task: Task, stage: StageSpec, facts: Facts, now: Now) -> Step | None:
    """The repository's own checks run once, before the first attempt of a plain run."""
    quality = task.spec.quality
    is_due = quality is not None and quality.looks_before and task.spec.pipeline is None
    if not is_due or task.stage_state(stage.name).pre_work is not None:
        return None
    return open_chore(task, stage, "pre_work", facts)


def _has_agent(task: Task, stage: StageSpec, facts: Facts, now: Now) -> Step | None:
    """An agent that was unavailable may be back, or another one of the failover list may be available."""
    state = task.stage_state(stage.name)
    if policy.available((state.agent,), state.unavailable, now.wall) is not None:
        return None
    new = policy.available((stage.agent, *task.spec.failover), state.unavailable, now.wall)
    if new is None or new == state.agent:
        return None
    reason = f"{state.agent} is unavailable, {new} is available"
    return Journal(events=(ev.AgentSwitched(stage=stage.name, old=state.agent, new=new, reason=reason),))


#: In this order, for each due stage.
STAGE_PRECONDITIONS: tuple[StagePrecondition, ...] = (
    _is_approved,
    _has_call_left,
    has_workspace,
    _is_prepared,
    _is_checked,
    _has_agent,
)


def open_chore(task: Task, stage: StageSpec, kind: str, facts: Facts, *, judged: int = 0) -> Step:
    """Start a chore, unless its recorders keep dying."""
    if task.voids_in_a_row < VOID_LIMIT:
        return OpenChore(stage=stage.name, kind=kind, judged=judged)
    return ask(task, facts, f"the {kind} of {stage.name} cannot be started: its recorders die at once")
