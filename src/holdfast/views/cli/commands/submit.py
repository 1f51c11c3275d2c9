"""holdfast submit: add a task to the queue."""

from __future__ import annotations

from holdfast import paths
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.parse.task_options import OPTIONS
from holdfast.views.cli.queue import schedules
from holdfast.views.cli.show import out
from holdfast.views.create import enqueue, from_options, queue_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="submit",
    summary="Add a task to the queue.",
    description="Takes the same arguments as 'run' and prints the task's id. The keeper starts queued tasks "
    "by priority when a slot is free; 'holdfast queue ls' shows their order.",
    examples=(
        'holdfast submit --agent claude "fix the tests"',
        'holdfast submit --agent codex --priority high --after 20260131-fix "write the changelog"',
        "holdfast submit --not-before 22:00 --pool nightly -- make bench",
        'holdfast submit --every day@02:00 --id deps --agent claude "upgrade the dependencies"',
    ),
    takes_command=True,
    arguments=(Argument(dest="prompt", metavar="[PROMPT]", required=False),),
    options=(
        Option(
            flags=("--priority",),
            dest="priority",
            metavar="N",
            help="high (10), medium (5), low (1) or a number; highest first (medium).",
        ),
        Option(flags=("--pool",), dest="pool", metavar="NAME", help="Pool of the task (default)."),
        Option(
            flags=("--after",),
            dest="after",
            kind="many",
            metavar="TASK",
            completes="task",
            help="Start after this task has completed; repeatable.",
        ),
        Option(
            flags=("--every",),
            dest="every",
            metavar="WHEN",
            help="Again and again: day@02:00, monday@09:00 (local time) or 6h (at least 60s). --id names it.",
        ),
        Option(
            flags=("--not-before",),
            dest="not_before",
            metavar="TIME",
            help="Earliest start: 22:00, 2026-01-31T22:00 (local time), …T12:00:00Z, or +90m.",
        ),
        JSON.evolve(help="Print the new manifest instead of the id."),
        *OPTIONS,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Create the packet, add it to the queue, and wake the keeper."""
    home = Home(paths.ensure_home(paths.home()))
    task = from_options.read(values, verb="submit", talk=out.talk)
    queue = queue_options.read(
        home,
        task.settings,
        priority=values["priority"],
        pool=values["pool"],
        after=values["after"],
        not_before=values["not_before"],
    )
    if values["every"] is not None:
        return schedules.add(home, task, queue, values)
    packet = enqueue.create(home, task, queue)
    enqueue.add(home, packet, talk=out.talk)
    out.task_line(packet.task_id, load.read_manifest(packet) if values["json"] else None)
    enqueue.wake_keeper(home, talk=out.talk)
    enqueue.say_if_stopped(packet, talk=out.talk)
    return 0
