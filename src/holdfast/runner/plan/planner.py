"""The planner: from the task and the facts to the next step.

`plan` is pure. It is called again after every step. Between two calls, decisions depend only on the journal
and the files, so the successor of a killed runner takes the same next step.
"""

from __future__ import annotations

from holdfast.model.fold import CRASH_LIMIT
from holdfast.model.status import LONG_WAIT_S, PARKED, Cause, Status
from holdfast.model.task import Task
from holdfast.runner.plan import start
from holdfast.runner.plan.facts import Facts, Now
from holdfast.runner.plan.moves import ask, move, plan_interrupt
from holdfast.runner.plan.step import EndTakeover, EndTask, IntendStop, Leave, Report, Step, Watch

#: Wall time can jump: never sleep longer than this on one reading of it.
_LONGEST_SLEEP_S = 60.0


def plan(task: Task, facts: Facts, now: Now) -> Step:
    """The next step."""
    # Loaded late: without a seed, a cold runner loads them while its agent starts.
    if facts.request is not None:
        from holdfast.runner.plan import requests

        return requests.plan_answer(task, facts, facts.request)
    if facts.remembered.interrupting is not None:
        return plan_interrupt(task, facts.remembered.interrupting)
    parked = _plan_park(task, facts)
    if parked is not None:
        return parked
    if task.open_executions:
        from holdfast.runner.plan import running

        return running.plan_open(task, facts, now)
    if task.chore is not None:
        from holdfast.runner.plan import chores

        return chores.plan_ended(task, facts, task.chore, now)
    if task.has_undecided:
        from holdfast.runner.plan import ended

        return ended.plan_ended(task, facts, now)
    return _plan_by_status(task, facts, now)


def _plan_by_status(task: Task, facts: Facts, now: Now) -> Step:
    match task.status:
        case Status.SPAWNING | Status.RUNNING:
            return start.plan_start(task, facts, now)
        case Status.WAITING:
            return _plan_wait(task, facts)
        case Status.CRASHED | Status.HUNG | Status.TIMEOUT:
            from holdfast.runner.plan import retry

            return retry.finish_retry(task, now)
        case Status.COMPLETING:
            from holdfast.runner.plan import gate

            return gate.plan_completing(task, facts, now)
        case Status.QUEUED:
            return Leave(reason=str(task.status))
        case Status.INTERRUPTED:
            if task.open_takeover is not None and not facts.is_taken_over:
                return EndTakeover(number=task.open_takeover.attempt)
            return Leave(reason=str(task.status)) if facts.remembered.is_reported else Report()
        case Status.COMPLETED | Status.FAILED | Status.ABANDONED | Status.KILLED:
            return Leave(reason=str(task.status)) if facts.is_closed else EndTask()


def _plan_wait(task: Task, facts: Facts) -> Step:
    left_s = facts.wait_left_s
    if left_s > 0:
        if facts.interrupt_file is not None:
            return ask(task, facts, facts.interrupt_file)
        return Watch(wait_s=min(left_s, task.spec.limits.base_interval_s, _LONGEST_SLEEP_S))
    # A long wait gave its slot away: the task queues for one again, ahead of those that have not started.
    is_queued = task.spec.queue is not None and facts.wait_s >= LONG_WAIT_S
    return move(task, Status.QUEUED if is_queued else Status.SPAWNING, "the wait is over")


def _plan_park(task: Task, facts: Facts) -> Step | None:
    """Leave the task to a person: its output cannot be redacted, another program wrote its journal, changed
    its environment or made its packet, its project is another one, or its runners keep dying."""
    distrust = task.distrust or facts.not_admitted or _of_other_project(task, facts)
    if facts.problem is None and not distrust and task.runner_crashes < CRASH_LIMIT:
        return None
    if task.has_ended or task.status in PARKED:
        return None
    if task.status is Status.COMPLETING and task.is_past_work and not distrust:
        return None  # only its last files are left to write
    reason = (
        facts.problem
        or distrust
        or f"{task.runner_crashes} runners in a row died on this task without progress"
    )
    cause = Cause.DISTRUST if task.distrust and facts.problem is None else ""
    if not task.stoppable:
        return ask(task, facts, reason, cause=cause)
    # Through the stop and the sweep, so that a resume finds nothing of the old attempts alive.
    numbers = tuple(
        execution.number for execution in task.stoppable if execution.intent_name not in ("stop", "interrupt")
    )
    return IntendStop(numbers=numbers, intent="interrupt", reason=reason, cause=cause) if numbers else None


def _of_other_project(task: Task, facts: Facts) -> str:
    """A resume alone does not accept the other project: an agent can write that request."""
    if not facts.project_moved_to:
        return ""
    spec = task.spec
    return (
        f"the project {spec.project_dir} was {spec.project_real} when the task was created, and is "
        f"{facts.project_moved_to} now: put it back and resume, or go on there with "
        f"'holdfast resume --adopt {spec.task_id}'"
    )
