"""What is known of a task: the fold of its journal.

`apply` is used live and in replay, so what a runner thinks and what its successor reads can never differ.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.outcome import WAITS
from holdfast.model.record import Record
from holdfast.model.spec import TaskSpec
from holdfast.model.status import ENDS, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


#: A runner that died sooner than this counts towards the limit of CRASH_LIMIT.
QUICK_DEATH_S = 60.0
#: Quick deaths in a row, without progress of the task, after which it is parked for a person.
CRASH_LIMIT = 5


class Attempt:
    """One lifetime of one agent process, so far as the journal knows."""

    def __init__(self, opened: ev.AttemptOpened) -> None:
        self.number = opened.attempt
        self.attempt_id = opened.attempt_id
        self.stage = opened.stage
        self.agent = opened.agent
        self.mode = opened.mode
        self.session_id = opened.session_id
        #: What we asked for; a program may answer with another one.
        self.asked_session_id = opened.session_id
        self.resume_count = opened.resume_count
        self.started: ev.AttemptStarted | None = None
        self.intent: ev.StopIntended | None = None
        self.ended: ev.AttemptEnded | None = None
        self.swept: ev.AttemptSwept | None = None
        self.leftovers: ev.LeftoversFound | None = None
        #: Byte of each log behind its last journalled event, and how many ended there: one line can hold several.
        self.reached: dict[str, tuple[int, int]] = {}
        self.open_tools: dict[str, ev.AgentToolStarted] = {}
        self.result: ev.AgentResult | None = None
        self.error: ev.AgentError | None = None
        self.rate_limit: ev.AgentRateLimit | None = None
        self.retry: ev.AgentRetry | None = None
        self.retry_at: str | None = None
        self.retries_seen = 0
        self.tools_started = 0
        self.tools_finished = 0
        self.tool_failed = False
        self.tool_denied = False
        self.messages = 0
        self.last_text = ""
        self.usage = Usage()
        #: The figures include earlier attempts of the session.
        self.usage_is_of_session = False

    @property
    def has_spoken(self) -> bool:
        """Whether it printed anything that was an event."""
        return "stdout" in self.reached

    @property
    def is_open(self) -> bool:
        """Whether its end has not been journalled."""
        return self.ended is None

    @property
    def dirname(self) -> str:
        """Its directory below attempts/."""
        return f"{self.number:03d}-{self.stage}"


class Usage(Record):
    """Tokens and cost; null is unknown, never zero."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None

    def minus(self, other: Usage) -> Usage:
        """What came on top of `other`; never below zero."""
        return Usage(
            input_tokens=_subtract(self.input_tokens, other.input_tokens),
            output_tokens=_subtract(self.output_tokens, other.output_tokens),
            cost_usd=_subtract(self.cost_usd, other.cost_usd),
        )

    def plus(self, other: Usage | ev.AgentUsage) -> Usage:
        """The sum, in which unknown and unknown stays unknown."""
        return Usage(
            input_tokens=_add(self.input_tokens, other.input_tokens),
            output_tokens=_add(self.output_tokens, other.output_tokens),
            cost_usd=_add(self.cost_usd, other.cost_usd),
        )


def _subtract(left: Any, right: Any) -> Any:
    return left if left is None or right is None else max(0, left - right)


def _add(left: Any, right: Any) -> Any:
    return right if left is None else left if right is None else left + right


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
        self.wake_at: str | None = None
        self.interrupt: str | None = None
        self.interrupted_at: str | None = None
        #: What a person answered; handed to the next attempt.
        self.answer: str | None = None
        self.run = 1
        self.deadline_s: float | None = None
        self.stages_done: dict[str, int] = {}
        self.attempt: Attempt | None = None
        self.attempts = 0
        self.voids_in_a_row = 0
        #: The last attempt whose agent was really executed, and how many there were. (A failed exec is seen after the start.)
        self.ran: Attempt | None = None
        self.times_ran = 0
        self.consecutive = 0
        self.total_retries = 0
        #: Attempts in a row that ended at a limit of the service.
        self.waits = 0
        #: Attempts that ran out of the model's context.
        self.overflows = 0
        #: Failures of the current attempt already counted (its number), so that a restart does not count twice.
        self.planned_for = 0
        self.planned_delay_s = 0.0
        self.needs_fresh_session = False
        #: The last attempt ended and nothing was decided about it yet.
        self.is_unsettled = False
        self.session_id: str | None = None
        self.active_s = 0.0
        #: Of the attempts that have ended; `total_usage` has the open one too.
        self.usage = Usage()
        #: What each session had reported by its last attempt's end, where it counts on.
        self.session_usage: dict[str, Usage] = {}
        self.messages = 0
        self.tool_calls = 0
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
    def turns(self) -> int:
        """Turns of the agent over the whole task: one for each time that it spoke or called tools."""
        return max(self.messages, self.tool_calls)

    @property
    def total_usage(self) -> Usage:
        """Everything so far, the open attempt included."""
        attempt = self.attempt
        if attempt is None or not attempt.is_open:
            return self.usage
        if attempt.usage_is_of_session:
            return self.usage.plus(
                attempt.usage.minus(self.session_usage.get(attempt.session_id or "", Usage()))
            )
        return self.usage.plus(attempt.usage)

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
    task.status = Status(event.new)
    task.moved_at = at
    task.is_unsettled = False
    task.reason = event.reason
    task.wake_at = event.wake_at
    task.interrupt = event.interrupt
    task.interrupted_at = at if task.status is Status.INTERRUPTED else None
    if event.answer is not None:
        task.answer = event.answer
    if event.request is not None:
        task.requests.setdefault(event.request, None)
    task.finished_at = at if task.status in ENDS else None


