"""A packet that was removed under its runner (`rm -rf "$HOLDFAST_HOME"`): nothing can be written down any more, so nothing goes on.

One look proves little: a file system may be away for a moment. The packet is gone when its path is gone, and the lock that we
hold open has no name left, twice in a row (docs/decisions/0040-removed-homes.md). One that was moved is followed.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.store import process
from holdfast.store.layout import Packet
from holdfast.store.lock import Lock

#: Between the look that finds it gone and the one that believes it.
CONFIRM_S = 1.0


class PacketWatch:
    """Whether the packet of a runner is still there."""

    def __init__(self, packet: Packet, lock: Lock) -> None:
        self._packet = packet
        self.lock = lock
        self._suspected_mono: float | None = None

    def is_suspected(self) -> bool:
        """Whether it is gone, as far as one look can tell. An agent that removes the lock alone has not removed the packet."""
        is_gone = not os.path.lexists(self._packet.path) and os.fstat(self.lock.descriptor).st_nlink == 0
        if not is_gone:
            self._suspected_mono = None
        elif self._suspected_mono is None:
            self._suspected_mono = clock.mono()
        return is_gone

    def is_certain(self) -> bool:
        """Whether it was gone at the last look too, a moment ago."""
        return (
            self.is_suspected()
            and self._suspected_mono is not None
            and clock.mono() - self._suspected_mono >= CONFIRM_S
        )


def moved_to(packet: Packet, lock: Lock) -> str | None:
    """Where the packet lies now, if somebody gave it or its home another name, whatever stands at the old one by now. Only the
    kernel's word counts: a path that is missing may come back."""
    if _is_held_at(packet.path, lock) or not process.HAS_PROC:
        return None
    try:
        path = os.path.dirname(os.readlink(f"/proc/self/fd/{lock.descriptor}"))
    except OSError:
        return None
    return path if _is_held_at(path, lock) else None


def _is_held_at(path: str, lock: Lock) -> bool:
    """Whether the lock that we hold is that of the packet at `path`."""
    try:
        return os.path.samestat(os.stat(Packet(path).runner_lock), os.fstat(lock.descriptor))
    except OSError:
        return False
