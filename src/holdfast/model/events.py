"""The event union: every fact a journal can hold.

A line of `events.jsonl` is `{"id": ULID, "at": time, "type": "task.moved", …fields}`. Unknown types (of a later version, or
planted) decode to `Unknown` and change nothing, so an old runner can read a new journal.
"""

from __future__ import annotations

from holdfast.ids import new_ulid, new_ulids
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, ClassVar, Self


class Event(Record):
    """A fact. `id` and `at` are set when it is journalled."""

    type: ClassVar[str] = ""


# ── the task ────────────────────────────────────────────────────────────────


class TaskCreated(Event):
    """The first event of a journal: what was asked, and in which state the task was born."""

    type = "task.created"
    schema: str = "holdfast.events/1"
    task_id: str
    status: str
    spec: dict[str, Any]
    manifest_sha256: str = ""


class TaskMoved(Event):
    """The task went from one state to another."""

    type = "task.moved"
    old: str
    new: str
    reason: str = ""
    #: With `waiting`: when it goes on.
    wake_at: str | None = None
    #: With `interrupted`: what a person is asked.
    interrupt: str | None = None
    #: The request that caused it, if one did.
    request: str | None = None
    #: With a resume: what the person answered.
    answer: str | None = None
    #: With `interrupted`: the stage that a person must approve.
    approval: str | None = None
    #: With `interrupted`: a mark was left in the packet, and taking it away resumes the task.
    marked: bool = False
    #: From the queue: which one it is of those that the keeper dispatched.
    iteration: int = 0


class RunOpened(Event):
    """A `retry` request reopened an ended task."""

    type = "run.opened"
    run: int
    request: str
    #: Stage markers from this stage on are dropped; null keeps them all.
    from_stage: str | None = None
    deadline_s: float | None = None
    #: Whether `deadline_s` replaces the old one.
    sets_deadline: bool = False
    answer: str | None = None
    #: A task of the queue takes its turn again, once a slot is free.
    is_queued: bool = False


class StageDone(Event):
    """The gate passed and the marker is on disk."""

    type = "stage.done"
    stage: str
    attempt: int


class HandoffMade(Event):
    """A brief passed its gate: from here on its commands decide, and no longer those of the manifest."""

    type = "handoff.made"
    stage: str
    #: null: it names none, and those of the manifest hold.
    script: str | None


class WorkspacePrepared(Event):
    """The workspace is ready for a stage, and this is what stood in it before the agent came."""

    type = "workspace.prepared"
    stage: str
    #: Where the agent works.
    path: str
    #: `in_place` or `worktree`.
    kind: str
    #: The tree (git's) of everything in it at the stage's start, and at the task's.
    tree: str
    base_tree: str
    #: The commit that a worktree's branch began at; null outside git.
    commit: str | None = None
    branch: str | None = None
    #: What was changed already by somebody else, at most a hundred of them.
    dirty: tuple[str, ...] = ()
    #: The object that says what the hooks and settings of the repository were; empty outside git.
    own_files: str = ""


class GateJudged(Event):
    """A gate looked at what an attempt left. Passed: the marker follows. Not passed: this is why."""

    type = "gate.judged"
    stage: str
    #: The attempt that was judged.
    attempt: int
    passed: bool
    #: headings, patch, scope, acceptance, … : which check failed first.
    failed: str = ""
    reasons: tuple[str, ...] = ()
    #: Passed, but a person should know: what changed in the workspace and is not blamed on the stage.
    warnings: tuple[str, ...] = ()
    #: Requests of a reviewer for a person's approval; an empty text gives no reason.
    confirm: tuple[str, ...] = ()


class PreWorkChecked(Event):
    """What a repository asks for before work begins was looked at. It stops nothing: what failed is told to the agent."""

    type = "pre_work.checked"
    stage: str
    passed: bool
    reasons: tuple[str, ...] = ()


class FailureTriaged(Event):
    """A failure of a pipeline's stage was looked at: what kind it is, and by which mark it is known again."""

    type = "failure.triaged"
    stage: str
    attempt: int
    role: str = ""
    agent: str = ""
    outcome: str
    detail: str = ""
    exit_code: int | None = None
    gate_failed: str = ""
    gate_reasons: tuple[str, ...] = ()
    failure_class: str
    signature: str
    #: Words of the failure that the summary shows, redacted.
    excerpt: str = ""


class ChoreFailed(Event):
    """A chore of ours came to nothing. It is tried again a few times."""

    type = "chore.failed"
    stage: str
    attempt: int
    kind: str
    reason: str
    #: Not where it was stopped for another reason.
    counts: bool = True


class ApprovalGiven(Event):
    """A person agreed that a stage may start."""

    type = "approval.given"
    stage: str
    by: str
    request: str


