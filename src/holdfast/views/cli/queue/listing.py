"""Actions that only read the queue: ls, show, next, check."""

from __future__ import annotations

from holdfast import clock
from holdfast.model.status import Status
from holdfast.queue import schedule, sync
from holdfast.queue.engine import Item, is_ready
from holdfast.store.layout import Home
from holdfast.views.cli.queue import schedules
from holdfast.views.cli.queue.items import as_json, find, nothing_ready, print_item
from holdfast.views.cli.show import out, wrapped_table
from holdfast.views.facts.queue_places import in_order
from holdfast.views.text import fit_text, queue_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.queue.local import LocalQueue


class EmptyQueue:
    """The queue of a home that does not exist yet."""

    def items(self) -> list[Item]:
        """No items."""
        return []

    def paused(self) -> list[str]:
        """No pools."""
        return []


def ls(home: Home, queue: LocalQueue | EmptyQueue, values: dict[str, Any]) -> int:
    """List all items, in the order in which they start, and what holds up the queue."""
    items, paused = in_order(queue.items()), queue.paused()
    planned = schedule.read_all(home)
    if values["json"]:
        data = as_json(items, paused)
        out.data({**data, "schedules": [schedule.summary(each) for each in planned]})
        return 0
    holds = queue_reason.read_holds(home)
    rows = [
        [
            item.task_id,
            item.state,
            str(item.priority),
            item.pool,
            item.agent,
            queue_reason.reason(item, paused, holds) or _pause(home, item),
        ]
        for item in items
    ]
    if rows:
        wrapped_table.show(("TASK", "STATE", "PRIORITY", "POOL", "AGENT", ""), rows)
    else:
        out.talk("the queue is empty")
    schedules.show(planned)
    for line in queue_reason.obstacles(home, items, paused):
        out.talk(fit_text.printable(line))
    return 0


def _pause(home: Home, item: Item) -> str:
    """`interrupted` or `waiting`: a task that has started, and does not work now."""
    found = sync.status_of(home, item.task_id) if item.state == "claimed" else None
    return str(found) if found in (Status.WAITING, Status.INTERRUPTED) else ""


def show(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """Show one item in full, or a schedule; without a name, the same as `ls`."""
    if values["target"] is None:
        return ls(home, queue, values)
    planned = None if queue.items(values["target"]) else schedule.read(home, values["target"])
    if planned is not None:
        if values["json"]:
            out.data(schedule.summary(planned))
        else:
            schedules.show([planned])
        return 0
    item = find(home, queue, values["target"])
    if values["json"]:
        return print_item(item, values)
    for name, value in item.to_json().items():
        if name != "schema" and value not in (None, "", [], False):
            text = ", ".join(str(part) for part in value) if isinstance(value, list) else str(value)  # pyright: ignore
            out.fact(f"{name}:", text, at=14)
    if not item.reason and (why := queue_reason.of_item(home, item, queue.paused())):
        out.fact("waits:", why, at=14)
    return 0


def next_ready(home: Home, queue: LocalQueue | EmptyQueue, values: dict[str, Any]) -> int:
    """Print the item that is next, and what holds up the whole queue."""
    items, paused = queue.items(), queue.paused()
    for item in _ready(home, items, paused):
        for line in queue_reason.obstacles(home, items, paused) if not values["json"] else ():
            out.talk(fit_text.printable(line))
        return print_item(item, values)
    raise nothing_ready()


def _ready(home: Home, items: list[Item], paused: list[str]) -> list[Item]:
    """The items that can start now, in the order of `ls`, without those that it shows as held."""
    holds, now = queue_reason.read_holds(home), clock.now()
    return [item for item in in_order(items) if is_ready(item, now=now, paused=paused) and not holds.of(item)]


def check(home: Home, queue: LocalQueue | EmptyQueue, values: dict[str, Any]) -> int:
    """Print how many items are ready; with --json, also the counts by state."""
    items, paused = queue.items(), queue.paused()
    counts = {
        state: sum(item.state == state for item in items) for state in ("queued", "claimed", "held", "poison")
    }
    ready = len(_ready(home, items, paused))
    if values["json"]:
        out.data({"schema": "holdfast.queue-check/1", "ready": ready, **counts, "paused": paused})
    else:
        print(ready)
    return 0
