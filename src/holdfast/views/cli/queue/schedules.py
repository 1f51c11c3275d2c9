"""Schedules on the command line: add, list and remove them."""

from __future__ import annotations

import os

from holdfast import clock, ids
from holdfast.errors import DuplicateTask, UsageError
from holdfast.model.spec import QueueSpec
from holdfast.queue import schedule
from holdfast.store import audit
from holdfast.store.layout import Home
from holdfast.views.cli.show import out, wrapped_table
from holdfast.views.create import enqueue
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.views.create.new_task import NewTask

_NAME_CHARS = 48


def add(home: Home, task: NewTask, queue: QueueSpec, values: dict[str, Any]) -> int:
    """Write the schedule of a task, and print its name."""
    _refuse_other_times(values)
    try:
        schedule.check(values["every"])
    except ValueError as error:
        raise UsageError(f"--every: {error}", hint=f"for example --every {schedule.EXAMPLES}") from error
    if task.manifest_yaml is not None:
        raise UsageError(
            "--every and --packet exclude each other",
            hint="schedule a command: -- holdfast submit --packet DIR",
        )
    name = (values["id"] or ids.slug(task.spec.task_name))[:_NAME_CHARS]
    if os.path.exists(home.schedule(name)):
        raise DuplicateTask(
            f"the schedule {name} already exists",
            hint=f"give another name with --id, or remove it: 'holdfast queue rm {name}'",
        )
    made = schedule.Schedule(
        name=name,
        every=values["every"],
        created_at=clock.iso_now(),
        spec=task.spec.evolve(queue=queue).to_json(),
        prompt=None if task.prompt is None else os.fsdecode(task.prompt),
        env=task.env,
    )
    schedule.create(home, made)
    audit.append(
        home, {"operation": "schedule.added", "by": audit.whoami(), "reason": f"{name}: {made.every}"}
    )
    out.data(schedule.summary(made)) if values["json"] else print(name)
    first = amounts.minute(clock.iso(schedule.next_at(made)))
    out.talk(f"first run {first}; 'holdfast queue ls' shows it, 'holdfast queue rm {name}' removes it")
    enqueue.wake_keeper(home, talk=out.talk)
    return 0


def show(schedules: list[schedule.Schedule]) -> None:
    """Print them as a table."""
    if schedules:
        wrapped_table.show(
            ("SCHEDULE", "EVERY", "AGENT", "NEXT RUN"),
            [[each.name, each.every, str(each.spec.get("agent", "")), _next(each)] for each in schedules],
        )


def _next(each: schedule.Schedule) -> str:
    at = schedule.next_at(each)
    return amounts.minute(clock.iso(at)) if at > clock.now() else "due"


def rm(home: Home, name: str) -> bool:
    """Remove a schedule; its tasks stay. Returns whether there was one."""
    if schedule.read(home, name) is None:
        return False
    schedule.remove(home, name)
    audit.append(home, {"operation": "schedule.removed", "by": audit.whoami(), "reason": name})
    out.talk(f"the schedule {name} is removed; tasks that it started stay")
    return True


def _refuse_other_times(values: dict[str, Any]) -> None:
    for name in ("not_before", "after"):
        if values[name]:
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"--every and {flag} exclude each other", hint="give one of them")
