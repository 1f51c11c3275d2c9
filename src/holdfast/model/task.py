"""What is known of a task: the fold of its journal.

`apply` is used live and in replay, so what a runner thinks and what its successor reads can never differ.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.lane import Attempt, Lane
from holdfast.model.outcome import CANNOT_SERVE, WAITS
from holdfast.model.spec import StageSpec, TaskSpec
from holdfast.model.status import ENDS, Status
from holdfast.model.usage import Usage, budget_reached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


#: A runner that died sooner than this counts towards the limit of CRASH_LIMIT.
QUICK_DEATH_S = 60.0
#: Quick deaths in a row, without progress of the task, after which it is parked for a person.
CRASH_LIMIT = 5


class Task:
    """One task, folded from its journal."""

    def __init__(self) -> None:
        self.spec: TaskSpec = None  # pyright: ignore[reportAttributeAccessIssue]  # set by the first event
        self.status = Status.QUEUED
        self.reason = ""
        self.created_at = ""
        #: When it came into its present state.
        self.moved_at = ""
        self.finished_at: str | None = None
        #: When a task that waited for its turn had it; null for one that never waited.
        self.begun_at: str | None = None
        self.wake_at: str | None = None
        self.interrupt: str | None = None
        self.interrupted_at: str | None = None
        self.is_marked = False
        #: What a person answered; handed to the next attempt.
        self.answer: str | None = None
        self.run = 1
        self.deadline_s: float | None = None
        self.stages_done: dict[str, int] = {}
        self.lanes: dict[str, Lane] = {}
        #: The attempts that run side by side now, or did last; one, unless a group of stages is due.
        self.wave: list[Attempt] = []
        #: The chore of ours that runs now, or ended and was not taken in.
        self.chore: Attempt | None = None
        #: The highest number so far, and how many of them were chores.
        self.attempts = 0
        self.chores = 0
        self.voids_in_a_row = 0
        #: Calls of agents that cost something, failed ones too. Counted before the call.
        self.paid_calls = 0
        #: How often a person let it go on past its budget of calls: each time it is there once more.
        self.grants = 0
        #: How often each failure was seen: signature → count, class, first_seen, last_seen.
        self.signatures: dict[str, dict[str, Any]] = {}
        self.last_failure: ev.FailureTriaged | None = None
        #: Which one it is of those that its keeper dispatched; 0 for a task that came by another way.
        self.iteration = 0
        #: The commands of the brief, which hold instead of those of the manifest.
        self.script: str | None = None
        #: The stage for which a person's approval is awaited.
        self.approval: str | None = None
        self.consecutive = 0
        self.total_retries = 0
        #: Attempts in a row that ended at a limit of the service.
        self.waits = 0
        #: Failures of the current attempt already counted (its number), so that a restart does not count twice.
        self.planned_for = 0
        self.planned_delay_s = 0.0
        self.active_s = 0.0
        #: Up to when (wall time) attempts were counted in it.
        self.counted_until = 0.0
        #: What was used up before the last `retry`.
        self.usage_before_run, self.turns_before_run = Usage(), 0
        #: Of the attempts that have ended; `total_usage` has the open one too.
        self.usage = Usage()
        #: What each session had reported by its last attempt's end, where it counts on.
        self.session_usage: dict[str, Usage] = {}
        self.messages = 0
        self.tool_calls = 0
        #: How far the present session is with its own list, and since when.
        self.progress: ev.AgentProgress | None = None
        self.progress_at = ""
        self.requests: dict[str, ev.RequestApplied | ev.RequestRefused | None] = {}
        self.runner_crashes = 0
        self.runner: ev.RunnerStarted | None = None
        self.runner_started_at = ""
        self.last_event = ""

    # ── questions ──

    @property
    def has_ended(self) -> bool:
        """Whether the task is in one of its ends."""
        return self.status in ENDS

    @property
    def stage(self) -> str | None:
        """The stage that is due: the first one without a marker."""
        for stage in self.spec.stages:
            if stage.name not in self.stages_done:
                return stage.name
        return None

    @property
    def due(self) -> tuple[StageSpec, ...]:
        """The stages that are due together: the first one without a marker, and its neighbours of the same group."""
        stages = self.spec.stages
        first = next((at for at, stage in enumerate(stages) if stage.name not in self.stages_done), None)
        if first is None:
            return ()
        group = stages[first].group
        if group is None:
            return (stages[first],)
        found: list[StageSpec] = []
        for stage in stages[first:]:
            if stage.group != group:
                break
            if stage.name not in self.stages_done:
                found.append(stage)
        return tuple(found)

    @property
    def attempt(self) -> Attempt | None:
        """The last attempt of an agent, of whichever stage."""
        return self.wave[-1] if self.wave else None

    @property
    def open_attempts(self) -> list[Attempt]:
        """Every process of the task that may live: agents and a chore."""
        everything = [*self.wave, self.chore] if self.chore is not None else self.wave
        return [attempt for attempt in everything if attempt.is_open]

    @property
    def is_unsettled(self) -> bool:
        """Attempts have ended, and nothing was decided about them yet."""
        return any(not attempt.is_open and not attempt.is_settled for attempt in self.wave)

    @property
    def present(self) -> list[Attempt]:
        """The attempts that a stop is for: those that may live, else those that ended and were not dealt with. The intent
        decides what follows."""
        if self.open_attempts:
            return self.open_attempts
        if self.chore is not None:
            return [self.chore]
        return self.wave if self.is_unsettled else []

    @property
    def session_id(self) -> str | None:
        """The session of the last attempt's stage."""
        lane = self.lanes.get(self.attempt.stage) if self.attempt is not None else None
        return lane.session_id if lane is not None else None

    @property
    def paid_limit(self) -> int | None:
        """How many calls it may make; null: any number."""
        pipeline = self.spec.pipeline
        return pipeline.paid_call_budget * (1 + self.grants) if pipeline is not None else None

    @property
    def has_no_call_left(self) -> bool:
        """Whether what is due needs more calls than are left."""
        return self.paid_limit is not None and self.paid_calls + len(self.due) > self.paid_limit

    @property
    def spent(self) -> str | None:
        """Which budget of money, tokens or turns is used up, in words; null when none is."""
        return budget_reached(self.run_usage, self.run_turns, self.spec.limits)

    @property
    def is_spent(self) -> bool:
        """Whether it stands at one of its budgets."""
        return self.has_no_call_left or self.is_used_up

    @property
    def is_used_up(self) -> bool:
        """Whether it stands at a budget of money, tokens or turns: ours, or one that the agent's program counts."""
        return self.spent is not None or any(
            attempt.intent_name == "budget"
            or (attempt.ended is not None and attempt.ended.outcome in ("max_turns", "max_budget"))
            for attempt in self.wave
        )

    @property
    def turns(self) -> int:
        """Turns of the agent over the whole task: one for each time that it spoke or called tools."""
        return max(self.messages, self.tool_calls)

    @property
    def total_usage(self) -> Usage:
        """Everything so far, open attempts included."""
        total = self.usage
        for attempt in self.wave:
            if attempt.is_open:
                total = total.plus(self._on_top(attempt))
        return total

    @property
    def run_usage(self) -> Usage:
        """The same since the last `retry`, or since a person let it go on past a budget: they begin anew with it."""
        return self.total_usage.minus(self.usage_before_run)

    @property
    def run_turns(self) -> int:
        """Turns since the last `retry`."""
        return self.turns - self.turns_before_run

    def fresh_s(self, attempt: Attempt, lived_s: float) -> float:
        """Of an attempt's life the time that no other attempt of its wave was counted for: the deadline is about time that
        passed, not about how many worked in it."""
        if attempt.started is None or len(self.wave) < 2:
            return lived_s
        return max(0.0, lived_s - max(0.0, self.counted_until - clock.parse_iso(attempt.started.started_at)))

    def _on_top(self, attempt: Attempt) -> Usage:
        """What an attempt used, without what its session had before it."""
        if attempt.usage_is_of_session:
            return attempt.usage.minus(self.session_usage.get(attempt.session_id or "", Usage()))
        return attempt.usage

    def lane(self, stage: str) -> Lane:
        """The lane of a stage; a new one where nothing happened yet."""
        if stage not in self.lanes:
            agent = next((spec.agent for spec in self.spec.stages if spec.name == stage), self.spec.agent)
            self.lanes[stage] = Lane(stage, agent)
        return self.lanes[stage]

    def beside(self, stage: str) -> tuple[str, ...]:
        """The stages that run side by side with one, itself included."""
        group = next((spec.group for spec in self.spec.stages if spec.name == stage), None)
        if group is None:
            return (stage,)
        return tuple(spec.name for spec in self.spec.stages if spec.group == group)

    def find(self, number: int) -> Attempt | None:
        """The attempt of a number, if it is one of the present ones."""
        if self.chore is not None and self.chore.number == number:
            return self.chore
        for attempt in self.wave:
            if attempt.number == number:
                return attempt
        return None

    # ── the fold ──

    def apply(self, event: ev.Event, at: str) -> None:
        """Take in one event. Total: an event that means nothing here changes nothing."""
        self.last_event = event.type
        handler = _HANDLERS.get(event.type)
        if handler is None:
            return
        try:
            handler(self, event, at)
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
    for attempt in task.wave if task.status is not Status.RUNNING else ():
        attempt.is_settled = not attempt.is_open
        if task.status is Status.COMPLETING and attempt.has_succeeded:
            task.lane(attempt.stage).accepted = attempt.number
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
    for lane in task.lanes.values():
        lane.unavailable = {agent: until for agent, until in lane.unavailable.items() if until is not None}


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
    for attempt in task.wave:
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
            if name in task.lanes:
                # What a stage of a pipeline is told depends on the stages before it, which may say something else now.
                task.lanes[name].begin_again(afresh=task.spec.pipeline is not None, was_done=was_done)


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
    if all(other.is_settled for other in task.wave):
        task.wave = []
    task.wave = [other for other in task.wave if other.stage != event.stage] + [attempt]
    lane = task.lanes.setdefault(event.stage, Lane(event.stage, event.agent))
    lane.attempt = attempt
    lane.needs_fresh_session = False
    # A session that begins anew has the program's own id, which is not known before it speaks; not that of the old one.
    goes_on = lane.agent == event.agent and event.mode not in ("fresh", "briefing")
    lane.session_id = event.session_id or (lane.session_id if goes_on else None)
    if not goes_on:
        task.progress = None  # the list was the old session's
    lane.agent = event.agent
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
        task.wave.remove(attempt)
        task.lane(attempt.stage).attempt = None
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
    lane = task.lane(attempt.stage)
    task.usage = task.usage.plus(task._on_top(attempt))  # pyright: ignore[reportPrivateUsage]
    if attempt.usage_is_of_session and attempt.session_id is not None:
        task.session_usage[attempt.session_id] = attempt.usage
    task.waits = task.waits + 1 if event.outcome in WAITS else 0
    lane.overflows += event.outcome == "context_too_long"
    if event.outcome in WAITS:
        heard = clock.parse_iso(event.noticed_at) if event.noticed_at else 0.0
        until = clock.parse_iso(event.resets_at) if event.resets_at else 0.0
        # A time that has passed is no announcement.
        lane.unavailable[attempt.agent] = clock.iso(
            until if until > heard else heard + _growing_s(task.waits)
        )
    elif event.outcome in CANNOT_SERVE:
        lane.unavailable[attempt.agent] = None
    else:
        lane.unavailable.pop(attempt.agent, None)
    if event.exec_errno is None:
        lane.ran = attempt
        lane.times_ran += 1
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
    if event.request is not None:
        task.requests.setdefault(event.request, None)


