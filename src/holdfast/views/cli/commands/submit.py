"""holdfast submit: add a task to the queue."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.errors import UsageError
from holdfast.model.spec import QueueSpec
from holdfast.packet import load
from holdfast.queue.engine import parse_priority, weights
from holdfast.queue.work_item import parse_time
from holdfast.store.layout import Home
from holdfast.views.cli.create import from_command_line
from holdfast.views.cli.create.task_options import OPTIONS
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.queue import enqueue, pools, schedules
from holdfast.views.cli.show import out

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
            help="Again and again: day@02:00, monday@09:00 (local time) or 6h. --id names the schedule.",
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
    task = from_command_line.read(values, verb="submit")
    if values["every"] is not None:
        return schedules.add(home, task, _place(home, values, task.settings), values)
    packet = enqueue.create(home, task, _place(home, values, task.settings))
    enqueue.add(home, packet)
    out.task_line(packet.task_id, load.read_manifest(packet) if values["json"] else None)
    enqueue.wake_keeper(home)
    return 0


def _place(home: Home, values: dict[str, Any], settings: dict[str, Any]) -> QueueSpec:
    """Its place in the queue. Raises UsageError, NotFound."""
    priority, not_before = values["priority"], values["not_before"]
    try:
        priority = parse_priority(
            "medium" if priority is None else priority, weights(settings.get("priorities", ()))
        )
    except ValueError as error:
        raise UsageError(f"--priority: {error}", hint="for example --priority high") from error
    try:
        not_before = None if not_before is None else parse_time(not_before, now=clock.now())
    except ValueError as error:
        raise UsageError(
            f"--not-before: {error}", hint="for example --not-before 22:00, or --not-before +2h"
        ) from error
    if values["pool"]:
        pools.check_new(values["pool"])
    # A completed task may already be archived.
    after = tuple(load.find(home, text, archived=True).task_id for text in values["after"])
    return QueueSpec(priority=priority, pool=values["pool"] or "default", after=after, not_before=not_before)
