"""What the planner may know besides the task: what the runner observed, and did without an event.

Nothing here reads a file or a clock. `gather.py` fills it in before every plan.
"""

from __future__ import annotations

from holdfast.model.attempt_table import Reading
from holdfast.model.process import Exit
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.errors import HoldfastError
    from holdfast.model.events import Event
    from holdfast.model.request import Request
    from holdfast.watch.verdict import Verdict


class Now(Record):
    """One moment on both clocks."""

    #: Seconds since the epoch; a person may set this clock.
    wall: float
    #: Seconds on the monotonic clock, which stops while the machine sleeps.
    mono: float


class ExecutionFacts(Record):
    """What was observed of one open execution."""

    #: What its directory says. Read while it starts and once its process is gone.
    reading: Reading | None = None
    exit: Exit | None = None
    #: The start was journalled by this runner and the process is watched, or its end is known.
    is_watched: bool = False
    #: Its process is gone, and its exit record exists or will never be written.
    has_ended: bool = False
    #: Output is left to read after its end.
    has_unread_output: bool = False
    #: How long a record (identity or exit) has been awaited, and whether its writer should be woken; null:
    #: nothing is awaited.
    awaited_s: float | None = None
    is_overdue: bool = False
    #: Time until its output is to be read; 0 for now.
    read_in_s: float = 0.0
    #: Time until its death has to be asked for, where the kernel does not report it.
    poll_in_s: float = 3600.0
    #: Time until the next stop signal; null if it is not being stopped.
    signal_in_s: float | None = None
    #: Its program chose the session's id, and the session is not locked yet.
    needs_session_lock: bool = False
    #: Time until it has to be judged again; `judgement` is there once that is over.
    judge_in_s: float = 0.0
    judgement: Judgement | None = None


class Judgement(Record):
    """Everything that can be a reason to stop an execution."""

    lived_s: float
    silent_s: float
    output_bytes: int
    verdict: Verdict
    #: Whether the verdict differs from the last one.
    is_news: bool
    waits_for_input: bool = False
    last_line: str = ""


class PreflightProblem(Record):
    """Something that a stage needs and that the preflight did not find."""

    text: str
    #: The program, if that is what is missing.
    missing_program: str = ""


class StartFailure(Record):
    """Why the due stages could not be started."""

    #: `prompt`: it cannot be composed; `session`: another attempt lives in it; `process`: none could be
    #: forked.
    kind: str
    stage: str
    reason: str
    #: When to try again (`process`).
    again_mono: float = 0.0


class PendingRequest(Record):
    """The request in the inbox that is next."""

    name: str
    request: Request | HoldfastError
    #: If it is not valid: other files that are not valid either.
    junk: tuple[str, ...] = ()
    #: Of a retry that changes the spec: the changes, or why they are not possible.
    amended: tuple[dict[str, Any], ...] = ()
    objection: str = ""
    #: Whether a person still has the session that the journal says is taken over.
    is_taken_over: bool = False
    #: Of a takeover: whether the command that asks for it is still there.
    is_claimed: bool = False


class WorkspaceFacts(Record):
    """The lock of the project directory, as far as this runner knows."""

    is_held: bool = False
    #: The task that writes there, and when to try again.
    writer: str | None = None
    again_mono: float = 0.0


class ChoreResult(Record):
    """What an ended chore left behind."""

    #: Whether its result file can be used.
    is_usable: bool
    #: Why not: the start of its stderr.
    complaint: str = ""


class PreparedInterrupt(Record):
    """An interrupt on its way: what it will record, and what is done for it already."""

    question: str
    reason: str
    #: As `model.status.Cause`.
    cause: str = ""
    approval: str | None = None
    request: str | None = None
    #: Events of the same record, before the move.
    before: tuple[Event, ...] = ()
    is_saved: bool = False
    is_announced: bool = False
    has_file: bool = False


class Remembered:
    """What this runner did that no event records.

    A successor does it again, so doing it twice must be harmless.
    """

    def __init__(self, jitter: float = 0.0) -> None:
        #: Spreads tasks that wait for the same limit; 0 to 1, one value for the runner's life.
        self.jitter = jitter
        #: Attempts whose leftovers were looked for, whose files are written, whose recorders may leave.
        self.leftovers_checked: set[int] = set()
        self.files_written: set[int] = set()
        self.recorders_dismissed: set[int] = set()
        #: When the next pass of a running sweep is due.
        self.sweep_due_mono: dict[int, float] = {}
        #: Gates whose refusal was announced.
        self.refusals_announced: set[int] = set()
        #: The interrupt that is being prepared.
        self.interrupting: PreparedInterrupt | None = None
        #: The run for which the preflight was done, and what it found missing.
        self.preflight_run = 0
        self.problems: tuple[PreflightProblem, ...] = ()
        self.start_failure: StartFailure | None = None
        self.workspace = WorkspaceFacts()
        #: Whether the reports of an interrupt are written, and the events to announce with them.
        self.is_reported = False
        self.unannounced: tuple[Event, ...] = ()
        #: When the last heartbeat was shown.
        self.heartbeat_mono = 0.0


class Facts(Record):
    """What was observed before one plan."""

    remembered: Remembered
    #: The oldest request in the inbox.
    request: PendingRequest | None = None
    executions: dict[int, ExecutionFacts] = {}
    #: Why nothing may be started: its output cannot be redacted, or its environment is gone; null if it may.
    problem: str | None = None
    #: Why the packet counts as made by another program; empty if a command made it, or a person adopted it.
    not_admitted: str = ""
    #: The text of an interrupt file, where one asks for a person.
    interrupt_file: str | None = None
    #: The stage whose approval that file asks for; null if no runner wrote it.
    file_asks_approval: str | None = None
    #: Time until the next heartbeat; 0 for now.
    heartbeat_in_s: float = 0.0
    #: Time until a wait is over, and how long it was meant to be.
    wait_left_s: float = 0.0
    wait_s: float = 0.0
    #: Whether the project directory exists, and whether it is in a git repository.
    has_project: bool = True
    has_repository: bool = False
    #: Where the project leads to now, if that is another directory than when the task was created.
    project_moved_to: str = ""
    #: Whether `_task.done` is written.
    is_closed: bool = False
    chore_result: ChoreResult | None = None
    #: Whether a person still has the session that the journal says is taken over.
    is_taken_over: bool = False
    #: How to log in, for agents whose attempt ended for lack of it.
    logins: dict[str, str] = {}
