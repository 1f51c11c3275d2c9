"""The fold of a journal: what each event changes in its task.

`apply` is used live and in replay, so what a runner thinks and what its successor reads can never differ.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.outcome import CANNOT_SERVE, MUST_WAIT
from holdfast.model.spec import TaskSpec
from holdfast.model.stage_state import StageState
from holdfast.model.status import ENDS, Status
from holdfast.model.task import Task
from holdfast.model.usage import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: A runner that died sooner than this counts towards the limit of CRASH_LIMIT.
QUICK_DEATH_S = 60.0
#: Quick deaths in a row, without progress of the task, after which it is parked for a person.
CRASH_LIMIT = 5


def apply(task: Task, event: ev.Event, at: str) -> None:
    """Take in one event. Total: an event that means nothing here changes nothing."""
    handler = _HANDLERS.get(event.type)
    if handler is None:
        return
    try:
        handler(task, event, at)
    except (ValueError, TypeError, OverflowError):
        # An agent's word may be of any type and size. It is in the journal by now, and must not stop who reads it.
        if not isinstance(event, ev.AgentEvent):
            raise


def _created(task: Task, event: ev.TaskCreated, at: str) -> None:
    task.spec = TaskSpec.from_json(event.spec)
    task.status = Status(event.status)
    task.created_at = task.moved_at = at
    task.deadline_s = task.spec.limits.deadline_s


def _moved(task: Task, event: ev.TaskMoved, at: str) -> None:
    if task.status is Status.INTERRUPTED and event.new in (Status.SPAWNING, Status.QUEUED):
        _go_on(task)
    if task.status is Status.QUEUED and event.new == Status.SPAWNING:
        task.begun_at = task.begun_at or at
    task.status = Status(event.new)
    task.moved_at = at
    task.approval = event.approval
    for attempt in task.current if task.status is not Status.RUNNING else ():
        attempt.is_settled = not attempt.is_open
        if task.status is Status.COMPLETING and attempt.has_succeeded:
            task.stage_state(attempt.stage).accepted = attempt.number
    task.reason = event.reason
    task.wake_at = event.wake_at
    task.interrupt = event.interrupt
    task.is_marked = event.marked
    task.interrupted_at = at if task.status is Status.INTERRUPTED else None
    task.iteration = event.iteration or task.iteration
    if event.answer is not None:
        task.answer = event.answer
    if event.request is not None:
        task.requests.setdefault(event.request, None)
    task.finished_at = at if task.status in ENDS else None


def _go_on(task: Task) -> None:
    """A person lets it go on: what stood in the way is taken for mended, and a budget that was reached is there once more,
    however far it was passed."""
    if task.approval is None:
        task.grants += task.has_no_call_left
        if task.is_used_up:
            task.usage_before_run, task.turns_before_run = task.usage, task.turns
    task.voids_in_a_row = 0
    for stage_state in task.stage_states.values():
        stage_state.unavailable = {
            agent: until for agent, until in stage_state.unavailable.items() if until is not None
        }


def _run_opened(task: Task, event: ev.RunOpened, at: str) -> None:
    task.run = event.run
    task.status = Status.QUEUED if event.is_queued else Status.SPAWNING
    task.moved_at = at
    task.reason = "retry"
    task.finished_at = None
    task.consecutive = task.total_retries = 0
    task.waits = task.voids_in_a_row = 0
    task.signatures = {}
    task.last_failure = None
    _go_on(task)
    for attempt in task.current:
        attempt.triage = None
    task.paid_calls = task.grants = 0
    task.usage_before_run, task.turns_before_run = task.usage, task.turns
    task.active_s = 0.0
    task.answer = event.answer
    task.requests.setdefault(event.request, None)
    if event.sets_deadline:
        task.deadline_s = event.deadline_s
    if event.from_stage is not None:
        names = [stage.name for stage in task.spec.stages]
        for name in names[names.index(event.from_stage) :] if event.from_stage in names else ():
            was_done = task.stages_done.pop(name, None) is not None
            if name in task.stage_states:
                # What a stage of a pipeline is told depends on the stages before it, which may say something else now.
                task.stage_states[name].begin_again(afresh=task.spec.pipeline is not None, was_done=was_done)


def _stage_done(task: Task, event: ev.StageDone, at: str) -> None:
    task.stages_done[event.stage] = event.attempt
    task.consecutive = 0


def _handed_off(task: Task, event: ev.HandoffMade, at: str) -> None:
    task.script = event.script


def _runner_started(task: Task, event: ev.RunnerStarted, at: str) -> None:
    if task.runner is not None:
        lived_s = clock.parse_iso(at) - clock.parse_iso(task.runner_started_at)
        # Only quick deaths look like a runner that cannot live; one a day is a machine that reboots.
        task.runner_crashes = task.runner_crashes + 1 if lived_s < QUICK_DEATH_S else 0
    task.runner = event
    task.runner_started_at = at


def _runner_left(task: Task, event: ev.RunnerLeft, at: str) -> None:
    task.runner = None
    task.runner_crashes = 0


def _applied(task: Task, event: ev.RequestApplied | ev.RequestRefused, at: str) -> None:
    task.requests[event.request] = event


def _opened(task: Task, event: ev.AttemptOpened, at: str) -> None:
    attempt = Attempt(event)
    task.attempts = max(task.attempts, event.attempt)
    if event.kind != "agent":
        task.chores += 1
        task.chore = attempt
        return
    if all(other.is_settled for other in task.current):
        task.current = []
    task.current = [other for other in task.current if other.stage != event.stage] + [attempt]
    stage_state = task.stage_states.setdefault(event.stage, StageState(event.stage, event.agent))
    stage_state.attempt = attempt
    stage_state.needs_fresh_session = False
    # A session that begins anew has the program's own id, which is not known before it speaks; not that of the old one.
    goes_on = stage_state.agent == event.agent and event.mode not in ("fresh", "briefing")
    stage_state.session_id = event.session_id or (stage_state.session_id if goes_on else None)
    if not goes_on:
        task.progress = None  # the list was the old session's
    stage_state.agent = event.agent
    task.paid_calls += event.agent != "command"


def _started(task: Task, event: ev.AttemptStarted, at: str) -> None:
    attempt = task.find(event.attempt)
    if attempt is not None:
        attempt.started = event
    task.voids_in_a_row = 0
    task.runner_crashes = 0


def _void(task: Task, event: ev.AttemptVoid, at: str) -> None:
    attempt = task.find(event.attempt)
    if attempt is None:
        return
    if attempt is task.chore:
        task.chore = None
    else:
        task.current.remove(attempt)
        task.stage_state(attempt.stage).attempt = None
        task.paid_calls -= attempt.agent != "command"
    task.voids_in_a_row += 1


def _ended(task: Task, event: ev.AttemptEnded, at: str) -> None:
    attempt = task.find(event.attempt)
    if attempt is None or not attempt.is_open:
        return
    if attempt is not task.chore:
        _agent_ended(task, attempt, event)
    attempt.ended = event
    task.active_s += task.fresh_s(attempt, event.lived_s)
    if attempt.started is not None:
        until = clock.parse_iso(attempt.started.started_at) + event.lived_s
        task.counted_until = max(task.counted_until, until)
    task.voids_in_a_row = 0
    task.runner_crashes = 0


def _agent_ended(task: Task, attempt: Attempt, event: ev.AttemptEnded) -> None:
    stage_state = task.stage_state(attempt.stage)
    task.usage = task.usage.plus(task.used_by(attempt))
    if attempt.usage_is_of_session and attempt.session_id is not None:
        task.session_usage[attempt.session_id] = attempt.usage
    task.waits = task.waits + 1 if event.outcome in MUST_WAIT else 0
    stage_state.overflows += event.outcome == "context_too_long"
    if event.outcome in MUST_WAIT:
        heard = clock.parse_iso(event.noticed_at) if event.noticed_at else 0.0
        until = clock.parse_iso(event.resets_at) if event.resets_at else 0.0
        # A time that has passed is no announcement.
        stage_state.unavailable[attempt.agent] = clock.iso(
            until if until > heard else heard + _growing_s(task.waits)
        )
    elif event.outcome in CANNOT_SERVE:
        stage_state.unavailable[attempt.agent] = None
    else:
        stage_state.unavailable.pop(attempt.agent, None)
    if event.exec_errno is None:
        stage_state.ran = attempt
        stage_state.times_ran += 1
        task.answer = None
    if event.was_healthy:
        task.consecutive = 0


def _growing_s(waits: int) -> float:
    """How long an agent that did not say when is taken for unavailable: 1, 2, 4 … minutes, an hour at most."""
    return min(60.0 * 2.0 ** min(max(waits, 1) - 1, 10), 3600.0)


def _swept(task: Task, event: ev.AttemptSwept, at: str) -> None:
    attempt = task.find(event.attempt)
    if attempt is not None:
        attempt.swept = event


def _stop_intended(task: Task, event: ev.StopIntended, at: str) -> None:
    attempt = task.find(event.attempt)
    if attempt is not None:
        attempt.intent = event
        attempt.intended_at = attempt.intended_at or at
    if event.request is not None:
        task.requests.setdefault(event.request, None)


def _retry_planned(task: Task, event: ev.RetryPlanned, at: str) -> None:
    task.consecutive = event.consecutive
    task.total_retries = event.total
    task.planned_delay_s = event.delay_s
    if event.stage:
        task.stage_state(event.stage).needs_fresh_session = event.fresh_session
    task.voids_in_a_row = 0
    task.planned_for = task.attempt.number if task.attempt else task.attempts


def _prepared(task: Task, event: ev.WorkspacePrepared, at: str) -> None:
    stage_state = task.stage_state(event.stage)
    stage_state.workspace = event
    stage_state.chores_in_vain = 0
    task.chore = None


def _pre_work_checked(task: Task, event: ev.PreWorkChecked, at: str) -> None:
    stage_state = task.stage_state(event.stage)
    stage_state.pre_work = event
    stage_state.chores_in_vain = 0
    task.chore = None


def _gate_judged(task: Task, event: ev.GateJudged, at: str) -> None:
    stage_state = task.stage_state(event.stage)
    stage_state.gate = event
    is_reader = not any(stage.name == event.stage and stage.writes for stage in task.spec.stages)
    if is_reader and not event.passed and event.failed != "scope":
        # What the gate's own commands left behind is not blamed on the next attempt.
        stage_state.workspace = None
    stage_state.chores_in_vain = 0
    task.chore = None


def _chore_failed(task: Task, event: ev.ChoreFailed, at: str) -> None:
    task.stage_state(event.stage).chores_in_vain += event.counts
    task.chore = None


def _triaged(task: Task, event: ev.FailureTriaged, at: str) -> None:
    task.last_failure = event
    attempt = task.find(event.attempt)
    if attempt is not None:
        attempt.triage = event
    if event.failure_class == "prompt_too_large" and event.outcome != "context_too_long":
        # Known by its words on stderr alone; the next prompt is smaller all the same.
        task.stage_state(event.stage).overflows += 1
    seen = task.signatures.setdefault(event.signature, {"count": 0, "first_seen": at})
    seen.update(count=seen["count"] + 1, last_seen=at, **{"class": event.failure_class})


def _approved(task: Task, event: ev.ApprovalGiven, at: str) -> None:
    task.stage_state(event.stage).is_approved = True
    task.requests.setdefault(event.request, None)


def _switched(task: Task, event: ev.AgentSwitched, at: str) -> None:
    stage_state = task.stage_state(event.stage)
    stage_state.agent = event.new
    stage_state.session_id = None


def _leftovers(task: Task, event: ev.LeftoversFound, at: str) -> None:
    attempt = task.find(event.attempt)
    if attempt is not None:
        attempt.leftovers = event


def _agent(task: Task, event: ev.AgentEvent, at: str) -> None:
    attempt = task.find(event.attempt)
    if attempt is None or attempt is task.chore:
        return
    offset, count = attempt.reached.get(event.stream, (0, 0))
    if event.offset > offset:
        attempt.reached[event.stream] = (event.offset, 1)
    else:
        attempt.reached[event.stream] = (offset, count + 1 if event.offset == offset else 1)
    attempt.retry_at = None
    task.runner_crashes = 0
    # By its class, not by a row of questions: there may be hundreds of thousands in a second.
    heard = _HEARD.get(type(event))
    if heard is not None:
        heard(task, attempt, event, at)


def _session(task: Task, attempt: Attempt, event: ev.AgentSession, at: str) -> None:
    attempt.session_id = event.session_id
    task.stage_state(attempt.stage).session_id = event.session_id


def _text(task: Task, attempt: Attempt, event: ev.AgentText, at: str) -> None:
    attempt.messages += 1
    task.messages += 1
    attempt.earlier_text, attempt.last_text = attempt.last_text, event.text


def _tool_started(task: Task, attempt: Attempt, event: ev.AgentToolStarted, at: str) -> None:
    attempt.tools_started += 1
    attempt.is_limited = False
    task.tool_calls += 1
    attempt.open_tools[event.tool_id] = event


def _tool_finished(task: Task, attempt: Attempt, event: ev.AgentToolFinished, at: str) -> None:
    attempt.tools_finished += 1
    attempt.is_limited = False
    attempt.tool_failed = attempt.tool_failed or event.is_error
    attempt.tool_denied = attempt.tool_denied or event.denied
    attempt.open_tools.pop(event.tool_id, None)


def _used(task: Task, attempt: Attempt, event: ev.AgentUsage, at: str) -> None:
    base = Usage() if event.cumulative else attempt.usage
    attempt.usage = base.plus(event)
    attempt.usage_is_of_session = event.of_session


def _retry(task: Task, attempt: Attempt, event: ev.AgentRetry, at: str) -> None:
    attempt.retry = event
    attempt.retries_seen += 1
    attempt.is_limited = attempt.is_limited or "429" in event.reason
    attempt.retry_at = clock.iso(clock.parse_iso(at) + (event.delay_s or 0.0))


def _rate_limit(task: Task, attempt: Attempt, event: ev.AgentRateLimit, at: str) -> None:
    # Some tell it more than once, and not every time until when.
    if event.resets_at is not None or attempt.rate_limit is None:
        attempt.rate_limit = event
    attempt.is_limited = True


def _progress(task: Task, attempt: Attempt, event: ev.AgentProgress, at: str) -> None:
    # A list without steps was cleared.
    task.progress = event if event.steps_total > 0 else None
    task.progress_at = at


def _error(task: Task, attempt: Attempt, event: ev.AgentError, at: str) -> None:
    attempt.error = event


def _result(task: Task, attempt: Attempt, event: ev.AgentResult, at: str) -> None:
    attempt.result = event


_HEARD: dict[type[ev.AgentEvent], Any] = {
    ev.AgentSession: _session,
    ev.AgentText: _text,
    ev.AgentToolStarted: _tool_started,
    ev.AgentToolFinished: _tool_finished,
    ev.AgentUsage: _used,
    ev.AgentRetry: _retry,
    ev.AgentRateLimit: _rate_limit,
    ev.AgentProgress: _progress,
    ev.AgentError: _error,
    ev.AgentResult: _result,
}
_HANDLERS: dict[str, Any] = {
    ev.TaskCreated.type: _created,
    ev.TaskMoved.type: _moved,
    ev.RunOpened.type: _run_opened,
    ev.StageDone.type: _stage_done,
    ev.HandoffMade.type: _handed_off,
    ev.WorkspacePrepared.type: _prepared,
    ev.GateJudged.type: _gate_judged,
    ev.PreWorkChecked.type: _pre_work_checked,
    ev.FailureTriaged.type: _triaged,
    ev.ChoreFailed.type: _chore_failed,
    ev.ApprovalGiven.type: _approved,
    ev.AgentSwitched.type: _switched,
    ev.RunnerStarted.type: _runner_started,
    ev.RunnerLeft.type: _runner_left,
    ev.RequestApplied.type: _applied,
    ev.RequestRefused.type: _applied,
    ev.AttemptOpened.type: _opened,
    ev.AttemptStarted.type: _started,
    ev.AttemptVoid.type: _void,
    ev.AttemptEnded.type: _ended,
    ev.AttemptSwept.type: _swept,
    ev.StopIntended.type: _stop_intended,
    ev.RetryPlanned.type: _retry_planned,
    ev.LeftoversFound.type: _leftovers,
    **{cls.type: _agent for cls in ev.EVENTS.values() if issubclass(cls, ev.AgentEvent)},
}
