"""Why a queued task has not started."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.record import Record
from holdfast.model.status import ENDS
from holdfast.queue import claim_owner
from holdfast.queue.engine import ALL, Item
from holdfast.queue.local import LocalQueue
from holdfast.store import admitted, atomic
from holdfast.store.layout import Home
from holdfast.views.text import amounts, describe, home_down, keeper_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

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


class Holds(Record):
    """What the keeper does not start at the moment, and why."""

    #: Why it starts nothing; empty if it does.
    all: str = ""
    agents: dict[str, str] = {}
    pools: dict[str, str] = {}
    #: At their limits for now: others of them run. And the slots.
    full_agents: dict[str, str] = {}
    full_pools: dict[str, str] = {}
    full_slots: str = ""

    def of(self, item: Item) -> str:
        """Why nothing of its pool or agent is started; empty if something is."""
        return self.pools.get(item.pool) or self.agents.get(item.agent) or ""

    def at_limit(self, item: Item) -> str:
        """`scripted: 1 of 1 running (agent_limits)`; empty if its pool and agent have room."""
        return self.full_pools.get(item.pool) or self.full_agents.get(item.agent) or ""


def read_holds(home: Home) -> Holds:
    """What the keeper wrote last."""
    try:
        data: dict[str, Any] = atomic.read_json(home.loop) or {}
    except HoldfastError:
        return Holds()
    whole, slots = data.get("short_of"), data.get("full_slots")
    return Holds(
        all=whole if isinstance(whole, str) else "",
        full_agents=texts(data.get("full_agents")),
        full_pools=texts(data.get("full_pools")),
        full_slots=slots if isinstance(slots, str) else "",
        agents=texts(data.get("held_agents")),
        pools=texts(data.get("held_pools")),
    )


def texts(value: Any) -> dict[str, str]:
    """A table of texts; an agent can write the file."""
    table: dict[Any, Any] = value if isinstance(value, dict) else {}  # pyright: ignore
    return {key: each for key, each in table.items() if isinstance(key, str) and isinstance(each, str)}


def reason(item: Item, paused: list[str], holds: Holds | None = None) -> str:
    """Why the item waits, in short; empty if it is just not its turn."""
    if item.reason:
        return item.reason
    if item.state == "claimed":
        return f"by {item.claimed_by}" if claim_owner.is_external(item.claimed_by) else ""
    if item.waits_for:
        return "after " + ", ".join(item.waits_for)
    if item.not_before is not None and clock.parse_iso(item.not_before) > clock.now():
        return f"not before {amounts.hour(item.not_before)}"
    if ALL in paused or item.pool in paused:
        return "paused"
    # What can be done about it is shown once, see `obstacles`.
    return holds.of(item).partition("; ")[0] or holds.at_limit(item) if holds is not None else ""


def with_held(counts: Mapping[str, int], states: Mapping[str, int]) -> dict[str, int]:
    """The number of tasks by state, in which those that only a person can start are not `queued`. `states`
    are the numbers of items of the queue."""
    found = dict(counts)
    for state in NEEDS_PERSON.intersection(states):
        found[state] = states[state]
        found["queued"] = found.get("queued", 0) - states[state]
    return {state: count for state, count in found.items() if count > 0}


def held_by(home: Home, item: Item) -> str:
    """The task whose failure holds the item; empty if it is not held, or not by one that can be retried."""
    if item.state != "held":
        return ""
    from holdfast.queue import sync  # few tasks are held

    return next((on_id for on_id in item.waits_for if sync.status_of(home, on_id) in ENDS), "")


def of_task(home: Home, task_id: str) -> str:
    """Why a queued task has not started: its own reason, or that of the whole queue; empty if it is just not
    its turn."""
    item, paused = find_item(home, task_id)
    return of_item(home, item if item is not None else Item(task_id=task_id), paused)


def of_item(home: Home, item: Item, paused: list[str]) -> str:
    """The same for its item."""
    if (own := reason(item, paused)) or item.state != "queued":
        return own
    if os.path.exists(home.down):
        return home_down.QUEUE_WAITS
    if why := unknown(home, item.task_id):
        return why
    holds = read_holds(home)
    return question_of(home) or holds.of(item) or holds.all or holds.at_limit(item) or holds.full_slots


def unknown(home: Home, task_id: str) -> str:
    """Why the keeper does not know the task; empty if it does."""
    packet = home.packet(task_id)
    return keeper_settings.warning(home) if admitted.is_admitted(packet) else admitted.objection(packet)


#: Continues a queue that waits for a person.
RESUME = "holdfast queue resume"


def held(home: Home, items: Iterable[Item]) -> list[str]:
    """Why the keeper starts nothing, or nothing of some agents and pools, as far as these items are held."""
    queued = [item for item in items if item.state == "queued" and not item.waits_for]
    if not queued:
        return []
    holds = read_holds(home)
    reasons = [holds.all, *(holds.of(item) for item in queued)]
    return list(dict.fromkeys(filter(None, reasons)))


def at_limit(home: Home, items: Iterable[Item]) -> list[str]:
    """Which limits of agents and pools keep some of these items from starting for now."""
    holds = read_holds(home)
    queued = (item for item in items if item.state == "queued" and not item.waits_for)
    return list(dict.fromkeys(filter(None, map(holds.at_limit, queued))))


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
    found = stopped_by_person(home, items, paused)
    if items and os.path.exists(home.down):
        found.append(home_down.QUEUE_WAITS)
    else:
        found += held(home, items)
        # Its tasks may not be among the items: the keeper removes what it does not know.
        found += [other] if (other := keeper_settings.warning(home)) else []
    return found


def stopped_by_person(home: Home, items: Iterable[Item], paused: list[str]) -> list[str]:
    """Of these sentences, those about what only a person continues."""
    from shlex import quote  # only needed for these lines

    if ALL in paused:
        found = ["the queue is paused; 'holdfast queue resume' continues"]
    else:
        pools = sorted({item.pool for item in items}.intersection(paused))
        found = [f"pool {pool} is paused; 'holdfast queue resume {quote(pool)}' continues" for pool in pools]
    question = question_of(home)
    return found if question is None else [*found, question]


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
