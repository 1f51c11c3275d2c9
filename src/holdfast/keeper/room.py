"""What there is room for: slots, agents, pools, memory and disk."""

from __future__ import annotations

import os

from holdfast import clock, units
from holdfast.agents import registry
from holdfast.errors import HoldfastError
from holdfast.keeper.loop import LoopSpec
from holdfast.model.outcome import MUST_WAIT
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.queue import owner, sync
from holdfast.queue.engine import Item, Room
from holdfast.store.layout import Home

#: A dispatched task that does not use its slot.
_RESTING = frozenset({Status.WAITING, Status.INTERRUPTED})
_MB = 1024 * 1024
#: How long a wait must be to mean that an agent is out of quota.
_LIMIT_S = 60.0


def measure(
    home: Home, claims: list[Item], spec: LoopSpec, *, cooling: int, agents: tuple[str, ...]
) -> tuple[Room, str]:
    """The room beside these claims, and who is left out for want of memory, in words.

    Slots count what works: what waits for a quota or a person has a claim, and needs no slot. `cooling` are slots that pause;
    `agents` are those of tasks that wait.
    """
    resting = [item for item in claims if sync.status_of(home, item.task_id) in _RESTING]
    outside = sum(owner.is_outside(item.claimed_by) for item in claims)
    limits, pools = dict(spec.agents), dict(spec.pools)
    for item in resting:
        for table, name in ((limits, item.agent), (pools, item.pool)):
            if name in table:
                table[name] += 1
    for item in resting:
        if _is_at_limit(home, item):
            # The next one would only join the queue at the service.
            limits[item.agent] = 0
    slots = max(0, spec.slots - cooling) + len(resting) + outside
    too_big = _too_big(agents, spec)
    room = Room(slots=slots, agents={**limits, **dict.fromkeys(too_big, 0)}, pools=pools)
    return room, next(reversed(too_big.values()), "")


def free_disk_bytes(path: str) -> int:
    """Free for us where this path is."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def _is_at_limit(home: Home, item: Item) -> bool:
    """Whether its agent is out of quota for a while."""
    try:
        manifest = load.read_manifest(home.packet(item.task_id))
        # A task that only pauses after a crash of its own says nothing about the service.
        if str(manifest.get("status_reason")).partition(":")[0] not in MUST_WAIT:
            return False
        wake_at = manifest.get("wake_at")
        return bool(wake_at) and clock.parse_iso(str(wake_at)) - clock.now() > _LIMIT_S
    except (HoldfastError, ValueError):
        return False


def _too_big(agents: tuple[str, ...], spec: LoopSpec) -> dict[str, str]:
    """Agents for which there is no memory now, each with the reason in words."""
    free = _free_memory_bytes() - spec.min_free_memory_bytes
    reserve = units.words(spec.min_free_memory_bytes)
    found: dict[str, str] = {}
    for agent in agents:
        try:
            needed = registry.adapter(agent).capabilities.memory_mb * _MB
        except HoldfastError:
            continue  # its runner will say what is wrong with its agent
        if needed > free:
            found[agent] = (
                f"{agent} is not started: it needs {units.words(needed)} of memory beside the reserve of {reserve}"
            )
    return found


def _free_memory_bytes() -> int:
    import psutil  # dear to load, and only a queue needs it

    return psutil.virtual_memory().available
