"""Whether anybody drives a task: only the lock says so, and it is asked of the few that have not ended."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.status import ENDS, PARKED
from holdfast.store import lock as locks
from holdfast.store.layout import Packet

#: A task that was just made: its runner is on the way.
_NEW_S = 2.0


def is_left_alone(packet: Packet, status: str) -> bool:
    """Whether a task that should have a runner has none."""
    return status not in ENDS and status not in PARKED and not locks.is_held(packet.runner_lock)


def is_gone(packet: Packet, status: str) -> bool | None:
    """The same for whoever lists tasks: one that was made a moment ago has not lost its runner. None where its lock is not
    ours to look at."""
    try:
        return is_left_alone(packet, status) and not _is_new(packet)
    except HoldfastError:
        return None


def is_lost(packet: Packet, status: str) -> bool:
    """Whether its runner is gone, in a home in which nobody brings another."""
    home = packet.home
    return os.path.exists(home.down) and not locks.is_held(home.keeper_lock) and is_left_alone(packet, status)


def _is_new(packet: Packet) -> bool:
    """Whether no runner ever had the lock, and may still come."""
    if os.path.exists(packet.runner_lock):
        return False
    try:
        return clock.now() - os.stat(packet.journal).st_mtime < _NEW_S
    except OSError:
        return False
