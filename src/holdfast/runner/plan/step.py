"""Steps: everything that a runner can do next. The planner chooses one, the performer carries it out."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.request import Request
    from holdfast.pipeline.triage import Failure
    from holdfast.runner.plan.facts import PreparedInterrupt

# ── nothing to do now ──


class Watch(Record):
    """Sleep until something happens, at most this long."""

    wait_s: float
    #: What a task that could otherwise go on waits for, for its manifest: "waits for …".
    waiting_for: str | None = None


class Leave(Record):
    """Nothing is left for a runner to do."""

    reason: str


# ── the journal ──


class Journal(Record):
    """Record facts and moves that are decided."""

    events: tuple[ev.Event, ...]


class Interrupt(Record):
    """Record an interrupt for which everything is prepared."""

    events: tuple[ev.Event, ...]


# ── people ──


class AnswerRequest(Record):
    """Carry out a request and record the answer; `refusal` says why it is refused."""

    name: str
    request: Request | None
    effect: tuple[ev.Event, ...] = ()
    refusal: str | None = None
    #: Other files to remove from the inbox; they are not requests.
    junk: tuple[str, ...] = ()


class EndTakeover(Record):
    """A person's takeover was lost: end what it left running, and record its end."""

    number: int


class ForgetRequest(Record):
    """Remove a request that was answered before."""

    name: str


class SaveContext(Record):
    """Save what a person needs in order to answer: the first step of an interrupt."""

    interrupt: PreparedInterrupt


class PostNotice(Record):
    """Leave a notice for every rule that matches."""

    event: str
    reason: str
    #: As `model.status.Cause`.
    cause: str = ""
    #: The attempt whose gate did not pass.
    attempt: int = 0
    #: The stage that waits for approval.
    approval: str | None = None
    #: Who interrupted it, as in `Answer.asked_by`.
    asked_by: str = ""


class WriteInterruptFile(Record):
    """Write the interrupt file: removing it resumes the task."""

    question: str
    #: The stage that waits for approval, if the file asks for one.
    approval: str | None = None


class Report(Record):
    """Write summary, statistics and last failure."""


# ── before a stage starts ──


class Preflight(Record):
    """Look for everything that the stages need."""


class TakeWorkspace(Record):
    """Take the lock of the project directory."""


class ReleaseWorkspace(Record):
    """Let other tasks write in the project directory."""


class OpenAttempts(Record):
    """Compose the prompts of the due stages and start their agents."""

    stages: tuple[str, ...]


class OpenChore(Record):
    """Start a chore of a stage: `prepare`, `pre_work`, `adopt`, or `gate` for the attempt `judged`."""

    stage: str
    kind: str
    judged: int = 0


# ── while executions are open ──


class RecordStart(Record):
    """Record that the process exists, and watch it."""

    number: int


class WakeRecorder(Record):
    """Send SIGCONT to a recorder that owes a record."""

    number: int


class LockSession(Record):
    """Lock a session whose id the program chose."""

    number: int


class ReadOutput(Record):
    """Read new output of these executions; after their end, the rest of it."""

    numbers: tuple[int, ...]
    final: bool = False


class RecordVerdict(Record):
    """Record what the watch concludes."""

    number: int


class IntendStop(Record):
    """Record that these executions are to be stopped, and why, before the first signal."""

    numbers: tuple[int, ...]
    intent: str
    reason: str
    #: With `interrupt`: a Cause.
    cause: str = ""


class Signal(Record):
    """Send the next stop signal."""

    number: int


class Heartbeat(Record):
    """Show that the runner is alive."""


class RecordEnd(Record):
    """Classify an end and record it."""

    number: int


# ── after an end ──


class Sweep(Record):
    """Kill what an execution left running, one pass."""

    number: int


class CheckLeftovers(Record):
    """Find and report what a successful attempt left running."""

    number: int


class WriteFiles(Record):
    """Write an attempt's outputs and attempt.json."""

    number: int


class DismissRecorders(Record):
    """Let the recorders of ended attempts leave."""

    numbers: tuple[int, ...]


class TriageFailure(Record):
    """Classify a failure of a pipeline's stage and record it."""

    number: int
    failure: Failure


class TakeChoreResult(Record):
    """Record what a chore found."""

    number: int


class PassPlainGate(Record):
    """Write evidence and marker of a stage whose gate is the attempt's own success."""

    number: int


class MarkStage(Record):
    """Hand on what a stage produced, then write its done marker."""

    number: int


class EndTask(Record):
    """Write the last files of a task; `_task.done` comes last."""


Step = (
    Watch
    | Leave
    | Journal
    | Interrupt
    | AnswerRequest
    | EndTakeover
    | ForgetRequest
    | SaveContext
    | PostNotice
    | WriteInterruptFile
    | Report
    | Preflight
    | TakeWorkspace
    | ReleaseWorkspace
    | OpenAttempts
    | OpenChore
    | RecordStart
    | WakeRecorder
    | LockSession
    | ReadOutput
    | RecordVerdict
    | IntendStop
    | Signal
    | Heartbeat
    | RecordEnd
    | Sweep
    | CheckLeftovers
    | WriteFiles
    | DismissRecorders
    | TriageFailure
    | TakeChoreResult
    | PassPlainGate
    | MarkStage
    | EndTask
)
