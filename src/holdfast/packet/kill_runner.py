"""Kill a runner that does not answer: a signal stopped it, it hangs, or another process took its lock.

A task must be stoppable and removable, whatever its agent does. The next runner continues from the packet, so
this harms nothing. The lock proves who it is: the kernel says which processes hold it.
"""

from __future__ import annotations

import os
import signal

from holdfast import clock
from holdfast.store import audit, lock_holders, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Packet

#: How long a runner may do nothing about a request of `stop --now` or `rm --force`.
KILL_S = 10.0


class Patience:
    """Kills a runner that records nothing for KILL_S, once: one that waits for a process which cannot be
    killed records nothing either."""

    def __init__(self, packet: Packet) -> None:
        self._packet = packet
        self._bytes = -1
        self._since_mono = clock.mono()
        self._is_over = False

    def look(self) -> None:
        """To be called often."""
        try:
            size = os.stat(self._packet.journal).st_size
        except OSError:
            size = 0
        now_mono = clock.mono()
        if size != self._bytes:
            self._bytes, self._since_mono = size, now_mono
        if not self._is_over and now_mono - self._since_mono > KILL_S:
            self._is_over = True
            kill_runner(self._packet)


def kill_runner(packet: Packet) -> None:
    """Kill the process that holds the lock of a task's runner."""
    for pid in lock_holders.holders(packet.runner_lock):
        found = process.identify(pid)
        # Asked again: the pid may have another owner by now.
        if found is None or pid == os.getppid() or not lock_holders.holds(packet.runner_lock, pid):
            continue
        if process.send(found, signal.SIGKILL):
            entry = {"operation": "runner.killed", "task_id": packet.task_id, "by": audit.whoami()}
            reason = f"process {pid} held its lock and did nothing for {KILL_S:.0f}s"
            audit.append(packet.home, {**entry, "reason": reason})
