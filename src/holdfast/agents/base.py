"""The adapter protocol: what holdfast must know about an agent. Pure: no processes, no sleeping, no files."""

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


#: Options that the runner handles for every agent.
COMMON_OPTIONS = ("allowed_tools", "settings_path", "system_prompt_path")


class StopStep(Record):
    """A signal, and how long to wait for its effect before the next one."""

    signal: str
    pause_s: float


#: The stop of most programs.
TERM_THEN_KILL = (StopStep(signal="TERM", pause_s=10.0), StopStep(signal="KILL", pause_s=5.0))


class ConfigHome(Record):
    """Where a program keeps settings, login and sessions. In a sandbox it gets a private one at this path."""

    #: The first whose variable is set: `$NAME/…` or `~/…`.
    paths: tuple[str, ...]
    #: Shown as they are, read-only: the user's settings and instructions.
    reads: tuple[str, ...] = ()
    #: Shown as they are, writable: a login is renewed in place.
    logins: tuple[str, ...] = ()
    #: Logins (JSON) in which a command can be named, which the program then runs, also outside the sandbox:
    #: writable only if one of them expires, and has to be renewed.
    command_logins: tuple[str, ...] = ()
    #: Shown as they are, writable, if the task continues a session of the user.
    sessions: tuple[str, ...] = ()
    #: Copied before each attempt: settings that the program itself may change. A path with `~/` is copied to
    #: its last name.
    copies: tuple[str, ...] = ()
    #: Other data of the program that later attempts need, as patterns. Everything that no field names is
    #: removed before each attempt: an agent may have planted settings.
    keeps: tuple[str, ...] = ()
    #: The variable that is set to the path.
    variable: str = ""
    #: The user's own is used, writable.
    is_shared: bool = False


class Permission(Record):
    """What a permission profile means for an agent, and how its program is told."""

    #: read, edit or full.
    profile: str
    #: A sentence for users: what the program allows and refuses.
    means: str
    #: Its arguments. An option of the agent for the same thing replaces them.
    argv: tuple[str, ...] = ()
    #: Its arguments about single tools. The option `allowed_tools` replaces them.
    tools: tuple[str, ...] = ()
    #: For a program whose own sandbox does not work inside holdfast's: its arguments there, in place of
    #: `argv`. Then only holdfast's confines it, so with `read` the workspace is read-only.
    in_sandbox: tuple[str, ...] = ()
    env: dict[str, str] = {}


class Capabilities(Record):
    """What an agent can and cannot do, as data."""

    #: The program in PATH; empty if the task names it.
    program: str = ""
    #: If npm wraps a native binary: its path relative to the directory of the wrapper's real file. The first
    #: that exists is run.
    native: tuple[str, ...] = ()
    #: The session id can be chosen before the start.
    chooses_session_id: bool = False
    #: Where the id first appears: `chosen`, `event`, `result` (only at the end), `title` (looked up by our
    #: title).
    session_id_from: str = "event"
    #: The session can be resumed after its process ended.
    can_resume: bool = False
    resume_needs_same_cwd: bool = False
    #: The program itself refuses a second writer of a session. Otherwise only holdfast does.
    locks_session: bool = False
    #: The prompt is passed on stdin; otherwise in argv.
    stdin_prompt: bool = False
    #: The largest prompt it accepts.
    prompt_bytes: int | None = None
    #: stdout is a stream of JSON lines that the reader understands.
    has_events: bool = False
    #: Prefixes of lines that only repeat parts of a later line. They matter only for the last words of a run
    #: that was cut off, so they are skipped in a long backlog.
    pieces: tuple[str, ...] = ()
    #: When it prints nothing while it works: `tool`, `text`, `retry`, `start`.
    silent_during: tuple[str, ...] = ()
    #: `process`: usage starts at zero with each process; `session`: it continues; `none`: not on stdout.
    usage_scope: str = "none"
    reports_cost: bool = False
    #: Limits that the agent enforces: `turns`, `usd`. holdfast enforces the others.
    own_limits: tuple[str, ...] = ()
    #: Silence after which it may be stuck; null if silence means nothing.
    stale_s: float | None = None
    stop: tuple[StopStep, ...] = (StopStep(signal="TERM", pause_s=30.0), StopStep(signal="KILL", pause_s=5.0))
    #: Environment variables that are captured for it; a trailing * means a prefix.
    env: tuple[str, ...] = ()
    #: Required options (`run -o KEY=FILE`); each names a file.
    needs: tuple[str, ...] = ()
    #: Options that it knows besides COMMON_OPTIONS; null if unknown, then none is refused.
    options: tuple[str, ...] | None = None
    #: Those of them that are true or false.
    switches: tuple[str, ...] = ()
    #: The command to log in.
    login: str = ""
    #: Variables of which one is enough to be logged in, and files below HOME that a login leaves. Only their
    #: existence is checked.
    login_env: tuple[str, ...] = ()
    login_files: tuple[str, ...] = ()
    #: It appends the text of `system_prompt_path` to its system prompt. Otherwise the text is put before the
    #: prompt.
    appends_system_prompt: bool = False
    #: It supports `LaunchSpec.effort`; otherwise effort is ignored.
    takes_effort: bool = False
    #: Aliases of models → the name for the program. Other names are passed unchanged.
    aliases: dict[str, str] = {}
    #: The name of its npm package, to read the version from package.json without starting the program.
    package: str = ""
    #: Its config homes, for the sandbox.
    config_homes: tuple[ConfigHome, ...] = ()
    #: Memory that it needs, for admission.
    memory_mb: int = 50
    #: Its permission profiles: read, edit and full. Empty if the adapter has none: then the program's own
    #: settings decide.
    permissions: tuple[Permission, ...] = ()

    def permission(self, profile: str) -> Permission:
        """What a profile means; nothing if the adapter has no profiles."""
        for permission in self.permissions:
            if permission.profile == profile:
                return permission
        return Permission(profile=profile, means="")

    def model(self, name: str | None) -> str | None:
        """The requested model, with an alias replaced by the name that it is pinned to."""
        return self.aliases.get(name, name) if name is not None else None


