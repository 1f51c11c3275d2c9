"""An item of the queue on the command line: found, told, and accounted for."""

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
    found = queue.items(task_id)
    if not found:
        raise NotFound(f"{task_id} is not in the queue", hint="'holdfast queue ls' shows what is")
    return found[0]


def print_item(item: Item, values: dict[str, Any]) -> int:
    """One item: its id, or all of it in JSON."""
    out.data(item.to_json()) if values["json"] else print(item.task_id)
    return 0


def as_json(items: list[Item], paused: list[str]) -> dict[str, Any]:
    """Several items, for programs."""
    return {"schema": "holdfast.queue/1", "paused": paused, "items": [item.to_json() for item in items]}


def nothing_ready() -> NotFound:
    """What is said when no item can be claimed."""
    return NotFound("no task is ready", hint="'holdfast queue ls' shows what waits, and for what")


def record(home: Home, what: str, item: Item | None = None, *, reason: str = "") -> None:
    """Who did this, for those who have to account for it."""
    entry: dict[str, Any] = {"operation": f"queue.{what}", "by": audit.whoami()}
    if item is not None:
        entry["task_id"] = item.task_id
    audit.append(home, {**entry, **({"reason": reason} if reason else {})})
