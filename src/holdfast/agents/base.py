"""The adapter protocol: what holdfast must know of an agent. Pure: no processes, no sleeping, no files."""

from __future__ import annotations

from holdfast.model.outcome import Outcome
from holdfast.model.process import Exit
from holdfast.model.record import Record
from holdfast.model.spec import TaskSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from holdfast.model.attempt import Attempt
    from holdfast.model.events import AgentEvent


#: Options that the runner reads, whatever the agent.
COMMON_OPTIONS = ("allowed_tools", "settings_path", "system_prompt_path")


class StopStep(Record):
    """A signal and how long its effect is awaited before the next one."""

    signal: str
    pause_s: float


class Capabilities(Record):
    """What an agent can and cannot do, as data."""

    #: The program in PATH; empty where the task names it.
    program: str = ""
    #: Where npm wraps a native binary: its path, relative to the directory of the wrapper's real file. The first that exists is run.
    native: tuple[str, ...] = ()
    #: The id of a session can be chosen before it starts.
    chooses_session_id: bool = False
    #: Where the id is first seen: `chosen`, `event`, `result` (only at the end), `title` (looked up by a title of ours).
    session_id_from: str = "event"
    #: The same session can go on after its process ended.
    can_resume: bool = False
    resume_needs_same_cwd: bool = False
    #: The program itself refuses a second writer of a session. Where not, only holdfast does.
    locks_session: bool = False
    #: The prompt goes by stdin; otherwise by argv.
    stdin_prompt: bool = False
    #: The largest prompt it takes.
    prompt_bytes: int | None = None
    #: stdout is a stream of JSON lines that the reader understands.
    has_events: bool = False
    #: How lines begin that say nothing but in pieces what a later line says whole. They change no event but the last words of a
    #: run that was cut off, so in a long backlog they are passed over.
    pieces: tuple[str, ...] = ()
    #: When it prints nothing though it works: `tool`, `text`, `retry`, `start`.
    silent_during: tuple[str, ...] = ()
    #: `process`: usage begins at zero with each process; `session`: it goes on; `none`: not on stdout.
    usage_scope: str = "none"
    reports_cost: bool = False
    #: Limits of its own: `turns`, `usd`. What is missing here, holdfast enforces.
    own_limits: tuple[str, ...] = ()
    #: Silence after which it may be stuck; null where silence means nothing.
    stale_s: float | None = None
    stop: tuple[StopStep, ...] = (StopStep(signal="TERM", pause_s=30.0), StopStep(signal="KILL", pause_s=5.0))
    #: Names of environment variables that are captured for it; a trailing * is a prefix.
    env: tuple[str, ...] = ()
    #: Options (`run -o KEY=FILE`) without which it cannot start; each names a file.
    needs: tuple[str, ...] = ()
    #: Options that it knows beside COMMON_OPTIONS; null where the adapter does not say, then none is refused.
    options: tuple[str, ...] | None = None
    #: Those of them that are true or false.
    switches: tuple[str, ...] = ()
    #: The command that logs a person in.
    login: str = ""
    #: Variables of which one is enough to be logged in, and files below HOME that a login leaves. Only whether they are
    #: there is ever looked at.
    login_env: tuple[str, ...] = ()
    login_files: tuple[str, ...] = ()
    #: It appends the text of `system_prompt_path` to its own system prompt. Where not, the text goes in front of the prompt.
    appends_system_prompt: bool = False
    #: `LaunchSpec.effort` reaches it; where not, effort is a wish that nobody hears.
    takes_effort: bool = False
    #: Short names of models → what the program is given. What is not here goes to it as it was written.
    aliases: dict[str, str] = {}
    #: Where npm keeps its package.json: the package's name, to read the version without starting the program.
    package: str = ""
    #: What it needs to run, for admission.
    memory_mb: int = 50


