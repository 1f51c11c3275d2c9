"""The workspace lock: held while a stage with a scope writes, so that no other task changes its tree."""

from __future__ import annotations

import os

from holdfast.errors import LockHeld
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Home

#: The longest `.git` file that is read.
_LINK_BYTES = 1 << 16


def path_of(home: Home, directory: str) -> str:
    """The lock file of a directory.

    All directories of a repository share one, because a gate checks all of it.
    """
    name = sha256(os.fsencode(_top(os.path.realpath(directory))))
    return home.workspace_lock(name)


def _top(directory: str) -> str:
    """The root of the repository around a directory, or the directory itself.

    git is not run: taking a lock must not wait for a process. A `.git` that is no repository does not count:
    an agent in a directory of a repository could make one, and the next task would take another lock.
    """
    above = directory
    while not _is_repository(os.path.join(above, ".git")):
        above, below = os.path.dirname(above), above
        if above == below:
            return directory
    return above


def _is_repository(link: str) -> bool:
    """Whether a `.git` leads to a git directory."""
    path = link
    if not os.path.isdir(link):
        line = os.fsdecode((atomic.read_small(link, _LINK_BYTES) or b"").rstrip(b"\r\n"))
        if not line.startswith("gitdir: "):
            return False
        path = os.path.join(os.path.dirname(link), line.removeprefix("gitdir: "))
    if not os.path.lexists(os.path.join(path, "HEAD")):
        return False
    return all(os.path.isdir(os.path.join(path, name)) for name in ("objects", "refs")) or os.path.isfile(
        os.path.join(path, "commondir")
    )


def has_repository(directory: str) -> bool:
    """Whether a directory is in a repository. git is not run."""
    return _is_repository(os.path.join(_top(os.path.realpath(directory)), ".git"))


def acquire(home: Home, directory: str, *, role: str, within_s: float = locks.CONTEST_S) -> locks.Lock:
    """Take the lock of a directory. Raises LockHeld, which names the directory."""
    try:
        atomic.make_directory(home.workspaces)
    except OSError as error:
        atomic.storage_failed(error, f"cannot create {home.workspaces}")
    try:
        return locks.acquire(path_of(home, directory), role=role, within_s=within_s)
    except LockHeld as error:
        raise LockHeld(
            f"another task writes in {directory}: {error}",
            hint="wait for it, or use --worktree for a separate directory",
        ) from error


def sign(home: Home, directory: str, task_id: str | None) -> None:
    """Record which task writes there (None: no task), in case the lock's holder is killed."""
    path = _signature(home, directory)
    if task_id is None:
        atomic.remove(path)
    else:
        atomic.write(path, task_id.encode(), durable=False)


def writer(home: Home, directory: str) -> str | None:
    """The task that was last recorded as writing there. It may have ended since."""
    task_id = atomic.read_small(_signature(home, directory), 1024)
    return task_id.decode("utf-8", "replace") if task_id else None


def _signature(home: Home, directory: str) -> str:
    return path_of(home, directory).removesuffix(".lock") + ".task"
