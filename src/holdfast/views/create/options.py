"""The options of a new task, with their types: the same names and texts as on the command line."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The options that are fields of Limits.
LIMIT_OPTIONS = (
    "deadline_s",
    "timeout_s",
    "stale_s",
    "grace_s",
    "base_interval_s",
    "max_interval_s",
    "max_retries",
    "linger_s",
    "stop_pause_s",
    "output_bytes",
    "memory_bytes",
    "budget_usd",
    "budget_tokens",
    "max_turns",
    "on_limit",
)


class TaskOptions(Record):
    """What to do, for whom and within which limits. What is left out has the default of the command line."""

    #: A prompt for an agent (or `file`), a command, or a written packet.
    prompt: str | None = None
    file: str | None = None
    command: tuple[str, ...] | None = None
    packet: str | None = None
    agent: str | None = None
    failover: tuple[str, ...] = ()
    model: str | None = None
    session: str | None = None
    #: Options of the agent, each `KEY=VALUE`.
    option: tuple[str, ...] = ()
    #: `read`, `edit` or `full`.
    permissions: str | None = None
    yolo: bool = False
    bootstrap: str | None = None
    #: Variables of the bootstrap, each `KEY=VALUE`.
    var: tuple[str, ...] = ()
    project: str | None = None
    worktree: bool = False
    sandbox: bool = False
    no_sandbox: bool = False
    network: str | None = None
    #: Names of variables to pass on, and a file of `NAME=VALUE` lines.
    env: tuple[str, ...] = ()
    env_file: str | None = None
    trust_project: bool = False
    no_quality: bool = False
    accept: tuple[str, ...] = ()
    name: str | None = None
    id: str | None = None
    #: Each `KEY=VALUE`.
    label: tuple[str, ...] = ()
    leftovers: str | None = None
    #: Durations with their unit (`90m`), numbers and sizes (`8GiB`), all as text.
    deadline_s: str | None = None
    timeout_s: str | None = None
    stale_s: str | None = None
    grace_s: str | None = None
    base_interval_s: str | None = None
    max_interval_s: str | None = None
    max_retries: str | None = None
    linger_s: str | None = None
    stop_pause_s: str | None = None
    output_bytes: str | None = None
    memory_bytes: str | None = None
    budget_usd: str | None = None
    budget_tokens: str | None = None
    max_turns: str | None = None
    on_limit: str | None = None

    def values(self) -> dict[str, Any]:
        """As the command line has them: by name, with lists."""
        values: dict[str, Any] = {name: getattr(self, name) for name in self.fields}
        return {name: [*value] if isinstance(value, tuple) else value for name, value in values.items()}
