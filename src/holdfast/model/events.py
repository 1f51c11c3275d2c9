"""The event union: every kind of line in a journal.

A line of `events.jsonl` is `{"id": ULID, "at": time, "type": "task.moved", …fields}`. Types that this version
does not know decode to `Unknown` and change nothing, so an old runner can read a new journal.
"""

from __future__ import annotations

from holdfast.ids import new_ulid, new_ulids
from holdfast.model.agent_events import (
    AgentError,
    AgentProgress,
    AgentRateLimit,
    AgentResult,
    AgentRetry,
    AgentSession,
    AgentText,
    AgentToolFinished,
    AgentToolStarted,
    AgentUsage,
)
from holdfast.model.agent_events import AgentEvent as AgentEvent  # adapters and views use it from here
from holdfast.model.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


# ── the task ────────────────────────────────────────────────────────────────


class TaskCreated(Event):
    """The task was created: its spec and its first state. Always the first event of a journal."""

    type = "task.created"
    schema: str = "holdfast.events/1"
    task_id: str
    status: str
    spec: dict[str, Any]
    manifest_sha256: str = ""
    #: The captured environment: nothing is started with another one.
    env_sha256: str = ""
    #: The request that agents get; empty if there is none, null if it was not recorded.
    request_sha256: str | None = None


class TaskMoved(Event):
    """The task changed its state."""

    type = "task.moved"
    old: str
    new: str
    reason: str = ""
    #: With `interrupted` and `abandoned`: `failure` or `down`; empty for everything else.
    cause: str = ""
    #: With `waiting`: when the task continues.
    wake_at: str | None = None
    #: With `interrupted`: the question to the person.
    interrupt: str | None = None
    #: The request that caused the move, if any.
    request: str | None = None
    #: With a resume: the person's answer.
    answer: str | None = None
    #: With `interrupted`: the stage that a person must approve.
    approval: str | None = None
    #: With `interrupted`: there is an interrupt file in the packet; removing it resumes the task.
    marked: bool = False
    #: From the queue: its number among the tasks that the keeper started.
    iteration: int = 0


class RunOpened(Event):
    """A `retry` request reopened an ended task."""

    type = "run.opened"
    run: int
    request: str
    #: Done markers from this stage on are removed; null keeps all.
    from_stage: str | None = None
    deadline_s: float | None = None
    #: Whether `deadline_s` replaces the old deadline.
    sets_deadline: bool = False
    #: The new permission profile of its stages; null keeps it.
    permissions: str | None = None
    answer: str | None = None
    #: The task is queued again and starts when a slot is free.
    is_queued: bool = False
    #: Paid calls and failures are counted from zero again.
    resets: bool = False
    #: What a person changed of the spec: `field` of manifest.yaml, `old`, `new`.
    amended: tuple[dict[str, Any], ...] = ()
    #: The environment that came with the request.
    env_sha256: str = ""


class WorkApplied(Event):
    """A person merged the work in the task's worktree into the project (`holdfast apply`)."""

    type = "work.applied"
    #: `merge` or `patch`.
    how: str
    #: The branch and the new commit of the project; null with a patch.
    branch: str | None = None
    commit: str | None = None
    #: The number of changed files.
    files: int = 0
    applied_at: str = ""
    by: str = ""
    request: str = ""

    def shown(self) -> dict[str, Any]:
        """As in the manifest."""
        return {
            "how": self.how,
            "branch": self.branch,
            "commit": self.commit,
            "files": self.files,
            "at": self.applied_at,
        }


class StageDone(Event):
    """A stage passed its gate, and its done marker is on disk."""

    type = "stage.done"
    stage: str
    attempt: int


class HandoffMade(Event):
    """A brief passed its gate. Its acceptance commands are added to those of the manifest."""

    type = "handoff.made"
    stage: str
    #: null: the brief has no commands.
    script: str | None


