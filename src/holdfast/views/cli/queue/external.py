"""Work that is done outside: somebody claims a task, and gives it back or says that it is done."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import NotPossible
from holdfast.queue import claim_owner
from holdfast.queue.engine import Item, is_ready
from holdfast.store.layout import Home
from holdfast.views.cli import request
from holdfast.views.cli.queue import enqueue, wait_reason
from holdfast.views.cli.queue.items import find, nothing_ready, print_item, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.queue.local import LocalQueue


def claim(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """Take the next item, or the named one, for a worker outside."""
    who = values["by"] or os.environ.get("USER") or str(os.getuid())
    if values["target"] is None:
        taken = queue.claim(claim_owner.external(who))
        if taken is None:
            raise nothing_ready()
    else:
        taken = _claim_named(queue, find(home, queue, values["target"]), who)
    record(home, "claimed", taken, reason=f"for {who}")
    return print_item(taken, values)


def _claim_named(queue: LocalQueue, item: Item, who: str) -> Item:
    paused = queue.paused()
    is_its_time = is_ready(item, now=clock.now(), paused=paused)
    taken = queue.claim(claim_owner.external(who), task_id=item.task_id) if is_its_time else None
    if taken is None:
        said = wait_reason.reason(item, paused) or f"it is {item.state}"
        raise NotPossible(
            f"{item.task_id} cannot be claimed: {said}",
            hint="'holdfast queue next' names the task whose turn it is",
        )
    return taken


def release(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """Give back what a worker outside had claimed."""
    item = _claimed_outside(
        home,
        queue,
        values["target"],
        hint="'holdfast stop TASK' ends it, 'holdfast interrupt TASK' stops it for a while",
    )
    queue.release(item.task_id, owner=item.claimed_by)
    record(home, "released", item)
    enqueue.wake_keeper(home)
    return print_item(queue.items(item.task_id)[0], values)


def done(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """A worker outside has done it: the task is completed, and what waits for it goes on."""
    item = _claimed_outside(
        home,
        queue,
        values["target"],
        hint="'holdfast queue claim TASK' takes it for one; then it can be done there",
    )
    by = (item.claimed_by or "").partition(":")[2]
    request.send(home.packet(item.task_id), "done", {"reason": f"done by {by}, outside"})
    queue.ack(item.task_id, status="completed")
    enqueue.wake_keeper(home)
    return print_item(item, values)


def _claimed_outside(home: Home, queue: LocalQueue, text: str, *, hint: str) -> Item:
    item = find(home, queue, text)
    if item.state != "claimed" or not claim_owner.is_external(item.claimed_by):
        raise NotPossible(
            f"{item.task_id} is not claimed by a worker outside", hint=hint.replace("TASK", item.task_id)
        )
    return item
