"""After a chore ended: clean up, and record what it found or that it failed. Pure."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.decision import Then
from holdfast.model.execution import Chore
from holdfast.model.task import Task
from holdfast.runner.plan import ended, policy
from holdfast.runner.plan.facts import Facts, Now
from holdfast.runner.plan.moves import ask, move
from holdfast.runner.plan.step import Journal, ReleaseWorkspace, Step, TakeChoreResult, WriteFiles

#: Give up after this many tries in a row have died.
_TRIES = 3
_REASON_CHARS = 1000


def plan_ended(task: Task, facts: Facts, chore: Chore, now: Now) -> Step:
    """The next step after a chore has ended."""
    step = ended.sweep(chore, facts, now)
    if step is not None:
        return step
    if chore.number not in facts.remembered.files_written:
        return WriteFiles(number=chore.number)
    if chore.intent is not None and chore.intent_name != "timeout":
        return _drop(task, facts, chore, chore.intent)
    result = facts.chore_result
    assert result is not None
    return (
        TakeChoreResult(number=chore.number)
        if result.is_usable
        else _fail(task, facts, chore, now, complaint=result.complaint)
    )


def _drop(task: Task, facts: Facts, chore: Chore, intent: ev.StopIntended) -> Step:
    """It was stopped with the task: it runs again when the task continues."""
    if facts.remembered.workspace.is_held:
        return ReleaseWorkspace()
    dropped = _failed(chore, intent.reason, counts=False)
    decision = policy.after_attempt(
        "stopped", intent=intent.intent, intent_reason=intent.reason, cause=intent.cause
    )
    if decision.then is Then.ASK:
        return ask(task, facts, decision.reason, cause=decision.cause, before=(dropped,))
    return move(task, decision.status, decision.reason, before=(dropped,))


def _fail(task: Task, facts: Facts, chore: Chore, now: Now, *, complaint: str) -> Step:
    """It died, or could not do its work.

    A chore that was killed is tried again; one that gives a reason is not.
    """
    end = chore.ended
    assert end is not None
    reason = complaint or f"{end.outcome}: {end.detail}"
    failed = _failed(chore, reason)
    if end.exit_signal is not None or end.outcome == "lost":
        times = task.stage_state(chore.stage).failed_chores_in_a_row + 1
        if times < _TRIES:
            return Journal(events=(failed,))
        reason = f"its process died {times} times: {reason}"
    if chore.kind == "ci":
        from holdfast.runner.plan import ci

        return ci.plan_failure(task, facts, reason, now, failed=failed)
    if chore.kind in ("prepare", "adopt"):
        from holdfast.runner.plan import failures

        return failures.stop_before_call(
            task, facts, chore.stage, outcome="prepare_failed", reason=reason, before=(failed,)
        )
    reasons = (reason[:_REASON_CHARS],)
    if chore.kind == "pre_work":
        return Journal(events=(failed, ev.PreWorkChecked(stage=chore.stage, passed=False, reasons=reasons)))
    attempt = task.stage_state(chore.stage).attempt
    judged = ev.GateJudged(
        stage=chore.stage,
        attempt=attempt.number if attempt is not None else 0,
        passed=False,
        failed="gate_broken",
        reasons=reasons,
    )
    return Journal(events=(failed, judged))


def _failed(chore: Chore, reason: str, *, counts: bool = True) -> ev.ChoreFailed:
    return ev.ChoreFailed(
        stage=chore.stage, attempt=chore.number, kind=chore.kind, reason=reason, counts=counts
    )
