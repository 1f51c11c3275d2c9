"""Making a task that waits for its turn. The packet comes first: it is the truth, and the queue follows it."""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError
from holdfast.model.record import Record
from holdfast.model.spec import QueueSpec, short_name
from holdfast.model.status import ENDS, Status
from holdfast.packet import inbox
from holdfast.queue import sync
from holdfast.spawn import ensure_keeper
from holdfast.store.layout import Home, Packet
from holdfast.views.cli import request
from holdfast.views.cli.create import new_packet, new_task
from holdfast.views.cli.create.task_options import OPTIONS
from holdfast.views.cli.parse import command_spec
from holdfast.views.cli.show import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.queue.work import Work
    from holdfast.views.cli.create.new_task import Asked


def make(home: Home, task: Asked, place: QueueSpec, *, work: dict[str, object] | None = None) -> Packet:
    """The packet of a task that waits. Killed right after it, nothing is lost: the next look at the queue adds it."""
    changes: dict[str, Any] = {"queue": place, **({"work": work} if work else {})}
    return new_packet.make(home, task.evolve(spec=task.spec.evolve(**changes)), status=Status.QUEUED)


def add(home: Home, packet: Packet) -> None:
    """Put one new packet into the queue. Should that fail, the packet stands, and the next look adds it."""
    try:
        with sync.LocalQueue(home) as queue:
            if queue.is_new:
                sync.sync(home, queue)
                return
            item = sync.item_of(packet, has_run=False)
            if item is None:
                return
            queue.add(item)
            for on_id in item.after:
                status = sync.status_of(home, on_id)
                if status is None or status in ENDS:
                    queue.settle(on_id, status or "gone")
    except HoldfastError as error:
        out.talk(f"warning: {packet.task_id} waits, but the queue did not take it yet: {error}")


def wake(home: Home) -> None:
    """Let the keeper look at the queue."""
    if os.path.exists(home.down):
        out.talk(request.IS_DOWN)
        return
    try:
        ensure_keeper(home, by_person=True)
    except (OSError, HoldfastError) as error:
        out.talk(f"warning: no keeper was started: {error}")
    inbox.ring_keeper(home)


def values_of(work: Work, *, agent: str | None, project: str | None) -> dict[str, Any]:
    """A work item as the values of a command line; its own agent and project beat the given ones."""
    empty = command_spec.defaults(command_spec.Command(name="", summary="", options=OPTIONS))
    return {
        **empty,
        "prompt": None if work.command else work.prompt,
        "command": work.command,
        "agent": None if work.command else work.agent or agent,
        "model": work.model,
        "project": work.project or project,
        "name": short_name(work.title),
        "id": work.task_id,
        # An agent that nobody watches has to know where it is, and how to ask.
        "bootstrap": None if work.command or work.bootstrap == "none" else work.bootstrap,
        "option": list(work.options),
        "var": list(work.variables),
    }


class Intake(Record):
    """A work item as a task that could be made now."""

    task: Asked
    place: QueueSpec
    about: dict[str, object]


def check(work: Work, *, agent: str | None, project: str | None, pool: str | None) -> Intake:
    """A work item as a task. Nothing is written. Raises UsageError."""
    task = new_task.read(values_of(work, agent=agent, project=project), verb="queue add")
    place = QueueSpec(
        priority=work.priority,
        pool=pool or work.pool,
        after=work.after,
        not_before=work.not_before,
    )
    about: dict[str, object] = {
        "id": work.key,
        "details": work.title,
        "source": work.source,
        "url": work.url,
        **({"rig": work.rig} if work.rig else {}),
    }
    return Intake(task=task, place=place, about=about)


def take_in(home: Home, intake: Intake) -> Packet:
    """Its packet, which waits. Raises DuplicateTask when there is one of its id, and StorageError."""
    return make(home, intake.task, intake.place, work=intake.about)
