"""Growth: wake up when a log file gets longer.

Unlike a poll, a notification costs nothing while nothing happens. The kernel has two: a signal when something
in a directory is written (dnotify, SIGIO), of which there are as many as wanted, and inotify, of which a user
has 128 instances by default, for all programs together. Without either, the caller must poll
(docs/decisions/0003-waking-up-on-output.md).
"""

from __future__ import annotations

import fcntl
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # the C module, as in the recorder

_IN_MODIFY = 0x2
#: Read size; a multiple of the size of an inotify event without a name.
_DRAIN_BYTES = 4096
_IN_NONBLOCK, _IN_CLOEXEC = 0o4000, 0o2000000


class GrowthWatch:
    """Reports writes to files of one directory: by SIGIO, through `descriptor`, or not at all.

    A signal comes once after each `arm`, and other files of the directory cause one, too.
    """

    def __init__(self, paths: list[str]) -> None:
        self._directory = _signalling(os.path.dirname(paths[0]))
        #: Readable after a write; -1 if there is none.
        self.descriptor = -1 if self._directory >= 0 else _inotify(paths)

    @property
    def is_told(self) -> bool:
        """Whether the kernel reports writes; otherwise the caller must poll."""
        return self._directory >= 0 or self.descriptor >= 0

    def arm(self) -> None:
        """Report writes from now on; what was reported before is discarded."""
        if self._directory >= 0 and not _notify(self._directory, fcntl.DN_MODIFY):
            self.close()
        if self.descriptor >= 0:
            _drain(self.descriptor)

    def disarm(self) -> None:
        """Send no signal. (A descriptor interrupts nothing.)"""
        if self._directory >= 0:
            _notify(self._directory, 0)

    def close(self) -> None:
        """Stop watching."""
        for descriptor in (self._directory, self.descriptor):
            if descriptor >= 0:
                os.close(descriptor)
        self._directory = self.descriptor = -1


def _signalling(path: str) -> int:
    """A descriptor of the directory if the kernel can signal writes in it, else -1.

    Only where SIGIO has a handler: without one, it ends the process.
    """
    if not hasattr(fcntl, "F_NOTIFY") or not callable(signal.getsignal(signal.SIGIO)):
        return -1
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return -1
    if _notify(directory, fcntl.DN_MODIFY):
        return directory
    os.close(directory)
    return -1


def _notify(directory: int, what: int) -> bool:
    try:
        fcntl.fcntl(directory, fcntl.F_NOTIFY, what)
    except OSError:
        return False  # a kernel without dnotify, or switched off (fs.dir-notify-enable)
    return True


def _inotify(paths: list[str]) -> int:
    if sys.platform != "linux":
        return -1
    import ctypes  # its classes would be in the memory of every runner

    libc = ctypes.CDLL(None)
    descriptor: int = libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
    if descriptor < 0:
        return -1
    for path in paths:
        if libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_MODIFY) < 0:
            os.close(descriptor)
            return -1
    return descriptor


def _drain(descriptor: int) -> None:
    """Discard pending events. The kernel merges consecutive writes to one file, but not alternating writes to
    two, so there may be many."""
    try:
        while len(os.read(descriptor, _DRAIN_BYTES)) == _DRAIN_BYTES:
            pass
    except BlockingIOError:
        return
