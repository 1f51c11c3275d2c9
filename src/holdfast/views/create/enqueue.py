"""Creating a task in the queue. The packet is written first; the queue's database follows it."""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError
from holdfast.model.spec import QueueSpec
from holdfast.model.status import ENDS, Status
from holdfast.packet import inbox
from holdfast.queue import sync
from holdfast.spawn import ensure_keeper
from holdfast.store.layout import Home, Packet
from holdfast.views.create import new_task
from holdfast.views.text import home_down, keeper_settings, queue_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.views.create.new_task import NewTask, Talk


def create(home: Home, task: NewTask, queue: QueueSpec, *, work: dict[str, object] | None = None) -> Packet:
    """Write the packet of a queued task. If we are killed right after, the next sync adds it to the queue."""
    changes: dict[str, Any] = {"queue": queue, **({"work": work} if work else {})}
    return new_task.create(home, task.evolve(spec=task.spec.evolve(**changes)), status=Status.QUEUED)


def add(home: Home, packet: Packet, *, talk: Talk) -> None:
    """Add one new packet to the queue. If that fails, the next sync adds it."""
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
                    queue.task_ended(on_id, status or "gone")
    except HoldfastError as error:
        talk(f"warning: {packet.task_id} is not in the queue yet: {error}")


def say_if_stopped(packet: Packet, *, talk: Talk) -> None:
    """Say that the queue is paused or waits for a person, or that the keeper has other settings: the new task
    does not start by itself."""
    item, paused = queue_reason.find_item(packet.home, packet.task_id)
    for line in queue_reason.stopped_by_person(packet.home, [item] if item is not None else [], paused):
        talk(line)
    if unknown := keeper_settings.warning(packet.home):
        talk(f"warning: {unknown}")


def wake_keeper(home: Home, *, talk: Talk) -> None:
    """Make the keeper look at the queue, unless the home is down."""
    if os.path.exists(home.down):
        talk(home_down.QUEUE_WAITS)
        return
    try:
        ensure_keeper(home, by_person=True)
    except (OSError, HoldfastError) as error:
        talk(f"warning: no keeper was started: {error}")
    inbox.ring_keeper(home)
