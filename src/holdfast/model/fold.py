"""Fold a journal into its task: what each event changes.

`apply` runs live and in replay, so a runner and its successor always see the same task.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.model import acceptance
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.execution import Chore
from holdfast.model.fold_agent import apply_agent_event
from holdfast.model.outcome import CANNOT_SERVE, MUST_WAIT, unannounced_wait_s
from holdfast.model.spec import TaskSpec
from holdfast.model.stage_state import StageState
from holdfast.model.state import Answer, Interrupted, State, closed_question, state_after
from holdfast.model.status import Cause, Status
from holdfast.model.task import Task
from holdfast.model.task_parts import Spending, Takeover

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: A runner that died sooner than this counts towards CRASH_LIMIT.
QUICK_DEATH_S = 60.0
#: Quick deaths in a row without progress after which the task is interrupted.
CRASH_LIMIT = 5


def apply(task: Task, event: ev.Event, at: str) -> None:
    """Apply one event. An event that changes nothing here is ignored."""
    fold = _FOLDS.get(event.type)
    if fold is None:
        return
    try:
        fold(task, event, at)
    except (ValueError, TypeError, OverflowError):
        # An agent may report values of any type and size. They are journalled and must not break the fold.
        if not isinstance(event, ev.AgentEvent):
            raise


def _created(task: Task, event: ev.TaskCreated, at: str) -> None:
    task.spec = TaskSpec.from_json(event.spec)
    task.state = State(status=Status(event.status))
    task.created_at = task.moved_at = at
    task.run_started_at = at if task.status is not Status.QUEUED else None
    task.deadline_s = task.spec.limits.deadline_s
    task.env_sha256 = event.env_sha256
    task.request_sha256 = event.request_sha256
    for stage in task.spec.stages:
        task.stage_state(stage.name)  # so that later questions about a stage change nothing


def _moved(task: Task, event: ev.TaskMoved, at: str) -> None:
    if task.interrupted is not None and event.new in (Status.SPAWNING, Status.QUEUED):
        answer = _answer(task, task.interrupted, event, at)
        task.answers.append(answer)
        task.new_answers.append(answer)
        _resumed(task, was_approval=task.interrupted.approval is not None)
        if event.answer is None:
            _judge_again(task)
    if task.interrupted is not None:
        task.asked_s += max(0.0, clock.parse_iso(at) - clock.parse_iso(task.interrupted.since))
    # The time in the queue before the run is not a part of it.
    elif task.status is Status.WAITING or (task.status is Status.QUEUED and task.run_started_at is not None):
        task.waited_s += max(0.0, clock.parse_iso(at) - clock.parse_iso(task.moved_at))
    if task.status is Status.QUEUED and event.new == Status.SPAWNING:
        task.begun_at = task.begun_at or at
        task.run_started_at = task.run_started_at or at
    if event.new in (Status.SPAWNING, Status.QUEUED):
        task.repairing = None
        if task.interrupted is not None:
            task.ci_since = ""  # a person looked, so its checks have their time again
    task.ci_waited = True
    if event.new == Status.INTERRUPTED and event.cause == Cause.DISTRUST:
        task.distrust = ""  # a person was asked
    task.interrupts += event.new == Status.INTERRUPTED
    task.state = state_after(event, at)
    task.reason, task.cause = event.reason, event.cause
    task.moved_at = at
    for attempt in task.current if task.status is not Status.RUNNING else ():
        attempt.is_decided = not attempt.is_open
        if task.status is Status.COMPLETING and attempt.has_succeeded:
            task.stage_state(attempt.stage).gate_attempt = attempt.number
    task.iteration = event.iteration or task.iteration
    if event.answer is not None:
        task.answer = event.answer
    if event.request is not None:
        task.requests.setdefault(event.request, None)


def _answer(task: Task, interrupted: Interrupted, event: ev.TaskMoved, at: str) -> Answer:
    return Answer(
        question=closed_question(interrupted.question),
        answer=event.answer or "",
        at=at,
        how=event.reason,
        asked_by=task.asked_by,
    )


def _resumed(task: Task, *, was_approval: bool = False) -> None:
    """A person resumed it: the cause of the stop counts as fixed, and a used-up budget is granted again in
    full. An approval grants nothing."""
    if not was_approval:
        task.grants += task.has_no_call_left
        if task.has_used_up_budget:
            task.spending.begin_run(task.turns)
    task.voids_in_a_row = 0
    for stage_state in task.stage_states.values():
        stage_state.lost_in_a_row = 0
        stage_state.unavailable = {
            agent: until for agent, until in stage_state.unavailable.items() if until is not None
        }


def _judge_again(task: Task) -> None:
    """What an acceptance command missed counts as installed: the gate judges the same work again."""
    for stage_state in task.stage_states.values():
        judged = stage_state.gate_result
        if judged is not None and judged.cannot_start:
            stage_state.gate = None


def _run_opened(task: Task, event: ev.RunOpened, at: str) -> None:
    task.run = event.run
    task.env_sha256 = event.env_sha256 or task.env_sha256
    task.state = State(status=Status.QUEUED if event.is_queued else Status.SPAWNING)
    task.moved_at = at
    task.reason, task.cause = "retry", ""
    task.failures_in_a_row = task.total_retries = 0
    task.limit_waits = task.voids_in_a_row = 0
    task.last_failure = None
    task.repairs = {}
    task.repair_log = []
    task.repairing = task.applied = None
    if event.from_stage is not None or (task.ci is not None and task.ci.state != "passed"):
        _forget_ci(task)
    for stage_state in task.stage_states.values():
        stage_state.leftovers = ()
    if event.amended:
        _amend(task, event)
    _resumed(task)
    for attempt in task.current:
        attempt.triage = None
    if event.resets:
        task.paid_calls = task.grants = 0
        task.signatures = {}
    task.paid_before_run = task.paid_calls
    task.spending.begin_retry(task.turns)
    task.active_s = task.asked_s = task.waited_s = 0.0
    task.run_started_at = None if event.is_queued else at
    task.answer = event.answer
    task.new_retry = event.answer or ""
    if event.answer is None:
        _judge_again(task)
    task.requests.setdefault(event.request, None)
    if event.sets_deadline:
        task.deadline_s = event.deadline_s
    task.permissions = event.permissions or task.permissions
    if event.from_stage is not None:
        for name in _from(task, event.from_stage):
            if task.chosen is not None and name == task.chosen.stage:
                task.chosen = None  # of stages before it, or by a judge that is called again
            task.eliminated.pop(name, None)
            was_done = task.stages_done.pop(name, None) is not None
            if name in task.stage_states:
                # The prompt of a pipeline stage depends on earlier stages, whose reports may change.
                task.stage_states[name].begin_again(afresh=task.spec.pipeline is not None, was_done=was_done)


def _amend(task: Task, event: ev.RunOpened) -> None:
    from holdfast.model import amendment  # most tasks are never amended

    task.spec = amendment.applied(task.spec, event.amended)
    task.amended += event.amended
    task.amended_in = event.run
    task.deadline_s = task.spec.limits.deadline_s if _sets_deadline(event) else task.deadline_s


def _sets_deadline(event: ev.RunOpened) -> bool:
    return any(change["field"] == "budgets.deadline_sec" for change in event.amended)


def _from(task: Task, stage: str) -> list[str]:
    """The stages from one on. Candidates begin together."""
    stages = task.spec.stages
    spec = task.stage_spec(stage)
    if spec is not None and spec.candidate:
        stage = next(each.name for each in stages if each.candidate)
    names = [each.name for each in stages]
    return names[names.index(stage) :] if stage in names else []


def _stage_done(task: Task, event: ev.StageDone, at: str) -> None:
    task.stages_done[event.stage] = event.attempt
    task.failures_in_a_row = 0
    _forget_ci(task)


def _forget_ci(task: Task) -> None:
    """There is other work than that whose checks were looked at."""
    task.ci, task.ci_since = None, ""


def _ci_looked(task: Task, event: ev.CiLooked, at: str) -> None:
    task.ci = event
    task.ci_since = task.ci_since or at
    task.ci_waited = False
    task.stage_state(event.stage).failed_chores_in_a_row = 0
    task.chore = None


def _work_applied(task: Task, event: ev.WorkApplied, at: str) -> None:
    task.applied = event
    task.requests.setdefault(event.request, None)


def _taken_over(task: Task, event: ev.TakeoverStarted, at: str) -> None:
    task.takeover = Takeover(event, at)
    task.takeover_count += 1
    task.last_number = max(task.last_number, event.attempt)
    # No program reports what a person uses in it; a later report on the whole session includes it.
    task.spending.unpriced[event.attempt] = task.spending.uncounted[event.attempt] = event.session_id
    task.requests.setdefault(event.request, None)


def _takeover_ended(task: Task, event: ev.TakeoverEnded, at: str) -> None:
    takeover = task.takeover
    if takeover is None or takeover.ended is not None or takeover.started.attempt != event.attempt:
        return
    takeover.ended, takeover.ended_at = event, at
    # Also after a lost takeover: the agent must know that its session and files may have changed.
    task.handback = event
    if event.how == "handed_back":
        task.stage_state(takeover.started.stage).gate_attempt = 0  # the agent goes on, whatever was judged
    # The move that follows a hand-back has the request: a record that was torn before it is applied again.
    if event.how == "kept":
        task.requests.setdefault(event.request, None)


def _handed_off(task: Task, event: ev.HandoffMade, at: str) -> None:
    task.script = event.script


def _runner_started(task: Task, event: ev.RunnerStarted, at: str) -> None:
    if task.runner is not None:
        lived_s = clock.parse_iso(at) - clock.parse_iso(task.runner_started_at)
        # Only quick deaths count: one per day is a machine that reboots.
        task.runner_crashes = task.runner_crashes + 1 if lived_s < QUICK_DEATH_S else 0
    task.runner = event
    task.runner_started_at = at


def _forged(task: Task, event: ev.JournalForged, at: str) -> None:
    task.distrust = event.reason


def _runner_left(task: Task, event: ev.RunnerLeft, at: str) -> None:
    task.runner = None
    task.runner_crashes = 0


def _applied(task: Task, event: ev.RequestApplied | ev.RequestRefused, at: str) -> None:
    task.requests[event.request] = event


def _opened(task: Task, event: ev.AttemptOpened, at: str) -> None:
    task.last_number = max(task.last_number, event.attempt)
    if event.kind != "agent":
        task.chore = Chore(event)
        task.chore_count += 1
        if event.kind == "gate" and event.stage in task.stage_states:
            task.stage_states[event.stage].gates_started += 1
        return
    attempt = Attempt(event)
    # A runner killed before it journalled the event leaves a gap in the numbers; it counts as an attempt.
    task.attempt_count = attempt.ordinal = event.attempt - task.chore_count - task.takeover_count
    attempt.answered, task.new_answers = tuple(task.new_answers), []
    attempt.retried, task.new_retry = task.new_retry, None
    if all(other.is_decided for other in task.current):
        task.current = []
    task.current = [other for other in task.current if other.stage != event.stage] + [attempt]
    stage_state = task.stage_states.setdefault(event.stage, StageState(event.stage, event.agent))
    before = stage_state.attempt
    if before is not None and before.ended is not None and not before.has_succeeded:
        attempt.failed_before = before.ordinal, before.ended
    repair = stage_state.repair
    if repair is not None and (before is None or before.number <= repair.after):
        attempt.repair = repair
        if repair.number:
            task.repair_log.append((at, repair))
    stage_state.attempt = attempt
    stage_state.gates_started = 0
    stage_state.needs_fresh_session = False
    # A program may choose the id of a new session itself; the id of the old session does not apply to it.
    continues = stage_state.agent == event.agent and event.mode not in ("fresh", "briefing")
    stage_state.session_id = event.session_id or (stage_state.session_id if continues else None)
    if not continues:
        task.progress = None  # the to-do list of the old session
        stage_state.session_from = event.attempt
    stage_state.agent = event.agent
    task.paid_calls += event.agent != "command"


def _started(task: Task, event: ev.AttemptStarted, at: str) -> None:
    execution = task.find(event.attempt)
    if execution is not None:
        execution.started = event
    task.voids_in_a_row = 0
    task.runner_crashes = 0


def _void(task: Task, event: ev.AttemptVoid, at: str) -> None:
    execution = task.find(event.attempt)
    if execution is None:
        return
    if execution is task.chore:
        task.chore = None
    else:
        task.current = [other for other in task.current if other is not execution]
        task.stage_state(execution.stage).attempt = None
        task.paid_calls -= execution.agent != "command"
    task.voids_in_a_row += 1


def _ended(task: Task, event: ev.AttemptEnded, at: str) -> None:
    execution = task.find(event.attempt)
    if execution is None or not execution.is_open:
        return
    if isinstance(execution, Attempt):
        _agent_ended(task, execution, event)
    execution.ended = event
    if execution.stage in task.stage_states:
        task.stage_states[execution.stage].worked_s += event.lived_s
    task.active_s += task.uncounted_s(execution, event.lived_s)
    if execution.started is not None:
        until = clock.parse_iso(execution.started.started_at) + event.lived_s
        task.counted_until = max(task.counted_until, until)
    task.voids_in_a_row = 0
    task.runner_crashes = 0


def _agent_ended(task: Task, attempt: Attempt, event: ev.AttemptEnded) -> None:
    stage_state = task.stage_state(attempt.stage)
    _spent(task, attempt, event)
    task.limit_waits = task.limit_waits + 1 if event.outcome in MUST_WAIT else 0
    stage_state.overflows += event.outcome == "context_too_long"
    is_lost = event.outcome == "lost" and not event.was_healthy
    stage_state.lost_in_a_row = stage_state.lost_in_a_row + 1 if is_lost else 0
    if event.outcome in MUST_WAIT:
        noticed = clock.parse_iso(event.noticed_at) if event.noticed_at else 0.0
        until = clock.parse_iso(event.resets_at) if event.resets_at else 0.0
        # A reset time in the past is ignored.
        stage_state.unavailable[attempt.agent] = clock.iso(
            until if until > noticed else noticed + unannounced_wait_s(task.limit_waits)
        )
    elif event.outcome in CANNOT_SERVE:
        stage_state.unavailable[attempt.agent] = None
    else:
        stage_state.unavailable.pop(attempt.agent, None)
    if event.exec_errno is None:
        stage_state.ran = attempt
        stage_state.times_ran += 1
        task.answer = task.handback = None
    if event.was_healthy:
        task.failures_in_a_row = 0


def _spent(task: Task, attempt: Attempt, event: ev.AttemptEnded) -> None:
    spending = task.spending
    spending.usage = spending.usage.plus(task.used_by(attempt))
    if attempt.usage_is_of_session and attempt.session_id is not None:
        spending.of_sessions[attempt.session_id] = attempt.usage
    _price(spending, attempt, event)


def _price(spending: Spending, attempt: Attempt, event: ev.AttemptEnded) -> None:
    """Note whether the cost of a call is known. A report on the whole session covers what was before it."""
    if attempt.agent == "command" or event.exec_errno is not None:
        return
    if attempt.usage_is_of_session and attempt.usage.input_tokens is not None:
        spending.uncounted = _without(spending.uncounted, attempt.session_id)
    if attempt.usage.cost_usd is None:
        spending.unpriced[attempt.number] = attempt.session_id
    elif attempt.usage_is_of_session:
        spending.unpriced = _without(spending.unpriced, attempt.session_id)


def _without(numbers: dict[int, str | None], session_id: str | None) -> dict[int, str | None]:
    return {number: session for number, session in numbers.items() if session != session_id}


def _swept(task: Task, event: ev.AttemptSwept, at: str) -> None:
    execution = task.find(event.attempt)
    if execution is not None:
        execution.swept = event


def _stop_intended(task: Task, event: ev.StopIntended, at: str) -> None:
    execution = task.find(event.attempt)
    if execution is not None:
        execution.intent = event
        execution.intended_at = execution.intended_at or at
    if event.request is not None:
        task.requests.setdefault(event.request, None)


def _retry_planned(task: Task, event: ev.RetryPlanned, at: str) -> None:
    task.failures_in_a_row = event.consecutive
    task.total_retries = event.total
    if event.stage:
        task.stage_state(event.stage).needs_fresh_session = event.fresh_session
    task.voids_in_a_row = 0
    if event.fresh_session and not event.burned:
        return  # the note that a parallel session cannot continue: nothing is counted or planned
    task.planned_delay_s = event.delay_s
    task.planned_for = task.attempt.number if task.attempt else task.last_number


def _prepared(task: Task, event: ev.WorkspacePrepared, at: str) -> None:
    stage_state = task.stage_state(event.stage)
    stage_state.workspace = event
    if task.first_workspace is None and event.base_tree:
        task.first_workspace = event
    stage_state.failed_chores_in_a_row = 0
    task.chore = None


def _pre_work_checked(task: Task, event: ev.PreWorkChecked, at: str) -> None:
    stage_state = task.stage_state(event.stage)
    stage_state.pre_work = event
    task.settings_before = task.settings_before or event.settings
    stage_state.failed_chores_in_a_row = 0
    task.chore = None


def _gate_judged(task: Task, event: ev.GateJudged, at: str) -> None:
    stage_state = task.stage_state(event.stage)
    stage_state.gate = event
    has_run = event.failed in ("", acceptance.CHECK) and bool(acceptance.commands_of(task.spec))
    if has_run and event.stage in acceptance.accepting(task.spec.stages):
        task.accepted = event
    if event.passed:
        stage_state.repair = None
    else:
        task.stages_done.pop(event.stage, None)  # by the checks of its pull request
    is_reader = not any(stage.name == event.stage and stage.writes for stage in task.spec.stages)
    if is_reader and not event.passed and event.failed != "scope" and not event.cannot_start:
        # What the gate's commands changed must not be blamed on the next attempt.
        stage_state.workspace = None
    stage_state.failed_chores_in_a_row = 0
    task.chore = None


def _repair_planned(task: Task, event: ev.RepairPlanned, at: str) -> None:
    """The stages from the one that repairs to the one that was refused are done again."""
    if event.number:
        task.repairs[event.failed_stage] = event.number
    task.repairing = event
    names = [stage.name for stage in task.spec.stages]
    if event.stage != event.failed_stage and {event.stage, event.failed_stage} <= set(names):
        for name in names[names.index(event.stage) : names.index(event.failed_stage) + 1]:
            if name != event.stage and _is_of_contest(task, name):
                continue  # it is decided; the chosen candidate goes on alone
            task.stages_done.pop(name, None)
            if name != event.stage:
                # A new session: what it judged has changed. Its workspace is recorded again.
                task.stage_state(name).begin_again(afresh=True, was_done=True)
    stage_state = task.stage_state(event.stage)
    stage_state.repair = event
    # Its done marker, if it has one, is void.
    stage_state.gate_attempt = 0


def _is_of_contest(task: Task, stage: str) -> bool:
    spec = task.stage_spec(stage)
    return spec is not None and bool(spec.contest)


def _eliminated(task: Task, event: ev.CandidateEliminated, at: str) -> None:
    task.eliminated[event.stage] = event


def _chosen(task: Task, event: ev.CandidateChosen, at: str) -> None:
    task.chosen = event
    chosen = task.stage_state(event.chosen)
    # From now on it works in the task's worktree, which has to be recorded; its session belongs to another
    # directory.
    chosen.workspace = None
    chosen.needs_fresh_session = True
    if event.by == "gate":
        task.stages_done[event.stage] = 0  # no judge was called
    task.stage_state(event.stage).failed_chores_in_a_row = 0
    task.chore = None


def _chore_failed(task: Task, event: ev.ChoreFailed, at: str) -> None:
    task.stage_state(event.stage).failed_chores_in_a_row += event.counts
    task.chore = None


def _triaged(task: Task, event: ev.FailureTriaged, at: str) -> None:
    task.last_failure = event
    attempt = task.find_attempt(event.attempt)
    if attempt is not None:
        attempt.triage = event
    if event.failure_class == "prompt_too_large" and event.outcome != "context_too_long":
        # Recognised only by stderr. The next prompt is made smaller in this case, too.
        task.stage_state(event.stage).overflows += 1
    if attempt is not None and not event.gate_failed:
        if attempt.counted_as == event.signature and event.signature in task.signatures:
            return  # triaged again after a retry that left the attempt as it was: it is one failure
        attempt.counted_as = event.signature
    entry = task.signatures.setdefault(event.signature, {"count": 0, "first_seen": at})
    entry.update(count=entry["count"] + 1, last_seen=at, **{"class": event.failure_class})


def _approved(task: Task, event: ev.ApprovalGiven, at: str) -> None:
    # The request counts as applied with the move that follows in the same record.
    task.stage_state(event.stage).is_approved = True


def _switched(task: Task, event: ev.AgentSwitched, at: str) -> None:
    stage_state = task.stage_state(event.stage)
    stage_state.agent = event.new
    stage_state.session_id = None


def _leftovers(task: Task, event: ev.LeftoversFound, at: str) -> None:
    attempt = task.find_attempt(event.attempt)
    if attempt is not None:
        attempt.leftovers = event
        task.stage_state(attempt.stage).leftovers += (event,) if event.processes else ()


#: By the type of the event.
_FOLDS: dict[str, Any] = {
    ev.TaskCreated.type: _created,
    ev.TaskMoved.type: _moved,
    ev.RunOpened.type: _run_opened,
    ev.StageDone.type: _stage_done,
    ev.WorkApplied.type: _work_applied,
    ev.TakeoverStarted.type: _taken_over,
    ev.TakeoverEnded.type: _takeover_ended,
    ev.HandoffMade.type: _handed_off,
    ev.WorkspacePrepared.type: _prepared,
    ev.GateJudged.type: _gate_judged,
    ev.CiLooked.type: _ci_looked,
    ev.CandidateEliminated.type: _eliminated,
    ev.CandidateChosen.type: _chosen,
    ev.RepairPlanned.type: _repair_planned,
    ev.PreWorkChecked.type: _pre_work_checked,
    ev.FailureTriaged.type: _triaged,
    ev.ChoreFailed.type: _chore_failed,
    ev.ApprovalGiven.type: _approved,
    ev.AgentSwitched.type: _switched,
    ev.RunnerStarted.type: _runner_started,
    ev.RunnerLeft.type: _runner_left,
    ev.JournalForged.type: _forged,
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
    **{cls.type: apply_agent_event for cls in ev.EVENTS.values() if issubclass(cls, ev.AgentEvent)},
}
