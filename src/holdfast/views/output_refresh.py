"""Keep a task's readable log fresh while it is followed.

A runner reads a plain command's output only every few seconds, unless its bell is rung. A ring requests
nothing and leaves no file behind.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.model.status import Status
from holdfast.packet import inbox
from holdfast.store.layout import Packet

#: Interval between rings; the runner keeps reading for twice as long after each.
RING_S = 0.5
#: Time a runner usually needs to read pending output.
_READ_S = 0.02


class OutputRefresher:
    """Rings the runner regularly; called in a follower's loop."""

    def __init__(self) -> None:
        self._due_mono = float("-inf")

    def poll(self, packet: Packet, status: str) -> None:
        """Ring if it is time and the agent may be printing."""
        if status == Status.RUNNING and clock.mono() >= self._due_mono:
            self._due_mono = clock.mono() + RING_S
            _ring(packet)


def refresh_once(packet: Packet) -> None:
    """Let the runner, if there is one, read pending output before the log is printed once."""
    if _ring(packet):
        clock.sleep(_READ_S)


def _ring(packet: Packet) -> bool:
    try:
        return inbox.ring(packet)
    except OSError:
        return False  # another user's packet, or a file system that is gone: the log just lags
