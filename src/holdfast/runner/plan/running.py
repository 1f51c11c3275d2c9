"""While executions are open: start, read, judge, stop and end them. Pure.

Every rule is asked for every open execution before the next rule, so that none waits for another: a signal
that is due goes out before output is read. Reading comes last, because a flood of output does not end;
no agent is judged while output is unread (`Observer`).
"""

from __future__ import annotations

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.attempt_table import Reading
from holdfast.model.decision import Then
from holdfast.model.execution import Execution
from holdfast.model.task import Task
from holdfast.runner.plan import limits, policy
from holdfast.runner.plan.facts import ExecutionFacts, Facts, Judgement, Now
from holdfast.runner.plan.moves import ask, move
from holdfast.runner.plan.step import (
    Heartbeat,
    IntendStop,
    Journal,
    LockSession,
    ReadOutput,
    RecordEnd,
    RecordStart,
    RecordVerdict,
    Signal,
    Step,
    WakeRecorder,
    Watch,
)
from holdfast.watch.verdict import Kind

#: An agent that waits at a limit of the service for longer than this is stopped, once it was silent for a
#: moment.
_LIMIT_AHEAD_S, _LIMIT_SILENCE_S = 120.0, 10.0


def plan_open(task: Task, facts: Facts, now: Now) -> Step:
    """The next step while executions are open."""
    failure = facts.remembered.start_failure
    if failure is not None and failure.kind != "process":
        # One of a parallel group cannot start: stop those that have started, and ask.
        unstopped = _without_intent(task)
        if unstopped:
            reason = (
                failure.reason
                if failure.kind == "session"
                else f"{failure.stage} cannot start: {failure.reason}"
            )
            return IntendStop(numbers=unstopped, intent="interrupt", reason=reason)
    watched = [(execution, facts.executions[execution.number]) for execution in task.open_executions]
    for rule in (_signal, _start, _end):
        for execution, seen in watched:
            step = rule(task, execution, seen, facts)
            if step is not None:
                return step
    for execution, seen in watched:
        if seen.needs_session_lock:
            return LockSession(number=execution.number)
        if _is_alive(seen) and seen.judgement is not None and execution.intent is None:
            step = _judge(task, execution, seen.judgement, now)
            if step is not None:
                return step
    unstopped = _without_intent(task) if facts.interrupt_file is not None else ()
    if facts.interrupt_file is not None and unstopped:
        return IntendStop(numbers=unstopped, intent="interrupt", reason=facts.interrupt_file)
    if facts.heartbeat_in_s <= 0:
        return Heartbeat()
    due = tuple(execution.number for execution, seen in watched if _is_alive(seen) and seen.read_in_s <= 0)
    if due:
        return ReadOutput(numbers=due)
    return Watch(wait_s=min(facts.heartbeat_in_s, *(_wait_s(task, *pair, now) for pair in watched)))


def _without_intent(task: Task) -> tuple[int, ...]:
    return tuple(execution.number for execution in task.open_executions if execution.intent is None)


def _is_alive(seen: ExecutionFacts) -> bool:
    """Whether its process is watched, and was not seen to be gone."""
    return seen.is_watched and not seen.has_ended and seen.awaited_s is None


# ── rules ──


def _signal(task: Task, execution: Execution, seen: ExecutionFacts, facts: Facts) -> Step | None:
    is_due = _is_alive(seen) and seen.signal_in_s is not None and seen.signal_in_s <= 0
    return Signal(number=execution.number) if is_due else None


def _start(task: Task, execution: Execution, seen: ExecutionFacts, facts: Facts) -> Step | None:
    """Before its process is watched."""
    if seen.is_watched:
        return None
    match seen.reading:
        case Reading.NEVER_STARTED:
            return _void(task, execution, facts)
        case Reading.SPAWN_FAILED if seen.exit is not None and seen.exit.exec_errno is None:
            # Killed before it became the agent: nothing ran, and nothing failed.
            return _void(task, execution, facts)
        case Reading.RUNNING | Reading.ORPHANED | Reading.EXITED:
            return RecordStart(number=execution.number)
        case _:
            return None