def _retry_planned(task: Task, event: ev.RetryPlanned, at: str) -> None:
    task.consecutive = event.consecutive
    task.total_retries = event.total
    task.planned_delay_s = event.delay_s
    if event.stage:
        task.lane(event.stage).needs_fresh_session = event.fresh_session
    task.voids_in_a_row = 0
    task.planned_for = task.attempt.number if task.attempt else task.attempts


def _prepared(task: Task, event: ev.WorkspacePrepared, at: str) -> None:
    lane = task.lane(event.stage)
    lane.workspace = event
    lane.chores_in_vain = 0
    task.chore = None


def _pre_work_checked(task: Task, event: ev.PreWorkChecked, at: str) -> None:
    lane = task.lane(event.stage)
    lane.pre_work = event
    lane.chores_in_vain = 0
    task.chore = None


def _gate_judged(task: Task, event: ev.GateJudged, at: str) -> None:
    lane = task.lane(event.stage)
    lane.gate = event
    is_reader = not any(stage.name == event.stage and stage.writes for stage in task.spec.stages)
    if is_reader and not event.passed and event.failed != "scope":
        # What the gate's own commands left behind is not blamed on the next attempt.
        lane.workspace = None
    lane.chores_in_vain = 0
    task.chore = None


def _chore_failed(task: Task, event: ev.ChoreFailed, at: str) -> None:
    task.lane(event.stage).chores_in_vain += event.counts
    task.chore = None


