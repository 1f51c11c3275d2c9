"""The adapter protocol: what holdfast must know of an agent. Pure: no processes, no sleeping, no files."""

from __future__ import annotations

from holdfast.model.outcome import Outcome
from holdfast.model.process import Exit
from holdfast.model.record import Record
from holdfast.model.spec import TaskSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from holdfast.model.events import AgentEvent
    from holdfast.model.task import Attempt


class StopStep(Record):
    """A signal and how long its effect is awaited before the next one."""

    signal: str
    pause_s: float


class Capabilities(Record):
    """What an agent can and cannot do, as data."""

    #: The id of a session can be chosen before it starts.
    chooses_session_id: bool = False
    #: The same session can go on after its process ended.
    can_resume: bool = False
    #: The prompt goes by stdin; otherwise by argv.
    stdin_prompt: bool = False
    #: stdout is a stream of JSON lines that `parse` understands.
    has_events: bool = False
    #: Silence after which it may be stuck; null where silence means nothing.
    stale_s: float | None = None
    stop: tuple[StopStep, ...] = (StopStep(signal="TERM", pause_s=30.0), StopStep(signal="KILL", pause_s=5.0))
    #: Names of environment variables that are captured for it; a trailing * is a prefix.
    env: tuple[str, ...] = ()


class LaunchSpec(Record):
    """What an adapter needs to build a command line."""

    task: TaskSpec
    #: The attempt's prompt file.
    prompt_path: str
    session_id: str | None
    resume_count: int


class Launch(Record):
    """A command line: an array, never a shell string."""

    argv: list[str]
    #: Added to the captured environment.
    env: dict[str, str] = {}
    #: The file for descriptor 0; null is /dev/null.
    stdin: str | None = None


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


class Silent:
    """The reader of an agent whose output means nothing to us."""

    def read(self, line: bytes) -> list[AgentEvent]:
        """Text is text."""
        return []

    def finish(self) -> list[AgentEvent]:
        """Nothing is held back."""
        return []