def _run_opened(task: Task, event: ev.RunOpened, at: str) -> None:
    task.run = event.run
    task.status = Status.SPAWNING
    task.moved_at = at
    task.reason = "retry"
    task.finished_at = None
    task.consecutive = task.total_retries = 0
    task.waits = task.overflows = task.voids_in_a_row = 0
    task.active_s = 0.0
    task.answer = event.answer
    task.requests.setdefault(event.request, None)
    if event.sets_deadline:
        task.deadline_s = event.deadline_s
    if event.from_stage is not None:
        names = [stage.name for stage in task.spec.stages]
        for name in names[names.index(event.from_stage) :] if event.from_stage in names else ():
            task.stages_done.pop(name, None)


def _stage_done(task: Task, event: ev.StageDone, at: str) -> None:
    task.stages_done[event.stage] = event.attempt
    task.consecutive = 0


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
    task.attempt = Attempt(event)
    task.needs_fresh_session = False
    task.attempts = max(task.attempts, event.attempt)
    task.session_id = event.session_id or task.session_id


def _started(task: Task, event: ev.AttemptStarted, at: str) -> None:
    if _is_current(task, event.attempt):
        task.attempt.started = event  # pyright: ignore[reportOptionalMemberAccess]
    task.voids_in_a_row = 0
    task.runner_crashes = 0


def _void(task: Task, event: ev.AttemptVoid, at: str) -> None:
    task.attempt = None
    task.voids_in_a_row += 1


def _ended(task: Task, event: ev.AttemptEnded, at: str) -> None:
    attempt = task.attempt
    if attempt is None or attempt.number != event.attempt:
        return
    total = task.total_usage
    attempt.ended = event
    task.is_unsettled = True
    task.waits = task.waits + 1 if event.outcome in WAITS else 0
    task.overflows += event.outcome == "context_too_long"
    if event.exec_errno is None:
        task.ran = attempt
        task.times_ran += 1
        task.answer = None
    task.active_s += event.lived_s
    task.usage = total
    if attempt.usage_is_of_session and attempt.session_id is not None:
        task.session_usage[attempt.session_id] = attempt.usage
    task.voids_in_a_row = 0
    task.runner_crashes = 0
    if event.was_healthy:
        task.consecutive = 0


def _swept(task: Task, event: ev.AttemptSwept, at: str) -> None:
    if _is_current(task, event.attempt):
        task.attempt.swept = event  # pyright: ignore[reportOptionalMemberAccess]


def _stop_intended(task: Task, event: ev.StopIntended, at: str) -> None:
    if _is_current(task, event.attempt):
        task.attempt.intent = event  # pyright: ignore[reportOptionalMemberAccess]
    if event.request is not None:
        task.requests.setdefault(event.request, None)


def _retry_planned(task: Task, event: ev.RetryPlanned, at: str) -> None:
    task.consecutive = event.consecutive
    task.total_retries = event.total
    task.planned_delay_s = event.delay_s
    task.needs_fresh_session = event.fresh_session
    task.voids_in_a_row = 0
    task.planned_for = task.attempt.number if task.attempt else task.attempts


def _leftovers(task: Task, event: ev.LeftoversFound, at: str) -> None:
    if _is_current(task, event.attempt):
        task.attempt.leftovers = event  # pyright: ignore[reportOptionalMemberAccess]


def _agent(task: Task, event: ev.AgentEvent, at: str) -> None:
    attempt = task.attempt
    if attempt is None or attempt.number != event.attempt:
        return
    offset, count = attempt.reached.get(event.stream, (0, 0))
    attempt.reached[event.stream] = (max(offset, event.offset), count + 1 if event.offset == offset else 1)
    attempt.retry_at = None
    task.runner_crashes = 0
    match event:
        case ev.AgentSession():
            attempt.session_id = event.session_id
            task.session_id = event.session_id
        case ev.AgentText():
            attempt.messages += 1
            task.messages += 1
            attempt.last_text = event.text
        case ev.AgentToolStarted():
            attempt.tools_started += 1
            task.tool_calls += 1
            attempt.open_tools[event.tool_id] = event
        case ev.AgentToolFinished():
            attempt.tools_finished += 1
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
            attempt.retry_at = clock.iso(clock.parse_iso(at) + (event.delay_s or 0.0))
        case ev.AgentRateLimit():
            attempt.rate_limit = event
        case ev.AgentError():
            attempt.error = event
        case ev.AgentResult():
            attempt.result = event
        case _:
            pass


def _is_current(task: Task, number: int) -> bool:
    return task.attempt is not None and task.attempt.number == number


_HANDLERS: dict[str, Any] = {
    ev.TaskCreated.type: _created,
    ev.TaskMoved.type: _moved,
    ev.RunOpened.type: _run_opened,
    ev.StageDone.type: _stage_done,
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
