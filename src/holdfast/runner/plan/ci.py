"""After the last stage: the checks of the task's pull request (`gate.ci`). Pure.

A chore pushes, opens the pull request and looks at its checks once. Between two looks the task waits, without
a process and without a slot.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.acceptance import CI
from holdfast.model.attempt import Attempt
from holdfast.model.decision import Decision, Then
from holdfast.model.status import Cause, Status
from holdfast.model.task import Task
from holdfast.runner.plan import policy
from holdfast.runner.plan.facts import Facts, Now
from holdfast.runner.plan.moves import ask, move, moved_event
from holdfast.runner.plan.start import open_chore, wait_for_process
from holdfast.runner.plan.step import Journal, Step

#: The time between two looks grows with the time waited, up to this.
_SHARE, _LONGEST_S = 0.3, 300.0
#: How long a pull request may have no check at all.
_NO_CHECK_S = 300.0
#: Looks in a row that failed, after which a person is asked.
_TRIES = 5
_NAMED = 5


def plan_ci(task: Task, facts: Facts, now: Now) -> Step:
    """The next step of a task whose checks have yet to pass."""
    looked, attempt = task.ci, _judged(task)
    if facts.interrupt_file is not None:
        return ask(task, facts, facts.interrupt_file)
    if attempt is None:
        return ask(task, facts, "no attempt is left to which the checks of its pull request belong")
    if looked is not None and looked.state == "failed":
        return Journal(events=(_refusal(looked, attempt),))
    if looked is None or looked.state != "pending" or task.ci_waited:
        stage = task.stage_spec(attempt.stage)
        assert stage is not None
        return wait_for_process(facts, now) or open_chore(task, stage, CI, facts, judged=attempt.number)
    return _wait(task, facts, looked, now)


def _judged(task: Task) -> Attempt | None:
    """The last attempt: what fails here is a failure of its stage."""
    return next((attempt for attempt in reversed(task.current) if attempt.stage in task.stages_done), None)


def _refusal(looked: ev.CiLooked, attempt: Attempt) -> ev.GateJudged:
    return ev.GateJudged(
        stage=attempt.stage,
        attempt=attempt.number,
        passed=False,
        failed=CI,
        reasons=looked.reasons,
        evidence=looked.evidence,
    )


def _wait(task: Task, facts: Facts, looked: ev.CiLooked, now: Now) -> Step:
    """Wait until the next look, unless the checks have taken too long."""
    pipeline = task.spec.pipeline
    assert pipeline is not None
    limit_s = pipeline.ci_timeout_s if looked.pending else min(pipeline.ci_timeout_s, _NO_CHECK_S)
    waited_s = max(0.0, now.wall - clock.parse_iso(task.ci_since))
    if waited_s >= limit_s:
        what = f"pending: {named(looked)}" if looked.pending else "not there"
        reason = f"after {clock.duration_text(limit_s)}, the checks of {looked.pull_request} are {what}"
        return _stop(task, facts, reason)
    pause_s = max(task.spec.limits.base_interval_s, min(waited_s * _SHARE, _LONGEST_S))
    wake_at = clock.iso(now.wall + min(pause_s, limit_s - waited_s))
    what = f"the checks of {looked.pull_request}: {named(looked) or 'none has begun'}"
    return Journal(events=(moved_event(task, Status.WAITING, f"waits for {what}", wake_at=wake_at),))


def plan_failure(task: Task, facts: Facts, complaint: str, now: Now, *, failed: ev.ChoreFailed) -> Step:
    """It could not push or look: there may be no network. It is tried again; then a person is asked."""
    times = task.stage_state(failed.stage).failed_chores_in_a_row + 1
    reason = f"the gate 'ci' could not push or look: {' '.join(complaint.split())}"
    if times >= _TRIES:
        return _stop(task, facts, reason, before=(failed,))
    pause_s = policy.backoff_s(times, task.spec.limits, None, at_once=False)
    moved = moved_event(task, Status.WAITING, reason, wake_at=clock.iso(now.wall + pause_s))
    return Journal(events=(failed, moved))


def _stop(task: Task, facts: Facts, reason: str, *, before: tuple[ev.Event, ...] = ()) -> Step:
    """Ask a person, or end if the task may not ask."""
    decision = Decision(then=Then.ASK, status=Status.INTERRUPTED, reason=reason, cause=Cause.FAILURE)
    decision = policy.without_asking(decision, "quality", task.spec.interrupt_off)
    if decision.then is not Then.ASK:
        return move(task, decision.status, decision.reason, cause=decision.cause, before=before)
    question = f"{reason}; 'holdfast resume {task.spec.task_id}' looks again"
    return ask(task, facts, question, cause=decision.cause, before=before)


def named(looked: ev.CiLooked) -> str:
    """The checks that are pending."""
    more = f" and {len(looked.pending) - _NAMED} more" if len(looked.pending) > _NAMED else ""
    return ", ".join(looked.pending[:_NAMED]) + more