def _triaged(task: Task, event: ev.FailureTriaged, at: str) -> None:
    task.last_failure = event
    attempt = task.find(event.attempt)
    if attempt is not None:
        attempt.triage = event
    if event.failure_class == "prompt_too_large" and event.outcome != "context_too_long":
        # Known by its words on stderr alone; the next prompt is smaller all the same.
        task.lane(event.stage).overflows += 1
    seen = task.signatures.setdefault(event.signature, {"count": 0, "first_seen": at})
    seen.update(count=seen["count"] + 1, last_seen=at, **{"class": event.failure_class})


def _approved(task: Task, event: ev.ApprovalGiven, at: str) -> None:
    task.lane(event.stage).is_approved = True
    task.requests.setdefault(event.request, None)


def _switched(task: Task, event: ev.AgentSwitched, at: str) -> None:
    lane = task.lane(event.stage)
    lane.agent = event.new
    lane.session_id = None


def _leftovers(task: Task, event: ev.LeftoversFound, at: str) -> None:
    attempt = task.find(event.attempt)
    if attempt is not None:
        attempt.leftovers = event


def _agent(task: Task, event: ev.AgentEvent, at: str) -> None:
    attempt = task.find(event.attempt)
    if attempt is None or attempt is task.chore:
        return
    offset, count = attempt.reached.get(event.stream, (0, 0))
    attempt.reached[event.stream] = (max(offset, event.offset), count + 1 if event.offset == offset else 1)
    attempt.retry_at = None
    task.runner_crashes = 0
    match event:
        case ev.AgentSession():
            attempt.session_id = event.session_id
            task.lane(attempt.stage).session_id = event.session_id
        case ev.AgentText():
            attempt.messages += 1
            task.messages += 1
            attempt.earlier_text, attempt.last_text = attempt.last_text, event.text
        case ev.AgentToolStarted():
            attempt.tools_started += 1
            attempt.is_limited = False
            task.tool_calls += 1
            attempt.open_tools[event.tool_id] = event
        case ev.AgentToolFinished():
            attempt.tools_finished += 1
            attempt.is_limited = False
            attempt.tool_failed = attempt.tool_failed or event.is_error
            attempt.tool_denied = attempt.tool_denied or event.denied
            attempt.open_tools.pop(event.tool_id, None)
        case ev.AgentUsage():
            base = Usage() if event.cumulative else attempt.usage
            attempt.usage = base.plus(event)
            attempt.usage_is_of_session = event.of_session
        case ev.AgentRetry():
            attempt.retry = event
            attempt.retries_seen += 1
            attempt.is_limited = attempt.is_limited or "429" in event.reason
            attempt.retry_at = clock.iso(clock.parse_iso(at) + (event.delay_s or 0.0))
        case ev.AgentRateLimit():
            # Some tell it more than once, and not every time until when.
            if event.resets_at is not None or attempt.rate_limit is None:
                attempt.rate_limit = event
            attempt.is_limited = True
        case ev.AgentProgress():
            # A list without steps was cleared.
            task.progress = event if event.steps_total > 0 else None
            task.progress_at = at
        case ev.AgentError():
            attempt.error = event
        case ev.AgentResult():
            attempt.result = event
        case _:
            pass


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
