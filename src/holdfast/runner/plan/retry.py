"""Plan the next attempt after a failure: count it, pause, or give up. Pure."""

from __future__ import annotations

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.decision import Decision
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.runner.plan import policy
from holdfast.runner.plan.facts import Now
from holdfast.runner.plan.moves import move, moved
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
    passing = (moved(task, decision.status, decision.reason),) if passes_through else ()
    old = decision.status if passes_through else task.status
    limits = task.spec.limits
    if not passes_through and _is_counted(task):
        return (
            _onward(task, old, now, delay_s=task.planned_delay_s, reason=decision.reason),
        )  # the rest of a torn record
    if decision.burns and not policy.has_retry_left(task.total_retries, limits):
        end = Status.FAILED if outcome == "spawn_failed" else Status.ABANDONED
        reason = f"{_used_up(limits.max_retries)}; the last failure: {decision.reason}"
        return (*passing, moved(task, end, reason, old=old))
    left_s = None if task.deadline_s is None else task.deadline_s - task.active_s
    if left_s is not None and left_s <= 0:
        reason = f"its deadline is over; the last failure: {decision.reason}"
        return (*passing, moved(task, Status.ABANDONED, reason, old=old))
    burned = 1 if decision.burns else 0
    consecutive, total = task.consecutive + burned, task.total_retries + burned
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
    fresh = [
        planned.evolve(stage=other.stage, burned=False, fresh_session=True)
        for other, its in others
        if its.fresh_session
    ]
    return (*passing, *fresh, planned, _onward(task, old, now, delay_s=delay_s, reason=decision.reason))


def plan_rest(task: Task, now: Now) -> Step:
    """The record of a retry was torn after its first event, or a timeout ends the task."""
    if _is_counted(task):
        return Journal(
            events=(_onward(task, task.status, now, delay_s=task.planned_delay_s, reason=task.reason),)
        )
    if task.status is Status.TIMEOUT:
        return move(task, Status.ABANDONED, task.reason)
    delay_s = policy.backoff_s(task.consecutive + 1, task.spec.limits, None, at_once=False)
    planned = ev.RetryPlanned(
        stage=task.stage or "",
        consecutive=task.consecutive + 1,
        total=task.total_retries + 1,
        delay_s=delay_s,
    )
    return Journal(events=(planned, _onward(task, task.status, now, delay_s=delay_s, reason=task.reason)))


def fresh_sessions(task: Task, others: Sequence[tuple[Attempt, Decision]]) -> tuple[ev.Event, ...]:
    """Note which sessions of parallel stages cannot continue; no retry is burned."""
    return tuple(
        ev.RetryPlanned(
            stage=other.stage,
            consecutive=task.consecutive,
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
    return task.attempt is not None and task.planned_for == task.attempt.number


def _onward(task: Task, old: Status, now: Now, *, delay_s: float, reason: str) -> ev.TaskMoved:
    if delay_s <= 0 or old is Status.TIMEOUT:
        return moved(task, Status.SPAWNING, f"resume after {reason}", old=old)
    wake_at = clock.iso(now.wall + delay_s)
    return moved(task, Status.WAITING, f"backoff after {reason}", old=old, wake_at=wake_at)


def _used_up(retries: int) -> str:
    if retries == 0:
        return "no retries are allowed"
    return "its one retry is used up" if retries == 1 else f"all {retries} retries are used up"
