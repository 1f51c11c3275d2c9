"""Failures of a pipeline's stages: triaged once, journalled, and followed by what the packet's budgets allow.

A plain run has no triage: `policy.after_attempt` says everything about it.
"""

from __future__ import annotations

import os

from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.status import Status
from holdfast.pipeline import budget, policy, triage
from holdfast.pipeline.policy import Follow
from holdfast.pipeline.triage import Failure, Triage
from holdfast.redact import MARGIN, Redactor, begin_of, end_of
from holdfast.runner.ledger import Ledger
from holdfast.runner.people import notices
from holdfast.runner.plan.policy import Decision, Then

#: Intents of ours that are no failure of the stage.
_NOT_A_FAILURE = frozenset({"stop", "interrupt", "deadline"})
#: Of each end of a log.
_END_BYTES, _END_LINES = 8192, 20
_DETAIL_CHARS, _EXCERPT_CHARS = 1000, 20_000


def judge_attempt(ledger: Ledger, attempt: Attempt, decision: Decision) -> Decision:
    """What follows from an attempt that did not succeed, in a pipeline."""
    if ledger.task.spec.pipeline is None or decision.then is Then.COMPLETE:
        return decision
    if attempt.intent_name in _NOT_A_FAILURE or attempt.ended is None:
        return decision
    ended = attempt.ended
    # A signal's death says nothing by itself; the agent can go on where it was.
    outcome = "killed" if ended.outcome == "crashed" and ended.exit_signal is not None else ended.outcome
    outcome = "budget" if attempt.intent_name in ("budget", "output") else outcome
    found = _triaged(ledger, attempt, Failure(stage=attempt.stage, outcome=outcome, detail=ended.detail))
    if decision.then is Then.WAIT:
        return decision
    return _follow(ledger, found, decision)


def judge_gate(ledger: Ledger, attempt: Attempt) -> Decision:
    """What follows from an attempt that its gate did not let pass."""
    verdict = ledger.task.stage_state(attempt.stage).gate_result
    assert verdict is not None
    why = "; ".join(verdict.reasons[:3])
    outcome = "gate_broken" if verdict.failed == "gate_broken" else "success"
    facts = Failure(
        stage=attempt.stage,
        outcome=outcome,
        detail=why,
        gate_failed=verdict.failed or "gate",
        gate_reasons=verdict.reasons,
    )
    reason = f"the gate of {attempt.stage} did not pass: {why}"
    if attempt.triage is None:
        # Before the triage, by which it is known as judged: a kill in between tells it twice, and never not at all.
        notices.post(ledger, "quality_gate", reason)
    found = _triaged(ledger, attempt, facts)
    return _follow(ledger, found, Decision(then=Then.RETRY, status=Status.CRASHED, reason=reason))


def is_out_of_calls(ledger: Ledger) -> bool:
    """Before a call: whether the packet allows none any more. Then the task asks, or has ended."""
    task = ledger.task
    if not task.has_no_call_left:
        return False
    reason = f"its {task.paid_calls} paid calls are used up (budgets.paid_call_budget)"
    needed, left = len(task.due), budget.paid_left(task.paid_calls, task.paid_limit)
    if left:
        reason = (
            f"{needed} stages side by side need {needed} paid calls, and {left} of {task.paid_limit} is left"
        )
    facts = Failure(stage=task.stage or "", outcome="budget", detail=reason, task_id=ledger.packet.task_id)
    event = _event(ledger, facts, triage.triage(facts), attempt=0, excerpt="")
    if task.spec.limits.on_limit == "end" or "budget" in task.spec.interrupt_off:
        ledger.record(event, ledger.moved(Status.FAILED, reason))
    else:
        ledger.record(event, ledger.moved(Status.INTERRUPTED, reason, interrupt=reason))
    return True


def stop_before_call(ledger: Ledger, stage: str, *, outcome: str, reason: str) -> None:
    """Something that the stage needs is missing or wrong: end the task, before a call that costs something. One from the queue
    asks for a person: whoever submitted it is long gone."""
    facts = Failure(stage=stage, outcome=outcome, detail=reason, task_id=ledger.packet.task_id)
    found = triage.triage(facts)
    event = _event(ledger, facts, found, attempt=0, excerpt="")
    reason = f"{stage} cannot start: {reason}"
    if ledger.task.spec.queue is None or "error" in ledger.task.spec.interrupt_off:
        ledger.record(event, ledger.moved(Status.FAILED, reason))
        return
    reason += f"; put it right, then 'holdfast resume {ledger.packet.task_id}'"
    ledger.record(event, ledger.moved(Status.INTERRUPTED, reason, interrupt=reason))


