"""Why a queued task has not started."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.queue import claim_owner
from holdfast.queue.engine import ALL, Item
from holdfast.queue.local import LocalQueue
from holdfast.store import atomic
from holdfast.store.layout import Home
from holdfast.views.text import amounts

#: States of an item that only a person can change.
NEEDS_PERSON = frozenset({"held", "poison"})


def find_item(home: Home, task_id: str) -> tuple[Item | None, list[str]]:
    """The item of a task (None if not in the queue, or unreadable), and the paused pools."""
    if not os.path.exists(home.queue):
        return None, []
    try:
        with LocalQueue(home, reads_only=True) as queue:
            return next(iter(queue.items(task_id)), None), queue.paused()
    except HoldfastError:
        return None, []


def reason(item: Item, paused: list[str]) -> str:
    """Why the item waits; empty if it is just not its turn."""
    if item.reason:
        return item.reason
    if item.state == "claimed":
        return f"by {item.claimed_by}" if claim_owner.is_external(item.claimed_by) else ""
    if item.waits_for:
        return "after " + ", ".join(item.waits_for)
    if item.not_before is not None and clock.parse_iso(item.not_before) > clock.now():
        return f"not before {amounts.minute(item.not_before)}"
    return "paused" if ALL in paused or item.pool in paused else ""


def of_task(home: Home, task_id: str) -> str:
    """Why a queued task has not started: its own reason, or that of the whole queue; empty if it is just not
    its turn."""
    item, paused = find_item(home, task_id)
    return (reason(item, paused) if item is not None else "") or keeper_reason(home)


def keeper_reason(home: Home) -> str:
    """Why the keeper starts nothing from the queue at the moment; empty if it does."""
    try:
        short_of = (atomic.read_json(home.loop) or {}).get("short_of")
    except HoldfastError:
        return ""
    return short_of if isinstance(short_of, str) else ""
