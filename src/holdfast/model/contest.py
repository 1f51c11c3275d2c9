"""Best of N: the candidates of a task, which of them are left, and which one is chosen. Pure.

Everything follows from the journal. What an agent wrote counts only as a number, compared with the survivors.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import StageSpec
    from holdfast.model.task import Task


def judge_of(task: Task) -> StageSpec | None:
    """The stage that chooses; None in a task without candidates."""
    return next((stage for stage in task.spec.stages if stage.contest and not stage.candidate), None)


def survivors(task: Task) -> tuple[StageSpec, ...]:
    """The candidates that passed their gates so far."""
    return tuple(stage for stage in task.spec.stages if stage.candidate and stage.name in task.stages_done)


def choice(task: Task) -> StageSpec | None:
    """The candidate to adopt: the only survivor, or the one that the judge named.

    None while a candidate is not over, and if the judge has not named a survivor.
    """
    judge = judge_of(task)
    if judge is None or not all(task.is_over(stage.name) for stage in task.spec.stages if stage.candidate):
        return None
    left = survivors(task)
    if len(left) == 1:
        return left[0]
    judged = task.stage_state(judge.name).gate_result
    if judged is None or not judged.passed:
        return None
    return named(left, judged.decision)


def named(left: tuple[StageSpec, ...], decision: str) -> StageSpec | None:
    """The survivor with that number."""
    return next((stage for stage in left if str(stage.candidate) == decision), None)


def is_past(task: Task, stage: StageSpec) -> bool:
    """Whether a stage is that of a candidate that lost: later stages are not told about it."""
    return stage.candidate > 0 and task.chosen is not None and task.chosen.chosen != stage.name
