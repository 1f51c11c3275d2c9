"""Repairs: work that its gate refused goes back to the session of an agent, with the evidence. Pure."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.acceptance import CHECK, CI
from holdfast.model.attempt import Attempt
from holdfast.model.decision import Decision, Then
from holdfast.model.status import Cause, Status
from holdfast.model.task import Task
from holdfast.runner.plan.moves import moved_event
from holdfast.units import plural

#: Never repaired: the agent left its scope, a review must not be softened, the gate could not judge.
_NOT_REPAIRED = ("scope", "severity", "gate_broken")


def target(task: Task, judged: ev.GateJudged) -> str | None:
    """The stage whose agent repairs what this gate refused; null if none can.

    A report or a patch is repaired by the agent that wrote it. If the acceptance commands or the checks of
    the pull request failed, that is the stage of `on_fail.back_to`, or the last one that wrote.
    """
    pipeline = task.spec.pipeline
    if pipeline is None:
        return judged.stage if judged.failed == CHECK else None
    if judged.failed in _NOT_REPAIRED:
        return None
    if judged.failed not in (CHECK, CI) or task.has_own_worktree(judged.stage):
        return judged.stage
    names = [stage.name for stage in task.spec.stages]
    before = task.spec.stages[: names.index(judged.stage) + 1] if judged.stage in names else ()
    # Of several candidates, only the chosen one goes on.
    writers = [stage for stage in before if stage.writes and not task.has_own_worktree(stage.name)]
    wanted = [
        stage.name for stage in writers if pipeline.repair_to in (stage.name, stage.contest or stage.name)
    ]
    return wanted[0] if wanted else writers[-1].name if writers else None


def is_allowed(task: Task, judged: ev.GateJudged) -> bool:
    """Whether another repair may follow this judgement."""
    if judged.cannot_start:  # no agent can install what is missing
        return False
    return task.repairs.get(judged.stage, 0) < _limit(task) and target(task, judged) is not None


def _limit(task: Task) -> int:
    """How often the work of one stage may be sent back."""
    rules = task.spec.pipeline or task.spec.quality
    return rules.repair_times if rules is not None else 0


def so_far(task: Task, stage: str) -> str:
    """` after 2 repairs`: how often what the gate of a stage refused was repaired; empty if never."""
    count = task.repairs.get(stage, 0)
    return f" after {plural(count, 'repair')}" if count else ""


def ask_for_setup(task: Task, reason: str) -> Decision:
    """An acceptance command could not start, and could not before the work either: ask a person."""
    question = (
        f"{reason}; install what is missing, then 'holdfast resume {task.spec.task_id}' judges the same work "
        "again, without a call of the agent"
    )
    return Decision(then=Then.ASK, status=Status.INTERRUPTED, reason=question, cause=Cause.SETUP)


def after_gates(task: Task, attempts: list[Attempt]) -> tuple[ev.Event, ...]:
    """Send back the work of these attempts, all of them refused by their gates."""
    planned: list[ev.Event] = []
    for attempt in attempts:
        judged = task.stage_state(attempt.stage).gate_result
        if judged is not None and is_allowed(task, judged):
            planned += _planned(task, judged, number=task.repairs.get(judged.stage, 0) + 1)
    return (*planned, move_on(task, planned[0]))


def move_on(task: Task, planned: ev.Event) -> ev.TaskMoved:
    """The move that follows a repair."""
    assert isinstance(planned, ev.RepairPlanned)
    count = f" {planned.number} of {_limit(task)}" if planned.number else ""
    return moved_event(
        task, Status.SPAWNING, f"repair{count} by {planned.stage}: {'; '.join(planned.reasons[:3])}"
    )


def with_refusal(task: Task, reason: str) -> str:
    """The reason why no call is made, with what a gate refused before, if a repair is due. A budget must not
    hide that."""
    for stage in task.due:
        state = task.stage_state(stage.name)
        planned, last = state.repair, state.attempt
        if planned is not None and (last is None or last.number <= planned.after):
            refused = "; ".join(planned.reasons[:3])
            return f"{reason}, and the gate of {planned.failed_stage} refused the work: {refused}"
    return reason


def by_person(task: Task, *, message: str | None) -> tuple[ev.Event, ...]:
    """A person lets a task go on whose acceptance failed.

    The stage that can repair it continues, not the stage that found it. If a command could not start, and
    there is no message for an agent, the same work is judged again.
    """
    for stage in task.due:
        state = task.stage_state(stage.name)
        judged = state.gate_result
        if judged is None or judged.passed or state.repair is not None:
            continue
        if judged.cannot_start and message is None:
            continue
        if target(task, judged) not in (None, judged.stage):
            return _planned(task, judged, number=0)
    return ()


def _planned(task: Task, judged: ev.GateJudged, *, number: int) -> tuple[ev.Event, ...]:
    name = target(task, judged)
    if name is None:
        return ()
    ran = task.stage_state(name).ran
    return (
        ev.RepairPlanned(
            stage=name,
            after=ran.number if ran is not None else 0,
            failed_stage=judged.stage,
            number=number,
            reasons=judged.reasons,
            evidence=judged.evidence,
        ),
    )
