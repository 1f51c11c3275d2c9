"""What can be set, and what holds where nobody sets it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Key:
    """One setting. `default` is as people write it, None where there is none."""

    def __init__(
        self,
        *,
        kind: str,
        about: str,
        default: Any = None,
        choices: tuple[str, ...] = (),
        may_be_none: bool = False,
        least: int = 0,
        variable: str = "",
    ) -> None:
        #: duration, count, bytes, text, choice, choices, flag, names, commands, pairs, rules or file.
        self.kind = kind
        self.about = about
        self.default = default
        self.choices = choices
        #: Whether `none` is a value.
        self.may_be_none = may_be_none
        #: Of a count.
        self.least = least
        #: The environment variable that beats the files.
        self.variable = variable


KEYS: dict[str, Key] = {
    "base_interval": Key(
        kind="duration",
        default="30s",
        variable="MONITOR_BASE_INTERVAL",
        about="Check interval, base of backoff.",
    ),
    "max_interval": Key(
        kind="duration",
        default="5m",
        variable="MONITOR_MAX_INTERVAL",
        about="Longest pause between attempts.",
    ),
    "grace": Key(
        kind="duration",
        default="30s",
        variable="MONITOR_GRACE_PERIOD",
        about="Grace before silence is called a hang.",
    ),
    "deadline": Key(
        kind="duration",
        default="5h",
        may_be_none=True,
        variable="MONITOR_DEADLINE",
        about="Active time that a task may take.",
    ),
    "timeout": Key(
        kind="duration",
        may_be_none=True,
        variable="SESSION_TIMEOUT",
        about="Time that one attempt may take.",
    ),
    "on_limit": Key(
        kind="choice",
        default="ask",
        choices=("ask", "end"),
        about="At a budget or a time limit of an attempt: ask a person, or end the task.",
    ),
    "interrupt_off": Key(
        kind="choices",
        default=[],
        choices=("request", "error", "blocked", "input", "output", "budget", "timeout", "quality"),
        about="Conditions at which no person is asked; the task goes on, or ends.",
    ),
    "max_retries": Key(
        kind="count", default=10, variable="MONITOR_MAX_RETRIES", about="Retries over a task's whole life."
    ),
    "stale": Key(
        kind="duration",
        may_be_none=True,
        variable="STALL_THRESHOLD",
        about="Silence after which an agent may be stuck; the agent's own where not set.",
    ),
    "output_limit": Key(kind="bytes", default="10GiB", about="Raw output of one task; 0 is no limit."),
    "memory_limit": Key(
        kind="bytes",
        may_be_none=True,
        about="Address space of each process of an agent; no limit where not set.",
    ),
    "agent": Key(kind="text", about="The agent of a 'run' that names none."),
    "tmux": Key(
        kind="choice",
        default="auto",
        choices=("always", "never", "auto"),
        about="Windows: 'always' opens one at the start, 'auto' when you attach.",
    ),
    "env": Key(kind="names", default=[], about="Variables that are passed on, beside the usual ones."),
    "env_file": Key(
        kind="file", about="A file of NAME=VALUE lines that are added to every task's environment."
    ),
    "leftovers": Key(
        kind="choice",
        default="report",
        choices=("report", "kill", "keep"),
        about="What happens to processes that outlive a successful agent.",
    ),
    "slots": Key(kind="count", default=1, least=1, about="Tasks of the queue that run at the same time."),
    "max_iterations": Key(
        kind="count",
        default=0,
        variable="MAX_ITERATIONS",
        about="Tasks of the queue after which no more are started; 0 is no limit.",
    ),
    "iteration_delay": Key(
        kind="duration",
        default="5s",
        variable="ITERATION_DELAY",
        about="Pause of a slot between two tasks of the queue.",
    ),
    "max_failures": Key(
        kind="count",
        default=5,
        variable="MAX_CONSECUTIVE_FAILURES",
        about="Tasks of the queue that may fail in a row before a person is asked.",
    ),
    "agent_limits": Key(
        kind="pairs", default=[], about="Tasks of the queue at the same time for an agent: claude=2."
    ),
    "pool_limits": Key(
        kind="pairs", default=[], about="Tasks of the queue at the same time for a pool: nightly=1."
    ),
    "min_free_memory": Key(
        kind="bytes", default="512MiB", about="Memory that must be free beside what the next agent needs."
    ),
    "min_free_disk": Key(kind="bytes", default="1GiB", about="Disk space without which nothing is started."),
    "sources": Key(
        kind="names", default=[], about="Where the queue is filled from: gh:label=agent, bd:, cmd:…."
    ),
    "refresh": Key(kind="duration", default="60s", about="How often the sources are asked."),
    "import_most": Key(
        kind="count", default=100, about="Items that one look at a source takes in; 100 at most."
    ),
    "priorities": Key(
        kind="pairs",
        default=[],
        about="What words for a priority weigh: high=10, medium=5, low=1, and your own.",
    ),
    "project_order": Key(
        kind="names", default=[], about="Projects or rigs whose items go first among equally urgent ones."
    ),
    "notify": Key(
        kind="rules", default=[], about="Who is told of what: [[notify]] tables, in your own settings."
    ),
    "archive_after": Key(
        kind="duration",
        may_be_none=True,
        about="How long after its end the keeper archives a task; never where not set.",
    ),
    "keep_for": Key(
        kind="duration",
        default="30d",
        about="How long ended tasks are kept; 'holdfast prune' removes older ones.",
    ),
    "knowledge": Key(
        kind="text", about="A folder of the project that keeps a page about each task that is archived."
    ),
    "pre_work": Key(
        kind="commands",
        default=[],
        about="Run before a task; what fails is told to the agent, and stops nothing.",
    ),
    "post_work": Key(kind="commands", default=[], about="Run after a task's work; each must exit with 0."),
    "expect_empty": Key(
        kind="commands", default=[], about="Run after a task's work; each must exit with 0 and print nothing."
    ),
    "clean_git": Key(
        kind="flag",
        default=False,
        about="Whether nothing may be uncommitted after the work but what was before.",
    ),
    "on_quality": Key(
        kind="choice",
        default="interrupt",
        choices=("interrupt", "warn", "file_issue"),
        about="What follows where the checks after the work do not pass.",
    ),
    "issue_command": Key(
        kind="text", about="With on_quality = file_issue: the command that gets the reasons on its stdin."
    ),
    "quality_timeout": Key(
        kind="duration", default="10m", about="Time that each of these commands may take."
    ),
}

#: Setting → field of Limits.
LIMITS = {
    "base_interval": "base_interval_s",
    "max_interval": "max_interval_s",
    "grace": "grace_s",
    "deadline": "deadline_s",
    "timeout": "timeout_s",
    "on_limit": "on_limit",
    "max_retries": "max_retries",
    "stale": "stale_s",
    "output_limit": "output_bytes",
    "memory_limit": "memory_bytes",
}