class LaunchSpec(Record):
    """What an adapter needs to build a command line."""

    task: TaskSpec
    #: The program to execute: native where there is one.
    program: str = ""
    #: The attempt's prompt file.
    prompt_path: str
    session_id: str | None
    resume_count: int
    model: str | None = None
    #: How hard it should think, where it can be told: low, medium, high, xhigh.
    effort: str | None = None
    #: The attempt's directory, for private files of the program.
    directory: str = ""
    #: The task's directory for what must outlive an attempt (a private config home with the sessions in it).
    state_directory: str = ""
    #: Permission prompts are bypassed: opt-in, recorded, shown.
    yolo: bool = False
    #: The stage is there to change files: where nothing else is said, it may edit those of its workspace.
    writes: bool = False
    is_root: bool = False
    allowed_tools: tuple[str, ...] = ()
    #: A file whose text is appended to the system prompt.
    system_prompt_path: str | None = None
    settings_path: str | None = None
    #: What the program inherits, for a variable that must be added to and not replaced.
    env: dict[str, str] = {}
    max_turns: int | None = None
    budget_usd: float | None = None


class PrivateHome(Record):
    """A config home of the task's own, for a program that writes into the user's. The runner makes it before the start.

    The user's home is the captured value of `variable`, or `default` below HOME. A name that it lacks is passed over, one
    that the private home has already is left alone, and `variable` is set to `path` for the agent.
    """

    #: What tells the program where its home is.
    variable: str
    #: Made with mode 0700; it outlives the attempt.
    path: str
    default: str
    #: Linked: what the program renews in place (a login), and what it only reads.
    links: tuple[str, ...] = ()
    #: Copied once: what the program changes for reasons of its own.
    copies: tuple[str, ...] = ()


class Launch(Record):
    """A command line: an array, never a shell string."""

    argv: list[str]
    #: Added to the captured environment.
    env: dict[str, str] = {}
    #: The file for descriptor 0; null is /dev/null.
    stdin: str | None = None
    home: PrivateHome | None = None


class End(Record):
    """What an attempt left behind, beside what its events say."""

    exit: Exit
    #: The last 4 KB.
    stderr_tail: str = ""
    #: stdout ends inside a line.
    is_torn: bool = False


if TYPE_CHECKING:

    class Reader(Protocol):
        """Reads the stdout of one attempt, line by line. It may remember: a successor reads from the first line again."""

        def read(self, line: bytes) -> list[AgentEvent]:
            """The events of one line. Never raises: a line that it does not understand is no event."""
            ...

        def finish(self) -> list[AgentEvent]:
            """What it still held back when the process ended."""
            ...

    class StderrReader(Reader, Protocol):
        """A reader may also understand stderr; whoever has one asks for these two by name."""

        def read_stderr(self, line: bytes) -> list[AgentEvent]:
            """The events of one line of stderr. Never raises."""
            ...

        def hides_stderr(self, line: bytes) -> bool:
            """Whether this line is a log for developers, and no word for whoever reads output.log."""
            ...

    class UsageFile(Protocol):
        """An adapter may let its program write the usage into a file at its end; whoever has one asks by name."""

        def usage_file(self, directory: str) -> str | None:
            """Where it is written, below the attempt's directory (`LaunchSpec.directory`)."""
            ...

        def read_usage(self, data: bytes) -> list[AgentEvent]:
            """The usage in that file. Never raises: what cannot be read says nothing."""
            ...

    class Adapter(Protocol):
        """One agent."""

        name: str
        capabilities: Capabilities

        def launch(self, spec: LaunchSpec) -> Launch:
            """The first start of a session."""
            ...

        def resume(self, spec: LaunchSpec) -> Launch:
            """The next start in the same session, all flags again."""
            ...

        def reader(self) -> Reader:
            """A reader for one attempt."""
            ...

        def classify(self, end: End, attempt: Attempt) -> Outcome:
            """How the attempt ended: exit status and last event and errors together. Exit 0 is not success."""
            ...


def model_name(able: Capabilities, name: str | None) -> str | None:
    """The model that is asked for, with an alias replaced by the name that it is pinned to."""
    return able.aliases.get(name, name) if name is not None else None


class Silent:
    """The reader of an agent whose output means nothing to us."""

    def read(self, line: bytes) -> list[AgentEvent]:
        """Text is text."""
        return []

    def finish(self) -> list[AgentEvent]:
        """Nothing is held back."""
        return []
