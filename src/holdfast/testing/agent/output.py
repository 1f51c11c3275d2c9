"""Bytes to stdout and stderr: one unbuffered write per line, like agent CLIs."""

from __future__ import annotations

import errno
import os
import select


class Output:
    """stdout and stderr of the scripted agent.

    A reader that went away does not stop an agent: data that cannot be written is dropped and counted in
    `lost_bytes`. `is_writing` is true while a line is being written; a signal handler that wants to print
    must wait, or its output would end up in the middle of that line.
    """

    def __init__(self) -> None:
        self.total_bytes = 0
        self.lost_bytes = 0
        self.is_writing = False

    def write(self, data: bytes, fd: int = 1) -> None:
        """Write all bytes, however slowly they are read; bytes that cannot be written are counted in
        `lost_bytes`."""
        self.is_writing = True
        self.total_bytes += len(data)
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:
                # Another process made the shared pipe non-blocking; wait for space.
                select.select([], [fd], [])
            except OSError as error:
                # EPIPE: the reader is gone. EBADF: started with the descriptor closed. ENOSPC: the log's disk
                # is full. A real agent continues.
                if error.errno not in (errno.EPIPE, errno.EBADF, errno.ENOSPC, errno.EIO):
                    raise
                self.lost_bytes += len(view)
                break
        self.is_writing = False

    def line(self, text: str, fd: int = 1) -> None:
        """Write one line."""
        self.write(encode(text + "\n"), fd)


def encode(text: str) -> bytes:
    """UTF-8; what cannot be encoded (bytes passed through argv) becomes a question mark."""
    return text.encode("utf-8", "replace")
