"""Whoever follows the readable log lets the runner know: a plain command's output is otherwise read in gulps of some seconds
(docs/decisions/0042-reading-output.md). A ring asks for nothing and leaves nothing behind."""

from __future__ import annotations

from holdfast import clock
from holdfast.model.status import Status
from holdfast.packet import inbox
from holdfast.store.layout import Packet

#: Between two rings; a runner heeds one for twice as long.
RING_S = 0.5
#: What a runner takes to read on, as a rule.
_MOMENT_S = 0.02


class Presence:
    """One who follows a task."""

    def __init__(self) -> None:
        self._due_mono = float("-inf")

    def show(self, packet: Packet, status: str) -> None:
        """Called in a follower's loop; rings now and then, while an agent may print."""
        if status == Status.RUNNING and clock.mono() >= self._due_mono:
            self._due_mono = clock.mono() + RING_S
            _ring(packet)


def ask_for_output(packet: Packet) -> None:
    """For who looks once: let the runner read what was printed, for a moment. It need not be there, nor hurry."""
    if _ring(packet):
        clock.sleep(_MOMENT_S)


def _ring(packet: Packet) -> bool:
    try:
        return inbox.ring(packet)
    except OSError:
        return False  # the packet of another user, or a file system that is gone: then the log is late
