"""Whoever watches a task also sees to it that somebody drives it: all of ours may have been killed since it was asked for."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.status import Status
from holdfast.packet.runner_lost import is_left_alone, is_lost
from holdfast.spawn import ensure_keeper
from holdfast.store import lock as locks
from holdfast.store.layout import Packet

#: How often a watcher looks.
_LOOK_S = 2.0
#: How often it asks whether anybody can be expected to drive the task: two looks at a lock.
_LOST_LOOK_S = 0.5


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


class LostWatch:
    """Notices that a task has lost its runner in a home that is down: nothing more happens until a person says `up`."""

    def __init__(self) -> None:
        self._due_mono = clock.mono()
        self._is_suspected = False
        #: Seen twice: one runner may be just taking over from another.
        self.is_lost = False

    def look(self, packet: Packet, status: str) -> bool:
        """Called in a watcher's loop; looks now and then. Returns whether this is news."""
        if clock.mono() < self._due_mono:
            return False
        self._due_mono = clock.mono() + _LOST_LOOK_S
        try:
            is_lost_now = is_lost(packet, status)
        except HoldfastError:
            return False
        was, self.is_lost = self.is_lost, is_lost_now and self._is_suspected
        self._is_suspected = is_lost_now
        return self.is_lost and not was


def is_turn_lost(packet: Packet, status: str) -> bool:
    """Whether a task waits for its turn, and there is no keeper to give it."""
    return status == Status.QUEUED and not locks.is_held(packet.home.keeper_lock)
