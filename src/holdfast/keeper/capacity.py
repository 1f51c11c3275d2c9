"""Free capacity: slots, agents, pools, memory and disk."""

from __future__ import annotations

import os

from holdfast import clock, units
from holdfast.agents import registry
from holdfast.errors import HoldfastError
from holdfast.keeper.loop_state import LoopSpec
from holdfast.model.outcome import is_at_limit
from holdfast.model.record import Record
from holdfast.packet import load
from holdfast.queue import claim_owner, sync
from holdfast.queue.engine import Capacity, Item
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_MB = 1024 * 1024


def measure(
    home: Home,
    claims: list[Item],
    spec: LoopSpec,
    *,
    cooling: int,
    agents: tuple[str, ...],
    closed: Iterable[str] = (),
) -> tuple[Capacity, dict[str, str]]:
    """The capacity besides these claims, and agents of which nothing may start, each with the reason.

    A task that waits for a person, or for a minute or more, keeps its claim, but not its slot.
    `cooling` is the number of slots that pause after a task; `agents` are the agents of waiting tasks,
    and nothing of the pools in `closed` may start.
    """
    resting = [item for item in claims if not sync.uses_slot(home, item.task_id)]
    outside = sum(claim_owner.is_external(item.claimed_by) for item in claims)
    limits, pools = dict(spec.agents), dict(spec.pools)
    for item in resting:
        for table, name in ((limits, item.agent), (pools, item.pool)):
            if name in table:
                table[name] += 1
    # Another task with an agent at its limit would only wait, too.
    stopped = {**_at_limit(home, resting), **_too_big(agents, spec)}
    room = Capacity(
        slots=max(0, spec.slots - cooling) + len(resting) + outside,
        agents={**limits, **dict.fromkeys(stopped, 0)},
        pools={**pools, **dict.fromkeys(closed, 0)},
    )
    return room, {agent: why for agent, why in stopped.items() if agent in agents}


class Full(Record):
    """What has no room for another task, each with the reason: agents, pools, and the slots (empty if one is
    free)."""

    agents: dict[str, str] = {}
    pools: dict[str, str] = {}
    slots: str = ""


def full(claims: list[Item], spec: LoopSpec, room: Capacity, *, cooling: int) -> Full:
    """What these claims use up of the room that `measure` found."""
    return Full(
        agents=_used_up([item.agent for item in claims], spec.agents, room.agents, "agent_limits"),
        pools=_used_up([item.pool for item in claims], spec.pools, room.pools, "pool_limits"),
        slots=_slots_used_up(len(claims), spec, room, cooling=cooling),
    )


def _used_up(
    claimed: list[str], limits: dict[str, int], room: dict[str, int], setting: str
) -> dict[str, str]:
    """Of the limits in a setting, those that are reached. What rests makes room, so it does not run."""
    running = {name: claimed.count(name) - (room[name] - most) for name, most in limits.items()}
    return {
        name: f"{name}: {running[name]} of {most} running ({setting})"
        for name, most in limits.items()
        # Less room than the limit: something else holds it, and is told.
        if room[name] >= most and running[name] >= most
    }


def _slots_used_up(claimed: int, spec: LoopSpec, room: Capacity, *, cooling: int) -> str:
    if room.slots is None or claimed < room.slots:
        return ""
    pausing = min(cooling, spec.slots)
    used = claimed - (room.slots - (spec.slots - pausing))
    pause = f", {pausing} pausing after a task (iteration_delay)" if pausing else ""
    return f"{used} of {spec.slots} slots used{pause}"


def free_disk_bytes(path: str) -> int:
    """Free disk space at this path."""
    stats = os.statvfs(path)
    return stats.f_bavail * stats.f_frsize


def _at_limit(home: Home, resting: list[Item]) -> dict[str, str]:
    """Agents that are out of quota for a while, each with a message about the task that waits longest."""
    waits = [(wake_at, item) for item in resting if (wake_at := _limit_ends_at(home, item)) is not None]
    return {
        item.agent: (
            f"{item.agent} is at its limit until {_hour(wake_at)} ({item.task_id});"
            f" 'holdfast resume {item.task_id}' tries now"
        )
        for wake_at, item in sorted(waits, key=lambda each: each[0])
    }


def _limit_ends_at(home: Home, item: Item) -> float | None:
    """When the quota of the item's agent is back; None if it does not wait for one."""
    try:
        manifest = load.read_manifest(home.packet(item.task_id))
        if not is_at_limit(manifest) or not manifest.get("wake_at"):
            return None
        wake_at = clock.parse_iso(str(manifest["wake_at"]))
    except (HoldfastError, ValueError):
        return None
    return wake_at if wake_at > clock.now() else None


def _hour(at: float) -> str:
    """The local time, with the day if that is another one."""
    is_today = clock.local_day(at) == clock.local_day(clock.now())
    return clock.local(clock.iso(at), "%H:%M" if is_today else "%Y-%m-%d %H:%M")


def _too_big(agents: tuple[str, ...], spec: LoopSpec) -> dict[str, str]:
    """Agents for which there is not enough memory, each with a message."""
    free = _free_memory_bytes() - spec.min_free_memory_bytes
    reserve = units.size_text(spec.min_free_memory_bytes)
    messages: dict[str, str] = {}
    for agent in agents:
        try:
            needed = registry.adapter(agent).capabilities.memory_mb * _MB
        except HoldfastError:
            continue  # the runner reports what is wrong with its agent
        if needed > free:
            messages[agent] = (
                f"{agent} is not started: it needs {units.size_text(needed)} of memory"
                f" besides the reserve of {reserve}"
            )
    return messages


def _free_memory_bytes() -> int:
    import psutil  # slow to import, and needed only with a queue

    return psutil.virtual_memory().available
