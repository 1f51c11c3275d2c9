"""inotify: the kernel tells what changed in directories. Without it, a caller must poll.

A user has 128 instances by default, for all programs together. One instance per view is fine; what runs once
per task must not use it (`holdfast.watch.growth`).
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MODIFY, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x40, 0x80, 0x100, 0x200
#: Only if the path is a directory.
ONLYDIR = 0x1000000
#: The kernel dropped events (then `wd` is -1), or a watch is gone.
OVERFLOW, IGNORED = 0x4000, 0x8000
_NONBLOCK, _CLOEXEC = 0o4000, 0o2000000
_READ_BYTES = 65536
#: int wd, uint32 mask, uint32 cookie, uint32 length of the name.
_HEADER_BYTES = 16


class Inotify:
    """One instance."""

    def __init__(self, libc: Any, descriptor: int) -> None:
        self._libc = libc
        #: Readable when there are events.
        self.descriptor = descriptor

    @classmethod
    def open(cls) -> Inotify | None:
        """A new instance; None if the system has none, or none is left."""
        if sys.platform != "linux":
            return None
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        descriptor: int = libc.inotify_init1(_NONBLOCK | _CLOEXEC)
        return cls(libc, descriptor) if descriptor >= 0 else None

    def add(self, path: str, mask: int) -> int:
        """Watch a file or directory; the number of the watch. Raises OSError."""
        import ctypes

        wd: int = self._libc.inotify_add_watch(self.descriptor, os.fsencode(path), mask)
        if wd < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        return wd

    def remove(self, wd: int) -> None:
        """Stop watching. The watch may be gone already."""
        self._libc.inotify_rm_watch(self.descriptor, wd)

    def read(self) -> list[tuple[int, int, str]]:
        """The events that are there: watch, mask, name in the directory (empty for the watched path)."""
        events: list[tuple[int, int, str]] = []
        while True:
            try:
                data = os.read(self.descriptor, _READ_BYTES)
            except BlockingIOError:
                return events
            at = 0
            while at < len(data):
                wd = int.from_bytes(data[at : at + 4], sys.byteorder, signed=True)
                mask = int.from_bytes(data[at + 4 : at + 8], sys.byteorder)
                start = at + _HEADER_BYTES
                at = start + int.from_bytes(data[at + 12 : start], sys.byteorder)
                events.append((wd, mask, os.fsdecode(data[start:at].rstrip(b"\0"))))

    def close(self) -> None:
        """Stop watching everything."""
        os.close(self.descriptor)
