"""Queue items on the command line: find one, print it, and record what was done to it."""

from __future__ import annotations

from holdfast.errors import NotFound
from holdfast.packet import load
from holdfast.queue.engine import Item
from holdfast.store import audit
from holdfast.store.layout import Home
from holdfast.views.cli.show import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.queue.local import LocalQueue


def find(home: Home, queue: LocalQueue, text: str) -> Item:
    """An item by its id or a unique prefix. Raises NotFound, AmbiguousId."""
    exact = queue.items(text)
    if exact:
        return exact[0]
    task_id = load.find(home, text).task_id
    items = queue.items(task_id)
    if not items:
        raise NotFound(f"{task_id} is not in the queue", hint="'holdfast queue ls' lists the queue")
    return items[0]


def print_item(item: Item, values: dict[str, Any]) -> int:
    """Print an item: its id, or all of it with --json."""
    out.data(item.to_json()) if values["json"] else print(item.task_id)
    return 0


def as_json(items: list[Item], paused: list[str]) -> dict[str, Any]:
    """Several items as JSON."""
    return {"schema": "holdfast.queue/1", "paused": paused, "items": [item.to_json() for item in items]}


def nothing_ready() -> NotFound:
    """The error if no item can be claimed."""
    return NotFound("no task is ready", hint="'holdfast queue ls' shows what each task waits for")


def record(home: Home, action: str, item: Item | None = None, *, reason: str = "") -> None:
    """Add an entry to the audit log."""
    entry: dict[str, Any] = {"operation": f"queue.{action}", "by": audit.whoami()}
    if item is not None:
        entry["task_id"] = item.task_id
    audit.append(home, {**entry, **({"reason": reason} if reason else {})})