class WorkspacePrepared(Event):
    """The workspace is ready for a stage. Records its contents before the agent starts."""

    type = "workspace.prepared"
    stage: str
    #: The agent's working directory.
    path: str
    #: `in_place` or `worktree`.
    kind: str
    #: The git tree of its contents at the start of the stage (`tree`) and of the task (`base_tree`).
    tree: str
    base_tree: str
    #: The commit at which a worktree's branch starts; null outside git.
    commit: str | None = None
    branch: str | None = None
    #: Paths with uncommitted changes before the stage; at most 100.
    dirty: tuple[str, ...] = ()
    #: The git object that records the repository's hooks and settings; empty outside git.
    own_files: str = ""
    #: With a worktree: the git object that records the refs of the repository and the user's own tree.
    around: str = ""
    #: The digest of git's settings for snapshots, which are frozen in the packet; empty without a snapshot.
    settings: str = ""


class GateJudged(Event):
    """A gate judged the work of an attempt. If it passed, the done marker follows."""

    type = "gate.judged"
    stage: str
    #: The judged attempt.
    attempt: int
    passed: bool
    #: The first check that failed: headings, patch, scope, acceptance, …
    failed: str = ""
    reasons: tuple[str, ...] = ()
    #: Changes in the workspace that do not fail the gate but that a person should know about.
    warnings: tuple[str, ...] = ()
    #: A reviewer's requests for approval by a person; an empty text gives no reason.
    confirm: tuple[str, ...] = ()
    #: The start of the output of the commands that failed, for the agent that repairs the work.
    evidence: str = ""
    #: What the report concludes: `go`, `no_go`, `passed` or `failed`; empty if it does not decide.
    decision: str = ""
    #: The number of findings of the report by severity.
    findings: dict[str, int] = {}
    #: How many files the task has changed so far, within its scope; null if the stage does not write.
    changed: int | None = None
    #: The judged tree, with the changes in scope, of a stage that writes. That of a candidate is adopted if
    #: it is chosen.
    tree: str = ""
    #: The acceptance commands passed before the work as well, so they prove nothing about it.
    passed_before: bool = False
    #: An acceptance command could not start, and could not before the work either: the work is not at fault.
    cannot_start: bool = False


class CiLooked(Event):
    """A look at the checks of the task's pull request, after its last stage."""

    type = "ci.looked"
    #: The last stage and its attempt, whose gate this belongs to.
    stage: str
    attempt: int
    #: `pending`, `passed` or `failed`.
    state: str
    #: The address of the pull request, and the commit that was pushed.
    pull_request: str
    commit: str
    #: The checks that are pending; empty if there is no check yet.
    pending: tuple[str, ...] = ()
    #: Why it failed, and the ends of the logs, for the agent that repairs the work.
    reasons: tuple[str, ...] = ()
    evidence: str = ""


class CandidateEliminated(Event):
    """A candidate does not go on, because another one has passed its gate."""

    type = "candidate.eliminated"
    stage: str
    candidate: int
    #: Its last attempt.
    attempt: int
    reasons: tuple[str, ...] = ()


class CandidateChosen(Event):
    """A candidate was chosen, and its tree is in the task's workspace."""

    type = "candidate.chosen"
    #: The stage of the judge.
    stage: str
    #: The stage of the candidate, and its number.
    chosen: str
    candidate: int
    #: `judge`, or `gate` if only one passed its gate.
    by: str
    tree: str


class RepairPlanned(Event):
    """A gate refused the work of a stage, which goes back to an agent with the evidence.

    Stages from `stage` to `failed_stage` are done again.
    """

    type = "repair.planned"
    #: Whose agent repairs the work, and its last attempt, whose session continues.
    stage: str
    after: int
    #: The stage whose gate refused the work.
    failed_stage: str
    #: How many repairs of that stage there were with this one; 0 if a person sent it back.
    number: int = 0
    reasons: tuple[str, ...] = ()
    evidence: str = ""


class PreWorkChecked(Event):
    """The repository's pre-work checks ran. A failure stops nothing: it is passed on to the agent."""

    type = "pre_work.checked"
    stage: str
    passed: bool
    reasons: tuple[str, ...] = ()
    #: Digests of files in the packet by which the work is judged: the result of these checks, with the list
    #: of uncommitted files, and git's settings. Empty if there is no such file.
    result: str = ""
    settings: str = ""


