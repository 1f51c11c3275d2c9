"""Growth: wake up when a log file gets longer.

inotify costs nothing while nothing happens, which a poll does not (docs/decisions/0003-inotify.md). The number of
inotify instances per user is small (128 by default), so without one the caller polls.
"""

from __future__ import annotations

import ctypes
import os
import sys

# Once, before anybody forks: each CDLL() makes classes of its own, in memory that is shared no more.
_libc: ctypes.CDLL | None = ctypes.CDLL(None) if sys.platform == "linux" else None
_IN_MODIFY = 0x2
#: A multiple of what one piece of news has.
_DRAIN_BYTES = 4096
_IN_NONBLOCK, _IN_CLOEXEC = 0o4000, 0o2000000


class GrowthWatch:
    """Readable (`descriptor`) after one of the files was written to; -1 when the caller must poll."""

    def __init__(self, paths: list[str]) -> None:
        self.descriptor = -1
        if _libc is None:
            return
        descriptor = _libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
        if descriptor < 0:
            return
        for path in paths:
            if _libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_MODIFY) < 0:
                os.close(descriptor)
                return
        self.descriptor = descriptor

    def drain(self) -> None:
        """Forget what woke us. Writes to one file coalesce in the kernel, so this is a short read; those to two in turn do not."""
        if self.descriptor < 0:
            return
        try:
            while len(os.read(self.descriptor, _DRAIN_BYTES)) == _DRAIN_BYTES:
                pass
        except BlockingIOError:
            return

    def close(self) -> None:
        """Stop watching."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
