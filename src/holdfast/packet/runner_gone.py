"""Whether a task that should have a runner has none. Only the runner's lock proves it."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.soundness import UNREADABLE
from holdfast.model.status import ENDS, PARKED
from holdfast.store import lock as locks
from holdfast.store.layout import Packet

#: A runner could do nothing for a packet that cannot be read.
NEEDS_NONE = ENDS | PARKED | {UNREADABLE}
#: The runner of a new task may need this long to take its lock.
_NEW_S = 2.0


def is_gone(packet: Packet, status: str) -> bool:
    """Whether the task should have a runner and has none.

    Raises StorageError if the lock cannot be checked.
    """
    return status not in NEEDS_NONE and not locks.is_held(packet.runner_lock)


def for_display(packet: Packet, status: str) -> bool | None:
    """The field `runner_gone`: like `is_gone`, but not for a new task; None if the lock cannot be checked."""
    try:
        return is_gone(packet, status) and not _is_new(packet)
    except HoldfastError:
        return None


def is_gone_for_good(packet: Packet, status: str) -> bool:
    """Whether the runner is gone and the home is down, so that nothing will start another one."""
    home = packet.home
    return os.path.exists(home.down) and not locks.is_held(home.keeper_lock) and is_gone(packet, status)


def _is_new(packet: Packet) -> bool:
    """Whether no runner has ever held the lock, and one may still come."""
    if os.path.exists(packet.runner_lock):
        return False
    try:
        return clock.now() - os.stat(packet.journal).st_mtime < _NEW_S
    except OSError:
        return False
