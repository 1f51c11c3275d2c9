"""Detect a packet that was removed, moved or taken over while its runner runs (`rm -rf "$HOLDFAST_HOME"`).

Without its packet a task cannot be recorded, so it must stop. A file system may be missing for a moment, so
one check is not enough: the packet is gone if its directory, which we hold open, has no links and is not at
its path, in two checks (docs/decisions/0040-removed-homes.md). A moved packet continues at its new path.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.store import process
from holdfast.store.layout import Packet
from holdfast.store.lock import Lock

#: Time between the two checks.
CONFIRM_S = 1.0


class PacketWatch:
    """Checks whether the runner still has its packet."""

    def __init__(self, packet: Packet, lock: Lock, journal: int = -1) -> None:
        self._packet = packet
        self.lock = lock
        self._journal = journal
        self._suspected_mono: float | None = None

    @property
    def is_lost(self) -> bool:
        """Whether another runner may have the task: neither file nor directory of our lock is in place.

        Then nothing may be written. What is missing of a lock that we hold is put back. Without its journal a
        task cannot be recorded either.
        """
        return not self.lock.mend() or self._is_journal_gone()

    def _is_journal_gone(self) -> bool:
        # If there is another one in its place, the next append notices it and puts ours back.
        return (
            self._journal >= 0
            and os.fstat(self._journal).st_nlink == 0
            and not os.path.lexists(self._packet.journal)
        )

    def is_suspected(self) -> bool:
        """Whether the packet is gone in this check. If only the lock file was removed, it is not."""
        is_gone = self._is_journal_gone() or (
            os.fstat(self.lock.anchor).st_nlink == 0 and not _is_at(self._packet.path, self.lock)
        )
        if not is_gone:
            self._suspected_mono = None
        elif self._suspected_mono is None:
            self._suspected_mono = clock.mono()
        return is_gone

    def is_certain(self) -> bool:
        """Whether the packet is gone and was gone CONFIRM_S ago."""
        return (
            self.is_suspected()
            and self._suspected_mono is not None
            and clock.mono() - self._suspected_mono >= CONFIRM_S
        )


def moved_to(packet: Packet, lock: Lock) -> str | None:
    """The packet's new path if it or its home was renamed; else None.

    Decided by the kernel's path of the directory that we hold open; the old path may be missing or in use
    again.
    """
    if _is_at(packet.path, lock) or not process.HAS_PROC:
        return None
    try:
        path = os.readlink(f"/proc/self/fd/{lock.anchor}")
    except OSError:
        return None
    return path if _is_at(path, lock) else None


def _is_at(path: str, lock: Lock) -> bool:
    """Whether the packet whose lock we hold is at `path`."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(lock.anchor))
    except OSError:
        return False
