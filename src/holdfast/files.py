"""Open files that an agent, a person or a crash may have replaced: only this module and `store` open them.

In place of a file there may be a pipe (which would block the reader), a link (to a file of another user, or
to /dev/zero), a directory, a device, or something far too large. Every file of a home is opened without
blocking and without following a link, must be a regular file, and is read up to a limit. Raises OSError
otherwise.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
#: No file that is read as a whole is nearly as large, and no line of a journal.
MAX_BYTES = 64 * 1024 * 1024
#: Read at once; larger files are read in several steps.
_WHOLE_BYTES = 128 * 1024
#: What open and `open_regular` say about what is no file, or may not be read.
UNUSABLE = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.ELOOP,
        errno.EISDIR,
        errno.ENOTDIR,
        errno.ENXIO,
        errno.ENODEV,
        errno.EINVAL,
        errno.EFBIG,
    }
)


_NOT_REGULAR = "it is not a regular file"


def open_regular(path: str, *, follow: bool = False) -> int:
    """Open a regular file for reading. `follow`: it may be a link, as a user's settings often are."""
    descriptor = os.open(path, _READ if follow else _READ | os.O_NOFOLLOW)
    try:
        check_regular(descriptor, path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def check_regular(descriptor: int, path: str) -> None:
    """Raises OSError if an open file is not a regular one."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, _NOT_REGULAR, path)


def read(path: str, limit: int = MAX_BYTES, *, follow: bool = False) -> bytes:
    """Read a whole file.

    Not with `open`, which makes six more system calls; a launch reads about ten files.
    """
    descriptor = open_regular(path, follow=follow)
    try:
        data = os.read(descriptor, _WHOLE_BYTES)
        # The size is asked for only here: most files are small.
        if len(data) == _WHOLE_BYTES and os.fstat(descriptor).st_size > limit:
            raise OSError(errno.EFBIG, f"it has more than {limit} bytes", path)
        while len(data) <= limit and (part := os.read(descriptor, _WHOLE_BYTES)):
            data += part
        return data
    finally:
        os.close(descriptor)


def read_end(path: str, count: int) -> bytes:
    """Read the last `count` bytes of a file, with few system calls: `ls` does it for every task."""
    descriptor = os.open(path, _READ | os.O_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, _NOT_REGULAR, path)
        return os.pread(descriptor, count, max(0, found.st_size - count)) if found.st_size else b""
    finally:
        os.close(descriptor)


def drain(descriptor: int) -> bytes:
    """Read all that a non-blocking pipe holds now."""
    data = b""
    try:
        while part := os.read(descriptor, _WHOLE_BYTES):
            data += part
    except BlockingIOError:
        pass
    return data


def stream(path: str) -> BinaryIO:
    """Open a file for reading in pieces."""
    return open(open_regular(path), "rb")


def lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of an open file. One that is longer than MAX_BYTES is cut there, and its rest is skipped."""
    while line := file.readline(MAX_BYTES):
        is_cut = not line.endswith(b"\n") and len(line) == MAX_BYTES
        yield line
        while is_cut and (rest := file.readline(MAX_BYTES)):
            is_cut = not rest.endswith(b"\n")