class AgentSwitched(Event):
    """Another agent takes a stage over."""

    type = "agent.switched"
    stage: str
    old: str
    new: str
    reason: str


class JournalRepaired(Event):
    """The end of the journal was torn; these bytes were cut off."""

    type = "journal.repaired"
    dropped_bytes: int
    fragment: str


# ── runner and requests ─────────────────────────────────────────────────────


class RunnerStarted(Event):
    """A runner took the lock. Without a later `runner.left` it crashed."""

    type = "runner.started"
    pid: int
    boot_id: str
    start_time: int
    version: str


class RunnerLeft(Event):
    """A runner went of its own accord."""

    type = "runner.left"
    pid: int
    reason: str


class RequestApplied(Event):
    """A request was carried out."""

    type = "request.applied"
    request: str
    verb: str
    by: str


class RequestRefused(Event):
    """A request could not be carried out."""

    type = "request.refused"
    request: str
    verb: str
    by: str
    reason: str


# ── attempts ────────────────────────────────────────────────────────────────


class AttemptOpened(Event):
    """An attempt's directory is ready and its recorder is about to be forked."""

    type = "attempt.opened"
    attempt: int
    attempt_id: str
    stage: str
    agent: str
    #: fresh, resume (same session), again (run the command again), briefing (new session with a recovery briefing).
    mode: str
    session_id: str | None = None
    resume_count: int = 0
    #: `agent`; or a chore of holdfast's own: `prepare` (the workspace), `pre_work`, `gate`.
    kind: str = "agent"


class AttemptStarted(Event):
    """The agent's process exists."""

    type = "attempt.started"
    attempt: int
    pid: int
    boot_id: str
    start_time: int
    mono_s: float
    started_at: str


class AttemptVoid(Event):
    """The attempt never started: no process, no retry burned, the number is spent."""

    type = "attempt.void"
    attempt: int
    reason: str


class AttemptEnded(Event):
    """The agent's process is gone, and this is how."""

    type = "attempt.ended"
    attempt: int
    outcome: str
    detail: str = ""
    exit_code: int | None = None
    exit_signal: int | None = None
    exec_errno: int | None = None
    #: recorder, runner, or nobody (lost).
    by: str = "nobody"
    #: Time the process lived, on the clock that stands still in a suspend.
    lived_s: float = 0.0
    #: When the runner heard of it.
    noticed_at: str = ""
    #: Whether the attempt had been healthy for long enough to forget earlier failures.
    was_healthy: bool = False
    #: When the limit that ended it is lifted, if the agent said so.
    resets_at: str | None = None
    #: Whether its session can go on.
    resumable: bool = True


class AttemptSwept(Event):
    """What the attempt left running was killed, and this is the proof."""

    type = "attempt.swept"
    attempt: int
    killed: list[dict[str, Any]]
    spared: list[dict[str, Any]]
    #: `none left`, or `none marked` where the process tree was lost.
    proof: str
    #: Processes that could not be killed.
    unkillable: tuple[int, ...] = ()


class StopIntended(Event):
    """The agent is going to be stopped, for this reason. Journalled before the first signal."""

    type = "stop.intended"
    attempt: int
    #: stop, interrupt, hang, limit, input, session, deadline, linger, output, budget, timeout.
    intent: str
    reason: str
    request: str | None = None


class RetryPlanned(Event):
    """A failure was counted and the next attempt is planned."""

    type = "retry.planned"
    stage: str
    consecutive: int
    total: int
    delay_s: float
    #: False for what was not the task's fault (lost runner, reboot).
    burned: bool = True
    #: The old session cannot go on: the next attempt gets a new one and a briefing.
    fresh_session: bool = False


class LeftoversFound(Event):
    """Processes that outlived a successful agent."""

    type = "leftovers.found"
    attempt: int
    processes: list[dict[str, Any]]
    policy: str


class WatchVerdict(Event):
    """What the watch concluded, with its evidence."""

    type = "watch.verdict"
    attempt: int
    verdict: str
    because: str
    evidence: dict[str, Any]


# ── what the agent said; each carries where in stdout.log it stood ──────────


#: What a field of an agent's event may hold, by its annotation; and how large a number can get that still means something.
_KINDS: dict[str, Any] = {
    "str": str,
    "str | None": (str, type(None)),
    "bool": bool,
    "int": int,
    "int | None": (int, type(None)),
    "float | None": (int, float, type(None)),
}
_NUMBERS = frozenset({"int", "int | None", "float | None"})
_HUGE = 1e15


