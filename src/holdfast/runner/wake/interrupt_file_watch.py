"""Notice interrupt files at once: the kernel signals when something is created or written beside them.

Both this and watch/growth.py use dnotify; there, SIGIO means that a log grew, so this uses another signal.
Without dnotify, the files are found with the next heartbeat.
"""

from __future__ import annotations

import fcntl
import os

from holdfast import clock
from holdfast.runner.wake.waiter import INTERRUPT_FILE
from holdfast.store.layout import Packet

#: A file is read once nothing has changed for the first time, or changes have gone on for the second: a shell
#: creates it before it writes.
_SETTLE_S, _LONGEST_S = 0.1, 1.0


class InterruptFileWatch:
    """Watches the files by which an agent or a person interrupts the task.

    It is armed only while the runner sleeps, so the runner's own writes do not wake it.
    """

    def __init__(self, packet: Packet, *, is_sandboxed: bool) -> None:
        self._paths = [packet.interrupt_request, packet.error_marker, packet.work]
        if is_sandboxed:
            self._paths.append(packet.sandbox_request)
        self._folders: dict[str, int] = {}
        self._is_armed = False
        self._stamps = [_stamp(path) for path in self._paths]
        #: When the first unread change was seen, and when it is due to be read.
        self._since_mono = self._due_mono = 0.0

    def arm(self) -> float | None:
        """Report changes from now on. Returns the time until a change is due to be read; None if there is
        none. 0 is returned once."""
        self._is_armed = True
        for folder in {os.path.dirname(path) for path in self._paths}:
            self._arm(folder)
        now_mono = clock.mono()
        # After arming: what came before is seen here.
        stamps = [_stamp(path) for path in self._paths]
        if stamps != self._stamps:
            self._stamps = stamps
            self._since_mono = self._since_mono or now_mono
            self._due_mono = min(now_mono + _SETTLE_S, self._since_mono + _LONGEST_S)
        if not self._since_mono:
            return None
        if now_mono < self._due_mono:
            return self._due_mono - now_mono
        self._since_mono = 0.0
        return 0.0

    def disarm(self) -> None:
        """Report nothing."""
        if not self._is_armed:
            return
        self._is_armed = False
        for descriptor in self._folders.values():
            _notify(descriptor, 0)

    def _arm(self, folder: str) -> None:
        if folder not in self._folders:
            descriptor = _open(folder)
            if descriptor < 0:
                return
            self._folders[folder] = descriptor
        if not _notify(self._folders[folder], fcntl.DN_CREATE | fcntl.DN_MODIFY):
            os.close(self._folders.pop(folder))

    def close(self) -> None:
        """Stop watching."""
        for descriptor in self._folders.values():
            os.close(descriptor)
        self._folders = {}


def _open(folder: str) -> int:
    """A descriptor of the directory whose changes are signalled with INTERRUPT_FILE; -1 if not possible."""
    if not hasattr(fcntl, "F_NOTIFY"):
        return -1
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return -1
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, INTERRUPT_FILE)
    except OSError:
        os.close(descriptor)
        return -1
    return descriptor


def _notify(descriptor: int, what: int) -> bool:
    try:
        fcntl.fcntl(descriptor, fcntl.F_NOTIFY, what)
    except OSError:
        return False
    return True


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        state = os.lstat(path)
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns, state.st_size
