"""Failures of a pipeline's stage: triaged once, then followed as class and budgets allow. Pure.

A plain run has no triage: `runner.plan.policy` decides alone.
"""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.decision import Decision, Then
from holdfast.model.status import Cause, Status
from holdfast.model.task import Task
from holdfast.pipeline import budget, failure_rules, triage
from holdfast.pipeline.failure_rules import Counts
from holdfast.pipeline.triage import Failure, Triage
from holdfast.runner.plan import repair
from holdfast.runner.plan.facts import Facts
from holdfast.runner.plan.moves import ask, move
from holdfast.runner.plan.step import PostNotice, Step, TriageFailure

#: Intents to stop an agent that do not mean that its stage failed.
_NOT_A_FAILURE = frozenset({"stop", "interrupt", "deadline"})


def after_attempt(task: Task, attempt: Attempt, decision: Decision) -> Decision | TriageFailure:
    """What follows from an attempt in a pipeline."""
    ended = attempt.ended
    if decision.then is Then.COMPLETE or attempt.intent_name in _NOT_A_FAILURE or ended is None:
        return decision
    # Death by a signal says nothing about the work: the agent can continue where it was.
    outcome = "killed" if ended.outcome == "crashed" and ended.exit_signal is not None else ended.outcome
    outcome = "budget" if attempt.intent_name in ("budget", "output") else outcome
    if attempt.triage is None:
        failure = Failure(stage=attempt.stage, outcome=outcome, detail=ended.detail)
        return TriageFailure(number=attempt.number, failure=failure)
    return decision if decision.then is Then.WAIT else _follow(task, attempt.triage, decision)


def after_gate(task: Task, attempt: Attempt, facts: Facts) -> Decision | TriageFailure | PostNotice:
    """What follows from an attempt that its gate did not let pass."""
    result = task.stage_state(attempt.stage).gate_result
    assert result is not None
    reasons = "; ".join(result.reasons[:3])
    reason = f"the gate of {attempt.stage} did not pass{repair.so_far(task, attempt.stage)}: {reasons}"
    if attempt.triage is None:
        # Announced before the triage, which marks it as done: after a kill in between it is announced twice,
        # but it is never missed.
        if attempt.number not in facts.remembered.refusals_announced:
            return PostNotice(event="quality_gate", reason=reason, attempt=attempt.number)
        failure = Failure(
            stage=attempt.stage,
            outcome=_outcome(result),
            detail=reasons,
            gate_failed=result.failed or "gate",
            gate_reasons=result.reasons,
        )
        return TriageFailure(number=attempt.number, failure=failure)
    if repair.is_allowed(task, result):
        return Decision(then=Then.REPAIR, status=Status.SPAWNING, reason=reason, burns=False)
    if result.cannot_start:
        return repair.ask_for_setup(task, reason)
    decision = Decision(then=Then.RETRY, status=Status.CRASHED, reason=reason)
    return _follow(task, attempt.triage, decision)


def _outcome(result: ev.GateJudged) -> str:
    if result.cannot_start:
        return "cannot_start"
    return "gate_broken" if result.failed == "gate_broken" else "success"


def stop_without_calls(task: Task, facts: Facts) -> Step:
    """The packet allows no more paid calls: the task asks, or ends."""
    reason = f"its {task.paid_calls} paid calls are used up (budgets.paid_call_budget)"
    needed, left = len(task.due), budget.paid_left(task.paid_calls, task.paid_limit)
    if left:
        reason = f"{needed} parallel stages need {needed} paid calls, and {left} of {task.paid_limit} left"
    reason = repair.with_refusal(task, reason)
    failure = _unpaid(task, task.stage or "", "budget", reason)
    triaged = triaged_event(failure, triage.triage(failure))
    if task.spec.limits.on_limit == "end" or "budget" in task.spec.interrupt_off:
        return move(task, Status.FAILED, reason, cause=Cause.FAILURE, before=(triaged,))
    return ask(task, facts, reason, cause=Cause.FAILURE, before=(triaged,))


def stop_before_call(
    task: Task,
    facts: Facts,
    stage: str,
    *,
    outcome: str,
    reason: str,
    missing_program: str = "",
    before: tuple[ev.Event, ...] = (),
) -> Step:
    """Something that the stage needs is missing or wrong: end the task before a paid call.

    A queued task asks a person, because no command follows it.
    """
    failure = _unpaid(task, stage, outcome, reason).evolve(missing_program=missing_program)
    before = (*before, triaged_event(failure, triage.triage(failure)))
    reason = f"{stage} cannot start: {reason}"
    if task.spec.queue is None or "error" in task.spec.interrupt_off:
        return move(task, Status.FAILED, reason, cause=Cause.FAILURE, before=before)
    question = f"{reason}; fix it, then 'holdfast resume {task.spec.task_id}'"
    return ask(task, facts, question, cause=Cause.FAILURE, before=before)


def _unpaid(task: Task, stage: str, outcome: str, detail: str) -> Failure:
    """A failure before a paid call."""
    return Failure(stage=stage, outcome=outcome, detail=detail, task_id=task.spec.task_id)


def triaged_event(failure: Failure, result: Triage, *, attempt: int = 0) -> ev.FailureTriaged:
    """The event of a triage."""
    return ev.FailureTriaged(
        stage=failure.stage,
        attempt=attempt,
        role=failure.role,
        agent=failure.agent,
        outcome=failure.outcome,
        detail=failure.detail,
        exit_code=failure.exit_code,
        gate_failed=failure.gate_failed,
        gate_reasons=failure.gate_reasons,
        failure_class=result.failure_class,
        signature=result.signature,
        excerpt=failure.stderr_excerpt,
        missing_program=failure.missing_program,
    )


def _follow(task: Task, triaged: ev.FailureTriaged, decision: Decision) -> Decision:
    pipeline = task.spec.pipeline
    assert pipeline is not None
    result = Triage(failure_class=triaged.failure_class, signature=triaged.signature, outcome=triaged.outcome)
    counts = Counts(
        seen=task.signatures[triaged.signature]["count"] - 1,
        retry_budget=pipeline.retry_budget,
        calls_left=budget.paid_left(task.paid_calls, task.paid_limit),
        on_limit=task.spec.limits.on_limit,
        repairs=task.repairs.get(triaged.stage, 0) if triaged.gate_failed else 0,
    )
    return failure_rules.after_failure(decision, result, counts).evolve(cause=Cause.FAILURE)
