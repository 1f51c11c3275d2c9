"""The options that make a task, shared by every verb that makes one."""

from __future__ import annotations

from holdfast.views.cli.parse.command_spec import Option

#: Flag → field of Limits.
LIMIT_FLAGS = (
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

OPTIONS = (
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
        help="The agent that does the work.",
    ),
    Option(
        flags=("--failover",),
        dest="failover",
        kind="many",
        metavar="NAME",
        completes="agent",
        help="An agent that takes over when one is out of quota or unavailable; more than one: in this order.",
    ),
    Option(flags=("--model",), dest="model", metavar="NAME", help="The model that the agent uses."),
    Option(
        flags=("--session",),
        dest="session",
        metavar="ID",
        help="Go on with this session of the agent instead of beginning one.",
    ),
    Option(
        flags=("--project",),
        dest="project",
        metavar="DIR",
        completes="folder",
        help="Where it works (default: here).",
    ),
    Option(
        flags=("--worktree",),
        dest="worktree",
        kind="flag",
        help="Work in a git worktree of its own ('holdfast apply' brings the work back).",
    ),
    Option(
        flags=("--packet",),
        dest="packet",
        metavar="DIR",
        completes="folder",
        help="Copy this written packet into the home and run its pipeline.",
    ),
    Option(flags=("--name",), dest="name", metavar="TEXT", help="A name for people."),
    Option(
        flags=("--id",), dest="id", metavar="ID", help="The task's id (default: made from date and name)."
    ),
    Option(
        flags=("-o", "--option"),
        dest="option",
        kind="many",
        metavar="KEY=VALUE",
        help="An option of the agent.",
    ),
    Option(
        flags=("--yolo",),
        dest="yolo",
        kind="flag",
        help="Let the agent use its tools without asking; it is recorded.",
    ),
    Option(
        flags=("--bootstrap",),
        dest="bootstrap",
        metavar="FILE|default",
        completes="file",
        help="Append this template, filled in, to the agent's system prompt.",
    ),
    Option(
        flags=("--var",),
        dest="var",
        kind="many",
        metavar="KEY=VALUE",
        help="A variable of the bootstrap.",
    ),
    Option(flags=("--env",), dest="env", kind="many", metavar="NAME", help="Also pass this variable on."),
    Option(
        flags=("--env-file",),
        dest="env_file",
        metavar="FILE",
        completes="file",
        help="Also pass on the NAME=VALUE lines of this file.",
    ),
    Option(
        flags=("--deadline",),
        dest="deadline_s",
        metavar="TIME",
        help="Active time it may take (5h; none).",
    ),
    Option(
        flags=("--timeout",),
        dest="timeout_s",
        metavar="TIME",
        help="Time that one attempt may take (none).",
    ),
    Option(
        flags=("--stale",),
        dest="stale_s",
        metavar="TIME",
        help="Silence after which it may be stuck (the agent's own).",
    ),
    Option(flags=("--grace",), dest="grace_s", metavar="TIME", help="Grace before silence is called a hang."),
    Option(
        flags=("--base-interval",),
        dest="base_interval_s",
        metavar="TIME",
        help="Check interval, base of backoff.",
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
        help="Retries over its whole life (10).",
    ),
    Option(
        flags=("--budget-usd",),
        dest="budget_usd",
        metavar="USD",
        help="Dollars it may cost; then it is stopped and asks. (What an agent does not report is unknown.)",
    ),
    Option(
        flags=("--budget-tokens",),
        dest="budget_tokens",
        metavar="N",
        help="Tokens it may use, in and out; then it is stopped and asks.",
    ),
    Option(
        flags=("--max-turns",),
        dest="max_turns",
        metavar="N",
        help="Turns of the agent; then it is stopped and asks.",
    ),
    Option(
        flags=("--on-limit",),
        dest="on_limit",
        choices=("ask", "end"),
        help="At a budget or --timeout: ask a person, or end the task (ask).",
    ),
    Option(
        flags=("--linger",),
        dest="linger_s",
        metavar="TIME",
        help="How long it may live on after its result (10s).",
    ),
    Option(
        flags=("--stop-pause",),
        dest="stop_pause_s",
        metavar="TIME",
        help="Pause after the first stop signal (the agent's own, 30s).",
    ),
    Option(
        flags=("--output-limit",),
        dest="output_bytes",
        metavar="BYTES",
        help="Raw output it may print (10 GiB).",
    ),
    Option(
        flags=("--memory-limit",),
        dest="memory_bytes",
        metavar="SIZE",
        help="Address space of each of its processes, such as 8GiB (none). Node.js reserves far more than it uses.",
    ),
    Option(
        flags=("--no-quality",),
        dest="no_quality",
        kind="flag",
        help="Without the project's own checks before and after the work (settings pre_work, post_work, …).",
    ),
    Option(
        flags=("--leftovers",),
        dest="leftovers",
        choices=("report", "kill", "keep"),
        help="Processes that outlive a successful agent (report).",
    ),
)
