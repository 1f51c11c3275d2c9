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
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
#: O_PATH, which only Linux has, needs no permission to list it. Links are followed: a home may be one.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
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
    return open_sized(path, follow=follow)[0]


def open_sized(path: str, *, follow: bool = False) -> tuple[int, int]:
    """As `open_regular`, with the size that the file has now."""
    try:
        descriptor = os.open(path, _READ if follow else _READ | os.O_NOFOLLOW)
    except ValueError as error:
        raise OSError(errno.EINVAL, "its name has a NUL byte", path) from error
    try:
        return descriptor, check_regular(descriptor, path).st_size
    except OSError:
        os.close(descriptor)
        raise


def check_regular(descriptor: int, path: str) -> os.stat_result:
    """What `fstat` says of an open file. Raises OSError if it is not a regular one."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, _NOT_REGULAR, path)
    return found


def read(path: str, limit: int = MAX_BYTES, *, follow: bool = False) -> bytes:
    """Read a whole file.

    Not with `open`, which makes six more system calls; a launch reads about ten files.
    """
    descriptor, size = open_sized(path, follow=follow)
    return _read(descriptor, size, path, limit)


def read_open(descriptor: int, path: str, limit: int = MAX_BYTES) -> bytes:
    """Read a whole file that is open, and close it."""
    return _read(descriptor, os.fstat(descriptor).st_size, path, limit)


def _read(descriptor: int, size: int, path: str, limit: int) -> bytes:
    try:
        # A large buffer would be mapped and unmapped. (A file of /proc has no size.)
        data = os.read(descriptor, min(size, _WHOLE_BYTES) or _WHOLE_BYTES)
        if data and len(data) == size:
            return data
        if len(data) == _WHOLE_BYTES and size > limit:
            raise OSError(errno.EFBIG, f"it has more than {limit} bytes", path)
        while len(data) <= limit and (part := os.read(descriptor, _WHOLE_BYTES)):
            data += part
        return data
    finally:
        os.close(descriptor)


def read_argument(path: str) -> bytes:
    """Read a file that a user named: also a pipe, as `<(…)` is one. What has no end, such as a link to
    /dev/zero in a clone, is read up to MAX_BYTES, and refused."""
    with open(path, "rb") as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file.read()
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"it is no regular file, and has more than {MAX_BYTES >> 20} MB", path)
    return data


def read_end(path: str, count: int, folder: int | None = None) -> bytes:
    """Read the last `count` bytes of a file, with few system calls: `ls` does it for every task.

    The path may be relative to an open folder.
    """
    if not os.lstat(path, dir_fd=folder).st_size:
        return b""
    descriptor = os.open(path, _READ | os.O_NOFOLLOW, dir_fd=folder)
    try:
        size = check_regular(descriptor, path).st_size
        return os.pread(descriptor, count, max(0, size - count)) if size else b""
    finally:
        os.close(descriptor)


def open_folder(path: str) -> int:
    """A descriptor of a directory, to which other paths can be relative."""
    return os.open(path, _FOLDER)


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


def stream_open(descriptor: int) -> BinaryIO:
    """An open file, from its beginning, for reading in pieces. The descriptor stays open."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    return open(descriptor, "rb", closefd=False)


def lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of an open file. One that is longer than MAX_BYTES is cut there, and the last one: it is not
    ours, and to look for its end in a file of gigabytes takes many seconds."""
    while line := file.readline(MAX_BYTES):
        yield line
        if len(line) == MAX_BYTES and not line.endswith(b"\n"):
            return


def log(text: str) -> None:
    """Write a line to stderr, which is a log file in background processes. On a full disk it is lost: that
    must not end who works on."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        return