def _end(task: Task, execution: Execution, seen: ExecutionFacts, facts: Facts) -> Step | None:
    if seen.has_ended:
        number = execution.number
        # A log can be gigabytes, and a request must not wait for its last line.
        return (
            ReadOutput(numbers=(number,), final=True) if seen.has_unread_output else RecordEnd(number=number)
        )
    return WakeRecorder(number=execution.number) if seen.is_overdue else None


def _void(task: Task, execution: Execution, facts: Facts) -> Step:
    """Its recorder died before the process existed. What was intended for it still holds."""
    reason = "its recorder died before the agent existed"
    void = ev.AttemptVoid(attempt=execution.number, reason=reason)
    intent = execution.intent
    if intent is None:
        return Journal(events=(void,))
    others = [other for other in task.current if other is not execution and not other.is_decided]
    if others:
        passed_on = (intent.evolve(attempt=other.number) for other in others if other.intent is None)
        return Journal(events=(void, *passed_on))
    decision = policy.after_attempt(
        "void", intent=intent.intent, intent_reason=intent.reason, cause=intent.cause
    )
    if decision.then is Then.ASK:
        return ask(task, facts, decision.reason, cause=decision.cause, before=(void,))
    return move(task, decision.status, decision.reason, before=(void,))


def _judge(task: Task, execution: Execution, judgement: Judgement, now: Now) -> Step | None:
    """Is there a reason to stop it?"""
    number = execution.number
    reached = limits.reached(task, execution, lived_s=judgement.lived_s, output_bytes=judgement.output_bytes)
    if reached is not None:
        return IntendStop(numbers=(number,), intent=reached.intent, reason=reached.reason)
    if isinstance(execution, Attempt):
        if execution.mode == "resume" and execution.session_id != execution.asked_session_id:
            reason = f"asked for session {execution.asked_session_id}, got {execution.session_id}"
            return IntendStop(numbers=(number,), intent="session", reason=reason)
        if _waits_at_limit(execution, now) and judgement.silent_s >= _LIMIT_SILENCE_S:
            return IntendStop(numbers=(number,), intent="limit", reason="it waits for a rate limit")
    verdict = judgement.verdict
    if judgement.is_news:
        return RecordVerdict(number=number)
    if verdict.kind is Kind.HUNG and judgement.waits_for_input:
        reason = f"it waits for input: {judgement.last_line}"
        return IntendStop(numbers=(number,), intent="input", reason=reason)
    if verdict.kind is Kind.HUNG:
        return IntendStop(numbers=(number,), intent="hang", reason=verdict.because)
    if verdict.kind is Kind.LINGERING:
        return IntendStop(numbers=(number,), intent="linger", reason=verdict.because)
    return None


def _waits_at_limit(attempt: Attempt, now: Now) -> bool:
    """The limit is lifted at a known time far ahead: the task can wait without agent and slot."""
    limit = attempt.rate_limit
    if not attempt.is_limited or limit is None or limit.resets_at is None or attempt.result is not None:
        return False
    return clock.parse_iso(limit.resets_at) - now.wall > _LIMIT_AHEAD_S


# ── how long to sleep ──


def _wait_s(task: Task, execution: Execution, seen: ExecutionFacts, now: Now) -> float:
    if not _is_alive(seen):
        awaited_s = seen.awaited_s or 0.0
        return min(max(awaited_s / 4, 0.0005), 0.25)
    waits = [seen.read_in_s, seen.poll_in_s]
    if seen.signal_in_s is not None:
        waits.append(seen.signal_in_s)
    if execution.intent is None:
        waits.append(
            judge_again_s(task, execution, seen.judgement, now) if seen.judgement else seen.judge_in_s
        )
    return min(waits)


def judge_again_s(task: Task, execution: Execution, judgement: Judgement, now: Now) -> float:
    """Time until a limit may be reached or the verdict may change without any new output."""
    waits = [
        limits.left_s(task, execution, judgement.lived_s),
        max(0.0, judgement.verdict.look_again_mono - now.mono),
    ]
    if isinstance(execution, Attempt) and _waits_at_limit(execution, now):
        waits.append(max(0.0, _LIMIT_SILENCE_S - judgement.silent_s))
    return min(waits)
