"""Actions that only read the queue: ls, show, next, check."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.queue import schedule
from holdfast.queue.engine import ALL, Item, is_ready
from holdfast.store import atomic
from holdfast.store.layout import Home
from holdfast.views.cli.queue import schedules
from holdfast.views.cli.queue.items import as_json, find, nothing_ready, print_item
from holdfast.views.cli.show import out, wrapped_table
from holdfast.views.text import describe, fit_text, home_down, queue_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.queue.local import LocalQueue

#: How much of the interrupt file is read.
_REASON_BYTES = 4096


class EmptyQueue:
    """The queue of a home that does not exist yet."""

    def items(self) -> list[Item]:
        """No items."""
        return []

    def paused(self) -> list[str]:
        """No pools."""
        return []


def ls(home: Home, queue: LocalQueue | EmptyQueue, values: dict[str, Any]) -> int:
    """List all items, and what holds up the queue."""
    items, paused = queue.items(), queue.paused()
    planned = schedule.read_all(home)
    if values["json"]:
        data = as_json(items, paused)
        out.data({**data, "schedules": [schedule.summary(each) for each in planned]})
        return 0
    rows = [
        [
            item.task_id,
            item.state,
            str(item.priority),
            item.pool,
            item.agent,
            queue_reason.reason(item, paused),
        ]
        for item in items
    ]
    if rows:
        wrapped_table.show(("TASK", "STATE", "PRIORITY", "POOL", "AGENT", ""), rows)
    else:
        out.talk("the queue is empty")
    schedules.show(planned)
    _print_obstacles(home, items, paused)
    return 0


def _print_obstacles(home: Home, items: list[Item], paused: list[str]) -> None:
    if paused:
        pools = "" if ALL in paused else f": {', '.join(paused)}"
        pool = "" if ALL in paused else f" {paused[0]}" if len(paused) == 1 else " POOL"
        out.talk(f"paused{pools} ('holdfast queue resume{pool}' continues)")
    question = atomic.read_small(home.interrupt_request, _REASON_BYTES)
    if question is not None:
        out.talk(
            f"the queue waits for a person: {describe.one_line(question)}; 'holdfast queue resume' continues"
        )
    if items and os.path.exists(home.down):
        out.talk(home_down.QUEUE_WAITS)
    elif any(item.state == "queued" for item in items) and queue_reason.keeper_reason(home):
        out.talk(fit_text.printable(queue_reason.keeper_reason(home)))


def show(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """Show one item in full; without a task, the same as `ls`."""
    if values["target"] is None:
        return ls(home, queue, values)
    item = find(home, queue, values["target"])
    if values["json"]:
        return print_item(item, values)
    for name, value in item.to_json().items():
        if name != "schema" and value not in (None, "", [], False):
            text = ", ".join(str(part) for part in value) if isinstance(value, list) else str(value)  # pyright: ignore
            out.fact(f"{name}:", text, at=14)
    return 0


def next_ready(home: Home, queue: LocalQueue | EmptyQueue, values: dict[str, Any]) -> int:
    """Print the item that is next."""
    paused, now = queue.paused(), clock.now()
    for item in queue.items():
        if is_ready(item, now=now, paused=paused):
            return print_item(item, values)
    raise nothing_ready()


def check(home: Home, queue: LocalQueue | EmptyQueue, values: dict[str, Any]) -> int:
    """Print how many items are ready; with --json, also the counts by state."""
    items, paused, now = queue.items(), queue.paused(), clock.now()
    counts = {
        state: sum(item.state == state for item in items) for state in ("queued", "claimed", "held", "poison")
    }
    ready = sum(is_ready(item, now=now, paused=paused) for item in items)
    if values["json"]:
        out.data({"schema": "holdfast.queue-check/1", "ready": ready, **counts, "paused": paused})
    else:
        print(ready)
    return 0
