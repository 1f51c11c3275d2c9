"""The checks of a repository around a plain run: when they are asked, and what follows where they do not pass."""

from __future__ import annotations

from holdfast.model.attempt import Attempt
from holdfast.model.stage_state import StageState
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.runner.ledger import Ledger
from holdfast.runner.people import notices
from holdfast.runner.plan.policy import Decision, Then

#: Reasons that are named where there is room for a line.
_NAMED = 3


def needs_pre_work(task: Task, stage_state: StageState) -> bool:
    """Whether the repository's checks are due: once, before the first attempt."""
    quality = task.spec.quality
    return (
        quality is not None
        and quality.looks_before
        and stage_state.pre_work is None
        and task.spec.pipeline is None
    )


def has_gate(task: Task) -> bool:
    """Whether the work goes through the repository's gate."""
    return task.spec.quality is not None and task.spec.quality.looks_after


def refused(ledger: Ledger, attempt: Attempt) -> Decision:
    """A person is asked. On a resume the agent goes on in its session, and is told the reasons."""
    verdict = ledger.task.stage_state(attempt.stage).gate_result
    assert verdict is not None
    what = "could not be asked" if verdict.failed == "gate_broken" else "failed"
    reason = f"quality gate {what}: {'; '.join(verdict.reasons[:_NAMED])}"
    # Before the move, like every notice: a kill in between tells it twice, and never not at all.
    notices.post(ledger, "quality_gate", reason)
    return Decision(then=Then.INTERRUPT, status=Status.INTERRUPTED, reason=reason)
