"""The options of the verbs that create a task."""

from __future__ import annotations

from holdfast.model.permissions import PROFILES
from holdfast.views.cli.parse.command_spec import Option

PROJECT = Option(
    flags=("--project",),
    dest="project",
    metavar="DIR",
    completes="folder",
    help="Directory to work in (default: the current one).",
)
TRUST_PROJECT = Option(
    flags=("--trust-project",),
    dest="trust_project",
    kind="flag",
    help="Trust the project for this task only; it is recorded (see 'trust').",
)
PERMISSIONS = Option(
    flags=("--permissions",),
    dest="permissions",
    choices=PROFILES,
    help="What the agent may do: read; edit files and run commands in the workspace (default); full.",
)
ENV_FILE = Option(
    flags=("--env-file",),
    dest="env_file",
    metavar="FILE",
    completes="file",
    help="Set environment variables from the NAME=VALUE lines of a file.",
)
LABEL = Option(
    flags=("--label",),
    dest="label",
    kind="many",
    metavar="KEY=VALUE",
    help="Label to find the task by ('ls --label'; repeatable).",
)
_OPTIONS = (
    Option(
        flags=("-f", "--file"),
        dest="file",
        metavar="FILE",
        completes="file",
        help="Read the prompt from a file (- is stdin).",
    ),
    Option(
        flags=("--agent",),
        dest="agent",
        metavar="NAME",
        completes="agent",
        help="Agent that does the work.",
    ),
    Option(
        flags=("--failover",),
        dest="failover",
        kind="many",
        metavar="NAME",
        completes="agent",
        help="Agent that takes over if the one before is out of quota or unavailable (repeatable).",
    ),
    Option(flags=("--model",), dest="model", metavar="NAME", help="Model that the agent uses."),
    Option(
        flags=("--session",),
        dest="session",
        metavar="ID",
        help="Continue this session of the agent.",
    ),
    PROJECT,
    Option(
        flags=("--worktree",),
        dest="worktree",
        kind="flag",
        help="Work in a separate git worktree ('holdfast apply' merges the result).",
    ),
    Option(
        flags=("--packet",),
        dest="packet",
        metavar="DIR",
        completes="folder",
        help="Run the pipeline of a copy of this packet.",
    ),
    Option(
        flags=("--accept",),
        dest="accept",
        kind="many",
        metavar="CMD",
        help="Completed only if this command passes on a clean checkout of the work (repeatable).",
    ),
    Option(flags=("--name",), dest="name", metavar="TEXT", help="Display name."),
    Option(flags=("--id",), dest="id", metavar="ID", help="Task id (default: from date and name)."),
    LABEL,
    Option(
        flags=("-o", "--option"),
        dest="option",
        kind="many",
        metavar="KEY=VALUE",
        help="Option of the agent (repeatable).",
    ),
    PERMISSIONS,
    Option(
        flags=("--yolo",),
        dest="yolo",
        kind="flag",
        help="Same as --permissions full.",
    ),
    Option(
        flags=("--sandbox",),
        dest="sandbox",
        kind="flag",
        help="Run agents in bubblewrap: they see no credentials and write only to their workspace.",
    ),
    Option(
        flags=("--no-sandbox",),
        dest="no_sandbox",
        kind="flag",
        help="Run agents without a sandbox, whatever settings or packet say.",
    ),
    Option(
        flags=("--network",),
        dest="network",
        metavar="on|off|HOSTS",
        help="Network of sandboxed agents (on), or only these hosts: api.example.com,*.example.org:8443.",
    ),
    Option(
        flags=("--bootstrap",),
        dest="bootstrap",
        metavar="FILE|default",
        completes="file",
        help="Template to append to the agent's system prompt.",
    ),
    Option(
        flags=("--var",),
        dest="var",
        kind="many",
        metavar="KEY=VALUE",
        help="Variable of the bootstrap template (repeatable).",
    ),
    Option(
        flags=("--env",),
        dest="env",
        kind="many",
        metavar="NAME",
        help="Pass on this environment variable (repeatable).",
    ),
    ENV_FILE,
    Option(
        flags=("--deadline",),
        dest="deadline_s",
        metavar="TIME",
        help="Limit of active time (5h; none).",
    ),
    Option(
        flags=("--timeout",),
        dest="timeout_s",
        metavar="TIME",
        help="Time limit of one attempt (none).",
    ),
    Option(
        flags=("--stale",),
        dest="stale_s",
        metavar="TIME",
        help="Silence after which it may be stuck (depends on the agent).",
    ),
    Option(
        flags=("--grace",), dest="grace_s", metavar="TIME", help="Extra time before silence counts as a hang."
    ),
    Option(
        flags=("--base-interval",),
        dest="base_interval_s",
        metavar="TIME",
        help="Check interval and base of the backoff.",
    ),
    Option(
        flags=("--max-interval",),
        dest="max_interval_s",
        metavar="TIME",
        help="Longest pause between attempts.",
    ),
    Option(
        flags=("--max-retries",),
        dest="max_retries",
        metavar="N",
        help="Retries in total (10).",
    ),
    Option(
        flags=("--budget-usd",),
        dest="budget_usd",
        metavar="USD",
        help="Cost limit in dollars, as far as the agent reports it; then see --on-limit.",
    ),
    Option(
        flags=("--budget-tokens",),
        dest="budget_tokens",
        metavar="N",
        help="Limit of input and output tokens; then see --on-limit.",
    ),
    Option(
        flags=("--max-turns",),
        dest="max_turns",
        metavar="N",
        help="Limit of the agent's turns; then see --on-limit.",
    ),
    Option(
        flags=("--on-limit",),
        dest="on_limit",
        choices=("ask", "end"),
        help="When a budget or --timeout is used up: ask a person, or end the task (ask).",
    ),
    Option(
        flags=("--linger",),
        dest="linger_s",
        metavar="TIME",
        help="Time its process may take to exit after the result (10s).",
    ),
    Option(
        flags=("--stop-pause",),
        dest="stop_pause_s",
        metavar="TIME",
        help="Pause after the first stop signal (depends on the agent; 30s).",
    ),
    Option(
        flags=("--output-limit",),
        dest="output_bytes",
        metavar="BYTES",
        help="Limit of raw output (10 GiB).",
    ),
    Option(
        flags=("--memory-limit",),
        dest="memory_bytes",
        metavar="SIZE",
        help="Address space limit per process, such as 8GiB (none). Node.js reserves far more than it uses.",
    ),
    TRUST_PROJECT,
    Option(
        flags=("--no-quality",),
        dest="no_quality",
        kind="flag",
        help="Skip the project's own checks (settings pre_work, post_work, …).",
    ),
    Option(
        flags=("--leftovers",),
        dest="leftovers",
        choices=("report", "kill", "keep"),
        help="What to do with processes that outlive a successful agent (report).",
    ),
)

#: The headings of the help, and their options. Those without a heading come first.
_GROUPS = {
    "Agent": (
        "file", "agent", "failover", "model", "session", "option", "permissions", "yolo", "bootstrap", "var",
    ),
    "Workspace": (
        "project", "worktree", "packet", "sandbox", "no_sandbox", "network", "env", "env_file",
        "trust_project", "no_quality", "accept",
    ),
    "Limits": (
        "deadline_s", "timeout_s", "budget_usd", "budget_tokens", "max_turns", "on_limit", "max_retries",
        "output_bytes", "memory_bytes",
    ),
    "Supervision": (
        "stale_s", "grace_s", "base_interval_s", "max_interval_s", "linger_s", "stop_pause_s", "leftovers",
    ),
}  # fmt: skip
_GROUP_OF = {dest: group for group, dests in _GROUPS.items() for dest in dests}
OPTIONS = tuple(option.evolve(group=_GROUP_OF.get(option.dest, "")) for option in _OPTIONS)