def _triaged(ledger: Ledger, attempt: Attempt, facts: Failure) -> Triage:
    """The triage of an attempt; journalled once, however often it is asked for."""
    if attempt.triage is not None:
        seen = attempt.triage
        return Triage(failure_class=seen.failure_class, signature=seen.signature, outcome=seen.outcome)
    ended = attempt.ended
    excerpt = _ends_of(ledger.packet.attempt(attempt.dirname).stderr, ledger.redact)
    spec = next((spec for spec in ledger.task.spec.stages if spec.name == attempt.stage), None)
    facts = facts.evolve(
        role=spec.role if spec is not None else "",
        agent=attempt.agent,
        exit_code=ended.exit_code if ended is not None else None,
        stderr_excerpt=excerpt,
        task_id=ledger.packet.task_id,
    )
    found = triage.triage(facts)
    ledger.record(_event(ledger, facts, found, attempt=attempt.number, excerpt=excerpt))
    return found


def _ends_of(path: str, redact: Redactor) -> str:
    """The first and the last lines of a log, without secrets: what went wrong stands at one of its ends."""
    read_bytes = _END_BYTES + MARGIN
    try:
        with open(path, "rb") as file:
            first = file.read(2 * read_bytes)
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - read_bytes))
            last = file.read(read_bytes)
    except FileNotFoundError:
        return ""
    if size <= 2 * read_bytes:
        head, tail = redact(first.decode("utf-8", "replace")).splitlines(), []
    else:
        head = begin_of(first[:read_bytes], redact, _END_BYTES).splitlines()
        tail = end_of(last, redact, _END_BYTES).splitlines()
    if len(head) + len(tail) <= 2 * _END_LINES:
        return "\n".join([*head, *tail])
    return "\n".join([*head[:_END_LINES], "[…]", *(tail or head)[-_END_LINES:]])


def _event(ledger: Ledger, facts: Failure, found: Triage, *, attempt: int, excerpt: str) -> ev.FailureTriaged:
    return ev.FailureTriaged(
        stage=facts.stage,
        attempt=attempt,
        role=facts.role,
        agent=facts.agent,
        outcome=facts.outcome,
        detail=ledger.redact(facts.detail)[:_DETAIL_CHARS],
        exit_code=facts.exit_code,
        gate_failed=facts.gate_failed,
        gate_reasons=facts.gate_reasons,
        failure_class=found.failure_class,
        signature=found.signature,
        excerpt=excerpt[:_EXCERPT_CHARS],
    )


def _follow(ledger: Ledger, found: Triage, decision: Decision) -> Decision:
    task, pipeline = ledger.task, ledger.task.spec.pipeline
    assert pipeline is not None
    following = policy.decide(
        found,
        task.signatures[found.signature]["count"] - 1,
        pipeline.retry_budget,
        paid_left=budget.paid_left(task.paid_calls, task.paid_limit),
        on_limit=task.spec.limits.on_limit,
    )
    reason = f"{decision.reason} ({following.reason})"
    is_timeout = found.failure_class == triage.FailureClass.TIMEOUT
    match following.then:
        case Follow.RETRY | Follow.RETRY_WITH_DIGEST:
            status = Status.TIMEOUT if is_timeout else decision.status
            if status not in (Status.CRASHED, Status.HUNG, Status.TIMEOUT):
                status = Status.CRASHED
            return decision.evolve(
                then=Then.RETRY,
                status=status,
                reason=reason,
                pause_s=following.pause_s,
                fresh_session=decision.fresh_session or following.then is Follow.RETRY_WITH_DIGEST,
            )
        case Follow.WAIT:
            return decision
        case Follow.ASK:
            return decision.evolve(then=Then.INTERRUPT, status=Status.INTERRUPTED, reason=reason)
        case Follow.STOP:
            return decision.evolve(
                then=Then.END, status=Status.TIMEOUT if is_timeout else Status.FAILED, reason=reason
            )
