"""Copy a user's files into a new packet: regular files and directories only, up to a size limit."""

from __future__ import annotations

import errno
import os
import stat

from holdfast.errors import UnreadableFile, UsageError
from holdfast.store import atomic

MAX_BYTES = 256 * 1024**2
_CHUNK = 1024 * 1024
_MAX_DEPTH = 32


def copy(source: str, target: str, *, except_for: tuple[str, ...] = ()) -> None:
    """Copy the contents of a directory, durably. `except_for` are names at its top level.

    A link is followed if it leads to a file inside the directory. Raises UsageError for other links, for
    special files (sockets, devices), and for more than 256 MB; OSError if a write fails.
    """
    if os.path.isdir(source):
        _Copy(os.path.realpath(source)).folder(
            os.path.realpath(source), target, except_for=except_for, depth=0
        )


def contents(path: str, most_bytes: int, *, inside: str | None = None) -> bytes:
    """The content of a file, up to `most_bytes` plus one byte.

    `inside`: a directory that a link must not leave, because its content is untrusted. Raises OSError, also
    for special files; does not block on a FIFO.
    """
    if inside is not None:
        root, path = os.path.realpath(inside), os.path.realpath(path)
        if os.path.commonpath((path, root)) != root:
            raise OSError(errno.ELOOP, f"a link to a file outside {inside}", path)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        return file.read(most_bytes + 1)


class _Copy:
    def __init__(self, root: str) -> None:
        self._root = root
        self._left = MAX_BYTES

    def folder(self, source: str, target: str, *, except_for: tuple[str, ...] = (), depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise UsageError(f"{source}: more than {_MAX_DEPTH} nested directories")
        os.makedirs(target, mode=0o700, exist_ok=True)
        try:
            names = sorted(set(os.listdir(source)) - set(except_for))
        except OSError as error:
            raise UnreadableFile(f"cannot read {source}: {error.strerror}", hint="check its mode") from error
        for name in names:
            path, copied = os.path.join(source, name), os.path.join(target, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                path = self._followed(path)
                mode = os.lstat(path).st_mode
                if not stat.S_ISREG(mode):
                    raise UsageError(
                        f"{path}: a link, but not to a file", hint="replace the link with the files"
                    )
            if stat.S_ISDIR(mode):
                self.folder(path, copied, depth=depth + 1)
            elif stat.S_ISREG(mode):
                self._file(path, copied)
            else:
                raise UsageError(
                    f"{path} is neither a file nor a directory", hint="remove it from the packet"
                )
        atomic.sync_directory(target)

    def _followed(self, link: str) -> str:
        path = os.path.realpath(link)
        if not os.path.exists(path):
            raise UsageError(f"{link}: a broken link", hint="remove it, or replace it with the file")
        if os.path.commonpath((path, self._root)) != self._root:
            raise UsageError(f"{link}: a link to a file outside the packet", hint="replace it with the file")
        return path

    def _file(self, source: str, target: str) -> None:
        # The file may have been replaced since lstat: do not follow a link, and do not block on a FIFO.
        try:
            reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise UnreadableFile(f"cannot read {source}: {error.strerror}", hint="check its mode") from error
        try:
            if not stat.S_ISREG(os.fstat(reading).st_mode):
                raise UsageError(f"{source} is no longer a file")
            writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                while data := os.read(reading, _CHUNK):
                    self._left -= len(data)
                    if self._left < 0:
                        raise UsageError(
                            f"the inputs in {self._root} are larger than {MAX_BYTES // 1024**2} MB",
                            hint="leave large files where they are, and mention their paths in the request",
                        )
                    atomic.write_all(writing, data)
                os.fsync(writing)
            finally:
                os.close(writing)
        finally:
            os.close(reading)
