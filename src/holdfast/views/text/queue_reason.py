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
from holdfast.views.text import amounts, describe, home_down

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: States of an item that only a person can change.
NEEDS_PERSON = frozenset({"held", "poison"})
#: How much of the interrupt file of the queue is read.
_REASON_BYTES = 4096


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
        return f"not before {amounts.hour(item.not_before)}"
    return "paused" if ALL in paused or item.pool in paused else ""


def of_task(home: Home, task_id: str) -> str:
    """Why a queued task has not started: its own reason, or that of the whole queue; empty if it is just not
    its turn."""
    item, paused = find_item(home, task_id)
    return (reason(item, paused) if item is not None else "") or keeper_reason(home)


#: Continues a queue that waits for a person.
RESUME = "holdfast queue resume"


def keeper_reason(home: Home) -> str:
    """Why the keeper starts nothing from the queue at the moment; empty if it does."""
    try:
        short_of = (atomic.read_json(home.loop) or {}).get("short_of")
    except HoldfastError:
        return ""
    return short_of if isinstance(short_of, str) else ""


def question_of(home: Home) -> str | None:
    """Why the whole queue waits for a person, and how to go on; None if it does not."""
    raw = atomic.read_small(home.interrupt_request, _REASON_BYTES)
    if raw is None:
        return None
    text = f"the queue waits for a person: {describe.one_line(raw)}"
    # The keeper's question names the command, one that a person wrote does not.
    return text if f"'{RESUME}'" in text else f"{text}; '{RESUME}' continues"


def obstacles(home: Home, items: Iterable[Item], paused: list[str]) -> list[str]:
    """Sentences about what keeps these items from starting, each with the command that changes it."""
    items = list(items)
    if ALL in paused:
        found = ["the queue is paused; 'holdfast queue resume' continues"]
    else:
        pools = sorted({item.pool for item in items}.intersection(paused))
        found = [f"pool {pool} is paused; 'holdfast queue resume {pool}' continues" for pool in pools]
    if (question := question_of(home)) is not None:
        found.append(question)
    if items and os.path.exists(home.down):
        found.append(home_down.QUEUE_WAITS)
    elif any(item.state == "queued" for item in items) and (reason := keeper_reason(home)):
        found.append(reason)
    return found


def obstacles_of(home: Home, task_ids: Iterable[str]) -> list[str]:
    """The same for queued tasks; those that are not in the queue yet wait for its keeper, too."""
    wanted = frozenset(task_ids)
    items, paused = list[Item](), list[str]()
    try:
        if os.path.exists(home.queue):
            with LocalQueue(home, reads_only=True) as queue:
                items, paused = [item for item in queue.items() if item.task_id in wanted], queue.paused()
    except HoldfastError:
        pass  # `status` reports it
    known = {item.task_id for item in items}
    return obstacles(home, [*items, *(Item(task_id=each) for each in sorted(wanted - known))], paused)
