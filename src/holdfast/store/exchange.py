"""Put a file in the place of another without waiting for the disk.

On ext4 a rename over a file writes the new one's bytes out first and waits for that, so that a power cut leaves one of the two. An
exchange of both names does not wait, and is as whole for every reader. After a power cut the file may be empty: so it is for what is
written again and again, says nothing new, and can be made anew (docs/decisions/0041-what-an-idle-task-costs.md).
"""

from __future__ import annotations

import ctypes
import os
import sys

from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
# Looked up once, before anybody forks.
_renameat2: Any = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None


def place(new: str, path: str) -> None:
    """Let `new` be what is at `path`. An ordinary rename where there is nothing to exchange it for, or no such call. Raises
    OSError."""
    if _renameat2 is not None:
        names = os.fsencode(new), os.fsencode(path)
        if _renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
            # Under the other name is the old one now. Whoever is killed here leaves a temporary file.
            atomic.forget(new)
            return
    os.rename(new, path)
