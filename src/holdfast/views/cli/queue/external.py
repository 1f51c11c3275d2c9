"""Actions for external workers: claim, release, done."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import NotPossible
from holdfast.queue import claim_owner
from holdfast.queue.engine import Item, is_ready
from holdfast.store import audit
from holdfast.store.layout import Home
from holdfast.views.cli.queue.items import find, nothing_ready, print_item, record
from holdfast.views.cli.show import out
from holdfast.views.create import enqueue
from holdfast.views.requests import send_request
from holdfast.views.text import queue_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.queue.local import LocalQueue


def claim(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """Claim the next item, or the given one, for an external worker."""
    worker = values["by"] or os.environ.get("USER") or audit.whoami().partition("@")[0]
    if values["target"] is None:
        taken = queue.claim(claim_owner.external(worker))
        if taken is None:
            raise nothing_ready()
    else:
        taken = _claim_named(queue, find(home, queue, values["target"]), worker)
    record(home, "claimed", taken, reason=f"for {worker}")
    return print_item(taken, values)


def _claim_named(queue: LocalQueue, item: Item, worker: str) -> Item:
    paused = queue.paused()
    is_its_time = is_ready(item, now=clock.now(), paused=paused)
    taken = queue.claim(claim_owner.external(worker), task_id=item.task_id) if is_its_time else None
    if taken is None:
        reason = queue_reason.reason(item, paused) or f"it is {item.state}"
        raise NotPossible(
            f"{item.task_id} cannot be claimed: {reason}",
            hint="'holdfast queue next' prints the task that can be claimed",
        )
    return taken


def release(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """Return an item that an external worker had claimed."""
    item = _claimed_outside(
        home,
        queue,
        values["target"],
        hint="'holdfast stop TASK' ends it, 'holdfast interrupt TASK' pauses it",
    )
    queue.release(item.task_id, owner=item.claimed_by)
    record(home, "released", item)
    enqueue.wake_keeper(home, talk=out.talk)
    return print_item(queue.items(item.task_id)[0], values)


def done(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """Mark an item as done by its external worker: the task is completed, and tasks after it can start."""
    item = _claimed_outside(
        home,
        queue,
        values["target"],
        hint="claim it first: 'holdfast queue claim TASK'",
    )
    by = (item.claimed_by or "").partition(":")[2]
    send_request(home.packet(item.task_id), "done", {"reason": f"done by {by}, an external worker"})
    queue.ack(item.task_id, status="completed")
    enqueue.wake_keeper(home, talk=out.talk)
    return print_item(item, values)


def _claimed_outside(home: Home, queue: LocalQueue, text: str, *, hint: str) -> Item:
    item = find(home, queue, text)
    if item.state != "claimed" or not claim_owner.is_external(item.claimed_by):
        raise NotPossible(
            f"{item.task_id} is not claimed by an external worker", hint=hint.replace("TASK", item.task_id)
        )
    return item