class FailureTriaged(Event):
    """A failure of a pipeline stage was classified. The same failure gets the same signature."""

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
    #: An excerpt of the failure for the summary, redacted.
    excerpt: str = ""
    #: The program that the stage needs and that is not installed.
    missing_program: str = ""


class ChoreFailed(Event):
    """A chore failed. It is retried a few times."""

    type = "chore.failed"
    stage: str
    attempt: int
    kind: str
    reason: str
    #: Whether it counts as a failure; false if it was stopped for another reason.
    counts: bool = True


class ApprovalGiven(Event):
    """A person approved the start of a stage."""

    type = "approval.given"
    stage: str
    by: str
    request: str


class AgentSwitched(Event):
    """Another agent takes over a stage."""

    type = "agent.switched"
    stage: str
    old: str
    new: str
    reason: str


class JournalRepaired(Event):
    """The journal ended in an incomplete line, which was cut off."""

    type = "journal.repaired"
    dropped_bytes: int
    fragment: str


class JournalForged(Event):
    """Something other than a runner wrote to the journal. What they wrote was removed; a person decides."""

    type = "journal.forged"
    #: What was found, and where it is kept.
    reason: str
    dropped_bytes: int = 0


# ── runner and requests ─────────────────────────────────────────────────────


class RunnerStarted(Event):
    """A runner took the lock of the task. If no `runner.left` follows, it crashed."""

    type = "runner.started"
    pid: int
    boot_id: str
    start_time: int
    version: str


class RunnerLeft(Event):
    """A runner exited normally."""

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


class TakeoverStarted(Event):
    """A person works in the agent's session, in the agent's own program (`holdfast takeover`)."""

    type = "takeover.started"
    #: Its number among the attempts, and so its directory.
    attempt: int
    #: Marks its processes.
    attempt_id: str
    stage: str
    agent: str
    session_id: str
    by: str = ""
    request: str = ""


class TakeoverEnded(Event):
    """The person's program has ended, and what it left running was ended."""

    type = "takeover.ended"
    attempt: int
    #: `handed_back`: the agent goes on; `kept`: the task stays interrupted; `lost`: it does too, because the
    #: terminal or the command is gone.
    how: str
    exit_code: int | None = None
    exit_signal: str | None = None
    #: How many files the person and the agent changed meanwhile, and the changes; shortened.
    files: int = 0
    diff: str = ""
    #: Processes that it left running.
    killed: tuple[dict[str, Any], ...] = ()
    by: str = ""
    request: str = ""


class AttemptOpened(Event):
    """An attempt's directory is ready and its recorder is about to be forked."""

    type = "attempt.opened"
    attempt: int
    attempt_id: str
    stage: str
    agent: str
    #: fresh, resume (same session), again (rerun the command), briefing (new session with a briefing).
    mode: str
    session_id: str | None = None
    resume_count: int = 0
    #: `agent`, or a chore: `prepare` (the workspace), `pre_work`, `gate`.
    kind: str = "agent"
    #: The commit that is checked out in the project at the first attempt of a plain run, for `diff`.
    head: str = ""


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
    """The attempt never started: there was no process. It costs no retry, but its number is not reused."""

    type = "attempt.void"
    attempt: int
    reason: str


class AttemptEnded(Event):
    """The agent's process has ended."""

    type = "attempt.ended"
    attempt: int
    outcome: str
    detail: str = ""
    exit_code: int | None = None
    exit_signal: int | None = None
    exec_errno: int | None = None
    #: Who reported the end: recorder, runner, kernel (neither was its parent), or nobody.
    by: str = "nobody"
    #: Lifetime of the process, without the time the machine was suspended.
    lived_s: float = 0.0
    #: When the runner noticed the end.
    noticed_at: str = ""
    #: Whether it was healthy long enough to reset the count of failures in a row.
    was_healthy: bool = False
    #: When the limit that ended it is lifted, if the agent reported it.
    resets_at: str | None = None
    #: Whether its session can be resumed.
    resumable: bool = True


