"""The workspace lock: held while a stage with a scope writes, so that no other one changes what it will be judged by."""

from __future__ import annotations

import os

from holdfast.errors import LockHeld
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Home


def path_of(home: Home, directory: str) -> str:
    """The lock file of a directory, whatever the name by which it was reached."""
    name = sha256(os.fsencode(os.path.realpath(directory)))
    return os.path.join(home.workspaces, f"{name}.lock")


def acquire(home: Home, directory: str, *, role: str, within_s: float = locks.CONTEST_S) -> locks.Lock:
    """Take the lock of a directory. Raises LockHeld, which names the directory."""
    try:
        os.makedirs(home.workspaces, mode=0o700, exist_ok=True)
    except OSError as error:
        atomic.storage_failed(error, f"cannot make {home.workspaces}")
    try:
        return locks.acquire(path_of(home, directory), role=role, within_s=within_s)
    except LockHeld as error:
        raise LockHeld(
            f"another task writes in {directory}: {error}",
            hint="it is waited for; a task with --worktree has a directory of its own",
        ) from error
