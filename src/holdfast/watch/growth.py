"""Growth: wake up when a log file gets longer.

Unlike a poll, inotify costs nothing while nothing happens (docs/decisions/0003-inotify.md). The number of
inotify instances per user is limited (128 by default); without one the caller must poll.
"""

from __future__ import annotations

import ctypes
import os
import sys

# Loaded once, before any fork: each CDLL() creates classes, in memory that forked processes would not share.
_libc: ctypes.CDLL | None = ctypes.CDLL(None) if sys.platform == "linux" else None
_IN_MODIFY = 0x2
#: Read size; a multiple of the size of an inotify event without a name.
_DRAIN_BYTES = 4096
_IN_NONBLOCK, _IN_CLOEXEC = 0o4000, 0o2000000


class GrowthWatch:
    """Its `descriptor` is readable after a write to one of the files; -1 if the caller must poll."""

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
        """Discard pending events. The kernel merges consecutive writes to one file, but not alternating
        writes to two, so there may be many."""
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
