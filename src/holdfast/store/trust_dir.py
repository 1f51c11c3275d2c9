"""The directory beside the user's settings for what no agent may decide: trust in projects (`trust.py`), the
options of `up` (`up_options.py`), the records of homes (`home_records.py`), the user's notification rules and
the keys of replies (`notify`).

An agent can write in the home, but not here. A file that others can write counts as missing.
"""

from __future__ import annotations

import os
import stat

from holdfast import paths
from holdfast.store.digest import sha256

_MAX_BYTES = 8 * 1024 * 1024
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


def path_for(folder: str, kind: str) -> str:
    """The file about a project or a home, by its real path."""
    name = sha256(os.fsencode(os.path.realpath(folder)))[:32]
    return os.path.join(paths.trust_dir(), f"{name}.{kind}")


def make() -> None:
    """Create the directory if it is missing. Raises OSError."""
    os.makedirs(paths.trust_dir(), mode=0o700, exist_ok=True)


def is_own_folder(path: str) -> bool:
    """Whether it, or what is at a path in it, is a directory, no link, in which only the user can write.
    Raises OSError."""
    return _is_ours(os.stat(path, follow_symlinks=False), stat.S_IFDIR)


def read(path: str, *, others: int = stat.S_IWGRP | stat.S_IWOTH) -> bytes | None:
    """The bytes of a file in it; None if it does not exist, or if other users have a right in `others`."""
    try:
        if not is_own_folder(os.path.dirname(path)):
            return None
        descriptor = os.open(path, _OPEN)
        try:
            found = os.fstat(descriptor)
            if not _is_ours(found, stat.S_IFREG) or found.st_size > _MAX_BYTES or found.st_mode & others:
                return None
            data = b""
            while len(data) <= _MAX_BYTES and (piece := os.read(descriptor, _MAX_BYTES)):
                data += piece
            return data
        finally:
            os.close(descriptor)
    except OSError:
        return None


def _is_ours(found: os.stat_result, kind: int) -> bool:
    is_safe = not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_IFMT(found.st_mode) == kind and found.st_uid == os.geteuid() and is_safe