class AgentEvent(Event):
    """Base of the normalised agent events. A reader leaves both fields at zero; `place` fills them in."""

    attempt: int = 0
    #: Byte of the log behind the line that it came from.
    offset: int = 0
    #: Which log: stdout, or stderr where a program announces something there.
    stream: str = "stdout"
    #: Each field of its own: what it may hold, and whether that is a number.
    kinds: ClassVar[tuple[tuple[str, Any, bool], ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = cls.__annotations__.items()
        cls.kinds = tuple((name, _KINDS.get(kind, object), kind in _NUMBERS) for name, kind in own)

    def is_sound(self) -> bool:
        """Whether each field is of its kind. A reader passes on what an agent printed, and that may be anything."""
        store = self.__dict__
        for name, kind, is_number in self.kinds:
            value: Any = store[name]
            if not isinstance(value, kind):
                return False
            # Written so that NaN is none either.
            if is_number and value is not None and not -_HUGE < value < _HUGE:
                return False
        return True

    def to_json(self) -> dict[str, Any]:
        """Plain data, as all of its fields are: nothing needs to be looked into."""
        return self.__dict__.copy()

    def place(self, attempt: int, offset: int, stream: str = "stdout") -> Self:
        """Say where it came from. In place: there may be hundreds of thousands in a second."""
        store = self.__dict__
        store["attempt"] = attempt
        store["offset"] = offset
        store["stream"] = stream
        return self


class AgentSession(AgentEvent):
    """The agent named its session."""

    type = "agent.session"
    session_id: str
    model: str | None = None


class AgentText(AgentEvent):
    """The agent said something."""

    type = "agent.text"
    text: str


class AgentToolStarted(AgentEvent):
    """A tool call began."""

    type = "agent.tool_started"
    tool_id: str
    name: str
    summary: str = ""


class AgentToolFinished(AgentEvent):
    """A tool call ended."""

    type = "agent.tool_finished"
    tool_id: str
    is_error: bool = False
    denied: bool = False


class AgentUsage(AgentEvent):
    """Tokens and cost. `cumulative` replaces what the attempt reported before; otherwise it adds. `of_session` says that
    the figures include what earlier attempts of the same session reported."""

    type = "agent.usage"
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    cumulative: bool = False
    of_session: bool = False


class AgentRetry(AgentEvent):
    """The agent announced that it will try again after a pause."""

    type = "agent.retry"
    delay_s: float | None = None
    reason: str = ""


class AgentRateLimit(AgentEvent):
    """A limit was reached; `resets_at` when the agent knows."""

    type = "agent.rate_limit"
    resets_at: str | None = None
    reason: str = ""


class AgentProgress(AgentEvent):
    """How far the agent is with its own list of what there is to do. Not every CLI has one."""

    type = "agent.progress"
    steps_completed: int
    steps_total: int
    #: The step that it is at, where it says so.
    current_step: str | None = None


class AgentError(AgentEvent):
    """An error of a known class."""

    type = "agent.error"
    kind: str
    message: str


class AgentResult(AgentEvent):
    """The agent's last word."""

    type = "agent.result"
    is_error: bool
    subtype: str = ""
    text: str = ""
    turns: int | None = None


class Unknown(Event):
    """An event of a type that this version does not know."""

    type = "unknown"
    data: dict[str, Any]


EVENTS: dict[str, type[Event]] = {
    cls.type: cls
    for cls in (
        TaskCreated, TaskMoved, RunOpened, StageDone, HandoffMade, JournalRepaired,
        WorkspacePrepared, GateJudged, PreWorkChecked, FailureTriaged, ChoreFailed, ApprovalGiven, AgentSwitched,
        RunnerStarted, RunnerLeft, RequestApplied, RequestRefused,
        AttemptOpened, AttemptStarted, AttemptVoid, AttemptEnded, AttemptSwept,
        StopIntended, RetryPlanned, LeftoversFound, WatchVerdict,
        AgentSession, AgentText, AgentToolStarted, AgentToolFinished, AgentUsage,
        AgentRetry, AgentRateLimit, AgentProgress, AgentError, AgentResult,
    )
}  # fmt: skip


def encode(event: Event, at: str) -> dict[str, Any]:
    """The journal line of an event, as data."""
    return {"id": new_ulid(), "at": at, "type": event.type, **event.to_json()}


def encode_many(events: Sequence[Event], at: str) -> list[dict[str, Any]]:
    """The same of many."""
    return [
        {"id": name, "at": at, "type": event.type, **event.to_json()}
        for name, event in zip(new_ulids(len(events)), events, strict=True)
    ]


def decode(data: dict[str, Any]) -> Event:
    """The event of a journal line. Raises ValueError when a known type lacks a field."""
    cls = EVENTS.get(data.get("type", ""))
    return cls.from_json(data) if cls else Unknown(data=data)
