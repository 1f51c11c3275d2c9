"""Paths in a directory in which an agent writes: nothing may lead out of it.

An agent can replace any file or directory of its packet and workspace by a link. What we write, delete or
execute there is reached without following one.
"""

from __future__ import annotations

import errno
import os
import stat

from holdfast import files
from holdfast.errors import StorageError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def plain_path(root: str, *targets: str) -> None:
    """Raises StorageError if a part of a path below `root` is a link. What is missing is no link."""
    for target in targets:
        path = root
        for name in os.path.relpath(target, root).split("/"):
            path = f"{path}/{name}"
            refuse_link(path)


def refuse_link(path: str) -> None:
    """Raises StorageError if the path itself is a link."""
    if os.path.islink(path):
        raise StorageError(
            f"{path} is a symbolic link, which is not followed",
            hint="an agent may have made it: look where it leads, and remove it unless it is yours",
        )


def refuse_second_name(path: str) -> None:
    """Raises StorageError if a file that another program appends to is a hard link: it may be a user's."""
    try:
        found = os.lstat(path)
    except OSError:
        return
    if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
        from shlex import quote  # only needed for the error

        own = quote(f"{path}.own")
        raise StorageError(
            f"{path} is a hard link: a line added there would be added to another file, too",
            hint=f"an agent may have made it, or a copy by 'cp -al'; look at it, then: "
            f"cp -p {quote(path)} {own} && mv {own} {quote(path)}",
        )


def is_directory(path: str) -> bool:
    """Whether it is a directory, and not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def leads_out(path: str, *roots: str) -> bool:
    """Whether a path that begins in one of these directories ends outside it, through a link."""
    root = _root_of(path, roots)
    return root is not None and not os.path.realpath(path).startswith(root + "/")


def read_named(path: str, *roots: str) -> bytes:
    """The content of a file that a user named. Raises OSError.

    If it is in one of these directories, in which an agent writes, no link leads out of it: else the agent
    would choose what we read, and get to see it.
    """
    root = _root_of(path, roots)
    if root is None:
        return files.read(path, follow=True)
    real: str = os.path.realpath(path)
    if not real.startswith(root + "/"):
        raise OSError(errno.ELOOP, f"a link leads out of {root}", path)
    *folders, name = real[len(root) + 1 :].split("/")
    # Step by step: nothing can be put in between.
    held = os.open(root, _FOLDER)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER, dir_fd=held)
            os.close(held)
            held = inner
        descriptor = os.open(name, _FILE, dir_fd=held)
    finally:
        os.close(held)
    try:
        files.check_regular(descriptor, path)
    except OSError:
        os.close(descriptor)
        raise
    return files.read_open(descriptor, path)


def _root_of(path: str, roots: tuple[str, ...]) -> str | None:
    """The directory of these in which a path begins, resolved; None if it begins in none."""
    real = {os.path.realpath(root).rstrip("/") for root in roots if root}
    above = os.path.dirname(os.path.abspath(path))
    while above != "/":
        if (found := os.path.realpath(above)) in real:
            return found
        above = os.path.dirname(above)
    return None
