"""Whoever watches a task also sees to it that somebody drives it: all of ours may have been killed since it was asked for."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.status import ENDS, PARKED, Status
from holdfast.start import ensure_keeper
from holdfast.store import lock as locks
from holdfast.store.layout import Packet

#: How often a watcher looks.
_LOOK_S = 2.0


class Waker:
    """Brings a keeper back for tasks that have lost their runner, or wait for their turn and nobody gives it."""

    def __init__(self) -> None:
        #: The first start is a person's; those that follow keep to the pauses, or a keeper that cannot live would be a storm.
        self._by_person = True
        # Not at once: a runner that is just being replaced is none of our business.
        self._due_mono = clock.mono() + _LOOK_S / 4

    def look(self, packet: Packet, status: str) -> None:
        """Called in a watcher's loop; looks now and then."""
        if clock.mono() < self._due_mono:
            return
        self._due_mono = clock.mono() + _LOOK_S
        try:
            if is_left_alone(packet, status) or is_turn_lost(packet, status):
                ensure_keeper(packet.home, by_person=self._by_person)
                self._by_person = False
        except (OSError, HoldfastError):
            return  # a watcher watches; who can do more will


def is_left_alone(packet: Packet, status: str) -> bool:
    """Whether a task that should have a runner has none."""
    return status not in ENDS and status not in PARKED and not locks.is_held(packet.runner_lock)


def is_turn_lost(packet: Packet, status: str) -> bool:
    """Whether a task waits for its turn, and there is no keeper to give it."""
    return status == Status.QUEUED and not locks.is_held(packet.home.keeper_lock)
