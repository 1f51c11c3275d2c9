"""Paths in a directory in which an agent writes: nothing may lead out of it.

An agent can replace any file or directory of its packet and workspace by a link. What we write, delete or
execute there is reached without following one.
"""

from __future__ import annotations

import os
import stat

from holdfast.errors import StorageError


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
            hint="an agent may have made it; remove the link",
        )


def is_directory(path: str) -> bool:
    """Whether it is a directory, and not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