class AttemptSwept(Event):
    """Processes that the attempt left running were killed."""

    type = "attempt.swept"
    attempt: int
    killed: list[dict[str, Any]]
    spared: list[dict[str, Any]]
    #: `none left`; `none marked` if the process tree was lost; `none of this home: it is a copy`.
    proof: str
    #: Processes that could not be killed.
    unkillable: tuple[int, ...] = ()


class StopIntended(Event):
    """The agent will be stopped. Journalled before the first signal."""

    type = "stop.intended"
    attempt: int
    #: stop, interrupt, hang, limit, input, session, deadline, linger, output, budget, timeout.
    intent: str
    reason: str
    request: str | None = None
    #: With `interrupt`: `down` if the home goes down, `distrust` if the journal was changed from outside.
    cause: str = ""
    #: Without the agent's time to exit: the first signal is KILL.
    kills: bool = False


class RetryPlanned(Event):
    """A failure was counted and the next attempt is planned."""

    type = "retry.planned"
    stage: str
    consecutive: int
    total: int
    delay_s: float
    #: Whether it costs a retry; false if the task is not at fault (lost runner, reboot).
    burned: bool = True
    #: The old session cannot be resumed: the next attempt gets a new one and a briefing.
    fresh_session: bool = False


class LeftoversFound(Event):
    """Processes of a successful agent were still running after it ended."""

    type = "leftovers.found"
    attempt: int
    processes: list[dict[str, Any]]
    policy: str


class WatchVerdict(Event):
    """The verdict of the watch on a running agent, with its evidence."""

    type = "watch.verdict"
    attempt: int
    verdict: str
    because: str
    evidence: dict[str, Any]


class Unknown(Event):
    """An event of a type that this version does not know."""

    type = "unknown"
    data: dict[str, Any]


EVENTS: dict[str, type[Event]] = {
    cls.type: cls
    for cls in (
        TaskCreated, TaskMoved, RunOpened, StageDone, HandoffMade, JournalRepaired, JournalForged,
        WorkspacePrepared, GateJudged, CandidateEliminated, CandidateChosen, RepairPlanned, PreWorkChecked,
        FailureTriaged, ChoreFailed, CiLooked,
        ApprovalGiven, AgentSwitched,
        RunnerStarted, RunnerLeft, RequestApplied, RequestRefused,
        WorkApplied, TakeoverStarted, TakeoverEnded,
        AttemptOpened, AttemptStarted, AttemptVoid, AttemptEnded, AttemptSwept,
        StopIntended, RetryPlanned, LeftoversFound, WatchVerdict,
        AgentSession, AgentText, AgentToolStarted, AgentToolFinished, AgentUsage,
        AgentRetry, AgentRateLimit, AgentProgress, AgentError, AgentResult,
    )
}  # fmt: skip


#: Fields on which decisions depend and that version 0.1.0 did not write.
_ADDED = {
    TaskMoved.type: "cause",
    StopIntended.type: "cause",
    FailureTriaged.type: "missing_program",
    AgentRetry.type: "is_limited",
}


def encode(event: Event, at: str) -> dict[str, Any]:
    """The journal line of an event, as a dict."""
    return {"id": new_ulid(), "at": at, "type": event.type, **event.to_json()}


def encode_many(events: Sequence[Event], at: str) -> list[dict[str, Any]]:
    """The journal lines of several events."""
    return [
        {"id": name, "at": at, "type": event.type, **event.to_json()}
        for name, event in zip(new_ulids(len(events)), events, strict=True)
    ]


def decode(data: dict[str, Any]) -> Event:
    """The event of a journal line. Raises ValueError if a known type lacks a field."""
    cls = EVENTS.get(data.get("type", ""))
    if cls is None:
        return Unknown(data=data)
    added = _ADDED.get(cls.type)
    if added is not None and added not in data:
        from holdfast.model import legacy  # only journals of older versions need it

        data = legacy.with_field(data, added)
    return cls.from_json(data)
