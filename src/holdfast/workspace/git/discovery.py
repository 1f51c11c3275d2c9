"""Finding a repository without git: only `.git` in a directory counts.

So a bare repository among the files of a project is never used, and `core.worktree`, which an agent can
write, moves nothing.
"""

from __future__ import annotations

import os

from holdfast.model.record import Record
from holdfast.program_search import distrust
from holdfast.store import atomic

#: The longest `.git` or `commondir` file that is read.
_LINK_BYTES = 1 << 16


class Repository(Record):
    """The repository around a directory."""

    #: The root of its working tree.
    top: str
    #: The git directory of this working tree, and the one that all worktrees share.
    git_dir: str
    common_dir: str
    #: The path of the directory below the root; empty, or with a final slash.
    prefix: str = ""
    #: Another index than its own.
    index: str | None = None

    def is_inside(self, *roots: str) -> bool:
        """Whether its git directories are below one of these directories."""
        return all(
            any(path.startswith(root.rstrip("/") + "/") for root in map(os.path.realpath, roots))
            for path in (self.git_dir, self.common_dir)
        )


def find(directory: str) -> Repository | None:
    """The repository whose working tree contains `directory`; None outside a repository."""
    distrust(directory)
    start: str = os.path.realpath(directory)
    while not os.path.isdir(start) and start != "/":
        start = os.path.dirname(start)  # it was removed; what was around it is still known
    folder: str = start
    device = os.stat(start).st_dev
    while True:
        link = os.path.join(folder, ".git")
        if os.path.lexists(link):
            repository = at(folder)
            if repository is not None:
                below = os.path.relpath(os.path.realpath(directory), folder)
                return repository.evolve(prefix="" if below == "." else below + "/")
            if not os.path.isdir(link):
                return None  # a `.git` file that leads nowhere: not the repository around it
        above: str = os.path.dirname(folder)
        if above == folder or os.stat(above).st_dev != device:
            return None
        folder = above


def at(top: str) -> Repository | None:
    """The repository whose working tree begins exactly here."""
    distrust(top)
    link = os.path.join(top, ".git")
    if os.path.isdir(link):
        git_dir = os.path.realpath(link)
    else:
        line = _line(link)
        if line is None or not line.startswith("gitdir: "):
            return None
        git_dir = os.path.realpath(os.path.join(top, line.removeprefix("gitdir: ")))
    return of_git_dir(git_dir, top)


def of_git_dir(git_dir: str, top: str) -> Repository | None:
    """The repository with this git directory."""
    common_dir = common_of(git_dir)
    is_complete = os.path.lexists(os.path.join(git_dir, "HEAD")) and all(
        os.path.isdir(os.path.join(common_dir, name)) for name in ("objects", "refs")
    )
    return Repository(top=top, git_dir=git_dir, common_dir=common_dir) if is_complete else None


def common_of(git_dir: str) -> str:
    """The git directory that all worktrees share, as the one of this worktree names it."""
    shared = _line(os.path.join(git_dir, "commondir"))
    return git_dir if shared is None else os.path.realpath(os.path.join(git_dir, shared))


def _line(path: str) -> str | None:
    """The one line of a file; None if it is no regular file."""
    data = atomic.read_small(path, _LINK_BYTES)
    return None if data is None else os.fsdecode(data.rstrip(b"\r\n"))
