"""The table of all settings and their defaults."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Key:
    """One setting. `default` is written as in a file; None if there is none."""

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
        #: duration, count, bytes, text, choice, choices, flag, names, commands, pairs,
        #: windows, amount, amounts, rules or file.
        self.kind = kind
        self.about = about
        self.default = default
        self.choices = choices
        #: Whether `none` is allowed.
        self.may_be_none = may_be_none
        #: The minimum of a count.
        self.least = least
        #: The environment variable that overrides the files.
        self.variable = variable


KEYS: dict[str, Key] = {
    "base_interval": Key(
        kind="duration",
        default="30s",
        variable="MONITOR_BASE_INTERVAL",
        about="Check interval; also the first pause of the backoff.",
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
        about="Extra time before silence counts as a hang.",
    ),
    "deadline": Key(
        kind="duration",
        default="5h",
        may_be_none=True,
        variable="MONITOR_DEADLINE",
        about="Maximum active time of a task.",
    ),
    "timeout": Key(
        kind="duration",
        may_be_none=True,
        variable="SESSION_TIMEOUT",
        about="Time limit of one attempt.",
    ),
    "on_limit": Key(
        kind="choice",
        default="ask",
        choices=("ask", "end"),
        about="At a budget or time limit: ask a person, or end the task.",
    ),
    "interrupt_off": Key(
        kind="choices",
        default=[],
        choices=("request", "error", "blocked", "input", "output", "budget", "timeout", "quality"),
        about="Conditions in which no person is asked; the task continues or ends.",
    ),
    "max_retries": Key(
        kind="count", default=10, variable="MONITOR_MAX_RETRIES", about="Retries over a task's life."
    ),
    "stale": Key(
        kind="duration",
        may_be_none=True,
        variable="STALL_THRESHOLD",
        about="Silence after which an agent may be stuck; default: that of the agent.",
    ),
    "retry_ceiling": Key(
        kind="duration",
        default="30m",
        variable="MONITOR_RETRY_CEILING",
        about="How long an agent may retry a model that does not answer.",
    ),
    "output_limit": Key(kind="bytes", default="10GiB", about="Maximum raw output of one task; 0: no limit."),
    "memory_limit": Key(
        kind="bytes",
        may_be_none=True,
        about="Maximum address space of each process of an agent; default: no limit.",
    ),
    "agent": Key(kind="text", about="The default agent of 'run'."),
    "permissions": Key(
        kind="choice",
        default="edit",
        choices=("read", "edit", "full"),
        about="What agents may do: read, edit (files and commands in the workspace) or full.",
    ),
    "tmux": Key(
        kind="choice",
        default="auto",
        choices=("always", "never", "auto"),
        about="When to open a tmux window: at the start ('always') or when you attach ('auto').",
    ),
    "env": Key(
        kind="names", default=[], about="Environment variables to pass on, in addition to the usual ones."
    ),
    "env_file": Key(kind="file", about="A file of NAME=VALUE lines for the environment of every task."),
    "leftovers": Key(
        kind="choice",
        default="report",
        choices=("report", "kill", "keep"),
        about="What to do with processes that outlive a successful agent.",
    ),
    "sandbox": Key(
        kind="choice",
        default="off",
        choices=("off", "on"),
        about="Run agents in bubblewrap: they see no credentials and write only to their workspace.",
    ),
    "network": Key(
        kind="network",
        default="on",
        about="Network of sandboxed agents: on, off, or the hosts that they reach.",
    ),
    "inhibit_sleep": Key(
        kind="choice",
        default="on",
        choices=("on", "off"),
        about="Keep the machine awake while tasks run, where the system allows it.",
    ),
    "slots": Key(kind="count", default=1, least=1, about="Number of queue tasks that run in parallel."),
    "max_iterations": Key(
        kind="count",
        default=0,
        variable="MAX_ITERATIONS",
        about="Stop starting queue tasks after this many; 0: no limit.",
    ),
    "iteration_delay": Key(
        kind="duration",
        default="5s",
        variable="ITERATION_DELAY",
        about="Pause of a slot between two queue tasks.",
    ),
    "max_failures": Key(
        kind="count",
        default=5,
        variable="MAX_CONSECUTIVE_FAILURES",
        about="Failed queue tasks in a row before a person is asked.",
    ),
    "agent_limits": Key(kind="pairs", default=[], about="Parallel queue tasks per agent: claude=2."),
    "pool_limits": Key(kind="pairs", default=[], about="Parallel queue tasks per pool: nightly=1."),
    "pool_windows": Key(
        kind="windows",
        default=[],
        about="Times of day, local, in which tasks of a pool start: nightly=22:00-06:00.",
    ),
    "budget_per_day": Key(
        kind="amount",
        default="none",
        may_be_none=True,
        about="Dollars that queue tasks may cost per day; then nothing is started until midnight.",
    ),
    "pool_budgets": Key(
        kind="amounts", default=[], about="Dollars per day that tasks of a pool may cost: nightly=5."
    ),
    "min_free_memory": Key(
        kind="bytes", default="512MiB", about="Memory that must stay free when the next agent starts."
    ),
    "min_free_disk": Key(kind="bytes", default="1GiB", about="Free disk space needed to start a task."),
    "sources": Key(kind="names", default=[], about="Sources of the queue: gh:label=agent, bd:, cmd:…."),
    "refresh": Key(kind="duration", default="60s", about="How often sources are read."),
    "import_most": Key(
        kind="count", default=100, about="Items to import from a source at a time; at most 100."
    ),
    "priorities": Key(
        kind="pairs",
        default=[],
        about="Weights of priority names: high=10, medium=5, low=1, and your own.",
    ),
    "project_order": Key(
        kind="names", default=[], about="Projects or rigs whose items go first within a priority."
    ),
    "notify": Key(
        kind="rules", default=[], about="Notification rules: [[notify]] tables, in the user's settings only."
    ),
    "archive_after": Key(
        kind="duration",
        may_be_none=True,
        about="The keeper archives a task this long after its end; default: never.",
    ),
    "keep_for": Key(
        kind="duration",
        default="30d",
        about="How long to keep ended tasks; 'holdfast prune' removes older ones.",
    ),
    "knowledge": Key(kind="text", about="A folder in the project for a page about each archived task."),
    "pre_work": Key(
        kind="commands",
        default=[],
        about="Commands to run before a task; failures are reported to the agent.",
    ),
    "post_work": Key(
        kind="commands", default=[], about="Commands to run after the work; each must exit with 0."
    ),
    "expect_empty": Key(
        kind="commands",
        default=[],
        about="Commands to run after the work; each must exit with 0 and print nothing.",
    ),
    "clean_git": Key(
        kind="flag",
        default=False,
        about="Require that the work leaves no new uncommitted changes.",
    ),
    "on_quality": Key(
        kind="choice",
        default="interrupt",
        choices=("interrupt", "warn", "file_issue"),
        about="What to do if the checks after the work fail.",
    ),
    "issue_command": Key(
        kind="text", about="With on_quality = file_issue: a command that gets the reasons on stdin."
    ),
    "quality_timeout": Key(kind="duration", default="10m", about="Time limit of each of these commands."),
}

#: Setting → field of Limits.
LIMIT_OF_SETTING = {
    "base_interval": "base_interval_s",
    "max_interval": "max_interval_s",
    "grace": "grace_s",
    "deadline": "deadline_s",
    "timeout": "timeout_s",
    "on_limit": "on_limit",
    "max_retries": "max_retries",
    "stale": "stale_s",
    "retry_ceiling": "retry_ceiling_s",
    "output_limit": "output_bytes",
    "memory_limit": "memory_bytes",
}