class LaunchSpec(Record):
    """What an adapter needs to build a command line."""

    task: TaskSpec
    #: The program to execute: the native binary if there is one.
    program: str = ""
    #: The attempt's prompt file.
    prompt_path: str
    session_id: str | None
    resume_count: int
    model: str | None = None
    #: Reasoning effort, if the agent supports it: low, medium, high, xhigh.
    effort: str | None = None
    #: The attempt's directory, for private files of the program.
    directory: str = ""
    #: The task's directory for files that must outlive an attempt (such as a private config home with
    #: sessions).
    state_directory: str = ""
    #: The permission profile: read, edit or full; empty: the program's own settings decide.
    permissions: str = ""
    is_root: bool = False
    allowed_tools: tuple[str, ...] = ()
    #: A file whose text is appended to the system prompt.
    system_prompt_path: str | None = None
    settings_path: str | None = None
    #: The captured environment, for variables that must be extended and not replaced.
    env: dict[str, str] = {}
    max_turns: int | None = None
    budget_usd: float | None = None

    @property
    def writes(self) -> bool:
        """It may change files in its workspace."""
        return self.permissions in ("edit", "full")


class PrivateHome(Record):
    """A private config home for a program that would otherwise write to the user's.

    The runner creates it before the start.

    The user's home is the captured value of `variable`, or `default` below HOME. Missing names are skipped,
    and `variable` is set to `path` for the agent.
    """

    #: The variable with the program's config home.
    variable: str
    #: Created with mode 0700; it outlives the attempt.
    path: str
    default: str
    #: Linked: files that the program renews in place (a login), and files that it only reads.
    links: tuple[str, ...] = ()
    #: Those of them that the program renews.
    logins: tuple[str, ...] = ()
    #: Copied before each attempt: settings that the program changes.
    copies: tuple[str, ...] = ()
    #: Data of the program that later attempts need, as patterns. Everything else is removed before each
    #: attempt: an agent may have planted settings.
    keeps: tuple[str, ...] = ()


class Launch(Record):
    """A command line: a list, never a shell string."""

    argv: list[str]
    #: Added to the captured environment.
    env: dict[str, str] = {}
    #: The file for stdin; null means /dev/null.
    stdin: str | None = None
    home: PrivateHome | None = None


class End(Record):
    """What an attempt left besides its events."""

    exit: Exit
    #: The last 4 KB.
    stderr_tail: str = ""
    #: stdout ends inside a line.
    is_torn: bool = False


if TYPE_CHECKING:

    class Reader(Protocol):
        """Reads the stdout of one attempt, line by line.

        May keep state: a successor reads from the first line again.
        """

        def read(self, line: bytes) -> list[AgentEvent]:
            """The events of one line. Never raises: a line that it does not understand is no event."""
            ...

        def finish(self) -> list[AgentEvent]:
            """Events that were held back when the process ended."""
            ...

    class StderrReader(Reader, Protocol):
        """Optional methods of a reader that also understands stderr."""

        def read_stderr(self, line: bytes) -> list[AgentEvent]:
            """The events of one line of stderr. Never raises."""
            ...

        def hides_stderr(self, line: bytes) -> bool:
            """Whether this line is a log message for developers, which does not belong in output.log."""
            ...

    class TimedReader(Reader, Protocol):
        """Optional method of a reader whose lines say when they were printed."""

        def timestamp(self, line: bytes) -> float | None:
            """Seconds since 1970; None if the line does not have it. Never raises."""
            ...

    class UsageFile(Protocol):
        """Optional methods of an adapter whose program writes its usage to a file at its end."""

        def usage_file(self, directory: str) -> str | None:
            """The path of the file, in the attempt's directory (`LaunchSpec.directory`)."""
            ...

        def read_usage(self, data: bytes) -> list[AgentEvent]:
            """The usage in that file. Never raises: unreadable data yields nothing."""
            ...

    class Interactive(Protocol):
        """Optional method of an adapter whose program a person can use in the agent's session."""

        def takeover(self, spec: LaunchSpec) -> Launch:
            """The program for a person, in the session that `resume` would continue."""
            ...

    class Adapter(Protocol):
        """One agent."""

        name: str
        capabilities: Capabilities

        def launch(self, spec: LaunchSpec) -> Launch:
            """The first start of a session."""
            ...

        def resume(self, spec: LaunchSpec) -> Launch:
            """The next start in the same session, with all flags again."""
            ...

        def reader(self) -> Reader:
            """A reader for one attempt."""
            ...

        def classify(self, end: End, attempt: Attempt) -> Outcome:
            """How the attempt ended, from exit status, last event and errors together.

            Exit status 0 alone is not success.
            """
            ...


class Silent:
    """The reader of an agent whose output has no meaning for holdfast."""

    def read(self, line: bytes) -> list[AgentEvent]:
        """Text yields no events."""
        return []

    def finish(self) -> list[AgentEvent]:
        """Nothing is held back."""
        return []
