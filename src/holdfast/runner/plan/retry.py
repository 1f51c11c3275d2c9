"""Plan the next attempt after a failure: count it, pause, or give up. Pure."""

from __future__ import annotations

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.decision import Decision
from holdfast.model.status import Cause, Status
from holdfast.model.task import Task
from holdfast.runner.plan import policy
from holdfast.runner.plan.facts import Now
from holdfast.runner.plan.moves import move, moved_event
from holdfast.runner.plan.step import Journal, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def retry_events(
    task: Task,
    decision: Decision,
    now: Now,
    *,
    outcome: str,
    stage: str,
    others: Sequence[tuple[Attempt, Decision]] = (),
) -> tuple[ev.Event, ...]:
    """One record that counts the failure and plans the next attempt: crashed → spawning, waiting, end."""
    # From `completing` the next attempt follows directly.
    passes_through = task.status is not Status.COMPLETING
    if not passes_through and _is_counted(task):  # the rest of a torn record
        return (_next_move(task, task.status, now, delay_s=task.planned_delay_s, reason=decision.reason),)
    passing = (moved_event(task, decision.status, decision.reason),) if passes_through else ()
    old = decision.status if passes_through else task.status
    planned = _planned(task, decision, now, old=old, outcome=outcome, stage=stage)
    return (*passing, *fresh_sessions(task, others), *planned)


def _planned(
    task: Task, decision: Decision, now: Now, *, old: Status, outcome: str, stage: str
) -> tuple[ev.Event, ...]:
    """Count the failure and plan the next attempt, or end the task if it may not be retried."""
    limits = task.spec.limits
    if decision.burns and not policy.has_retry_left(task.total_retries, limits):
        end = Status.FAILED if outcome == "spawn_failed" else Status.ABANDONED
        reason = f"{_used_up(limits.max_retries)}; the last failure: {decision.reason}"
        return (moved_event(task, end, reason, cause=Cause.FAILURE, old=old),)
    left_s = None if task.deadline_s is None else task.deadline_s - task.active_s
    if left_s is not None and left_s <= 0:
        reason = f"its deadline is over; the last failure: {decision.reason}"
        return (moved_event(task, Status.ABANDONED, reason, cause=Cause.FAILURE, old=old),)
    burned = 1 if decision.burns else 0
    consecutive, total = task.failures_in_a_row + burned, task.total_retries + burned
    delay_s = policy.backoff_s(consecutive, limits, left_s, at_once=outcome != "spawn_failed")
    delay_s = max(delay_s, min(decision.pause_s, limits.base_interval_s))
    planned = ev.RetryPlanned(
        stage=stage,
        consecutive=consecutive,
        total=total,
        delay_s=delay_s,
        burned=decision.burns,
        fresh_session=decision.fresh_session,
    )
    return (planned, _next_move(task, old, now, delay_s=delay_s, reason=decision.reason))


def finish_retry(task: Task, now: Now) -> Step:
    """Finish a retry whose record was torn after its first event. A timeout ends the task."""
    if _is_counted(task):
        return Journal(
            events=(_next_move(task, task.status, now, delay_s=task.planned_delay_s, reason=task.reason),)
        )
    if task.status is Status.TIMEOUT:
        return move(task, Status.ABANDONED, task.reason, cause=Cause.FAILURE)
    attempt = task.attempt
    outcome = attempt.ended.outcome if attempt is not None and attempt.ended is not None else "spawn_failed"
    intent = attempt.intent_name if attempt is not None else None
    stage = attempt.stage if attempt is not None else task.stage or ""
    lost = task.stage_state(attempt.stage).lost_in_a_row if attempt is not None else 0
    decision = policy.after_attempt(outcome, intent=intent, lost_in_a_row=lost).evolve(reason=task.reason)
    return Journal(events=_planned(task, decision, now, old=task.status, outcome=outcome, stage=stage))


def fresh_sessions(task: Task, others: Sequence[tuple[Attempt, Decision]]) -> tuple[ev.Event, ...]:
    """Note which sessions of parallel stages cannot continue; no retry is burned."""
    return tuple(
        ev.RetryPlanned(
            stage=other.stage,
            consecutive=task.failures_in_a_row,
            total=task.total_retries,
            delay_s=0.0,
            burned=False,
            fresh_session=True,
        )
        for other, its in others
        if its.fresh_session
    )


def _is_counted(task: Task) -> bool:
    """Whether the retry after the last attempt's failure is in the journal."""
    return task.planned_for == (task.attempt.number if task.attempt is not None else task.last_number)


def _next_move(task: Task, old: Status, now: Now, *, delay_s: float, reason: str) -> ev.TaskMoved:
    if delay_s <= 0 or old is Status.TIMEOUT:
        return moved_event(task, Status.SPAWNING, f"resume after {reason}", old=old)
    wake_at = clock.iso(now.wall + delay_s)
    return moved_event(task, Status.WAITING, f"backoff after {reason}", old=old, wake_at=wake_at)


def _used_up(retries: int) -> str:
    if retries == 0:
        return "no retries are allowed"
    return "its one retry is used up" if retries == 1 else f"all {retries} retries are used up"
