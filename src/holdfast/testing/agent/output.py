"""Bytes to stdout and stderr: one unbuffered write per line, as agent CLIs do."""

from __future__ import annotations

import errno
import os
import select


class Output:
    """stdout and stderr of the scripted agent.

    A reader that went away does not stop an agent: what cannot be written is dropped and
    counted in `lost_bytes`. `is_writing` is true while a line is under way; a signal handler
    that wants to print must wait for it, or it would land in the middle of that line.
    """

    def __init__(self) -> None:
        self.total_bytes = 0
        self.lost_bytes = 0
        self.is_writing = False

    def write(self, data: bytes, fd: int = 1) -> None:
        """All of the bytes, however slowly they are taken; what nobody can take is counted in `lost_bytes`."""
        self.is_writing = True
        self.total_bytes += len(data)
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:
                # Somebody else made the shared pipe non-blocking; wait for room.
                select.select([], [fd], [])
            except OSError as error:
                # EPIPE: the reader is gone. EBADF: started with the descriptor closed.
                # ENOSPC: the disk that holds the log is full. A real agent works on.
                if error.errno not in (errno.EPIPE, errno.EBADF, errno.ENOSPC, errno.EIO):
                    raise
                self.lost_bytes += len(view)
                break
        self.is_writing = False

    def line(self, text: str, fd: int = 1) -> None:
        """One line."""
        self.write(encode(text + "\n"), fd)


def encode(text: str) -> bytes:
    """UTF-8; what cannot be encoded (bytes smuggled in through argv) becomes a question mark."""
    return text.encode("utf-8", "replace")
