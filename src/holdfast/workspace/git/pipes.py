"""Files on which git would wait for ever.

git opens ignore rules, attributes and files of a git directory as they are. A named pipe in the place of one
blocks it, and no process writes into that pipe.
"""

from __future__ import annotations

import os
import stat

from holdfast import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: What git reads of a working tree by itself.
_NAMES = frozenset({".gitignore", ".gitattributes", ".gitmodules", ".mailmap", ".git"})
#: Directly in a git directory, git opens everything but this.
_SKIPPED = frozenset({"modules", "worktrees"})


def find(tree: str | None, *git_dirs: str | None) -> str | None:
    """The first such file of a working tree, or of git directories; None if there is none."""
    for git_dir in git_dirs:
        for path in _in_git_dir(git_dir) if git_dir is not None else ():
            if _blocks(path):
                return os.path.realpath(path)
    for path in _in_tree(tree) if tree is not None else ():
        if _blocks(path):
            return path
    return None


def is_waiting(pid: int) -> bool:
    """Whether the kernel says that a process waits for the other end of a pipe. False if it does not tell."""
    try:
        return files.read(f"/proc/{pid}/wchan") in (b"wait_for_partner", b"fifo_open")
    except OSError:
        return False


def _in_tree(tree: str) -> Iterator[str]:
    folders = [tree]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.name in _NAMES:
                        yield entry.path
                    if entry.name != ".git" and entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue


def _in_git_dir(git_dir: str) -> Iterator[str]:
    """The files of a git directory. In one of ours, what is directly below are links into the repository."""
    for folder, folders, names in os.walk(git_dir):
        if folder == git_dir:
            folders[:] = [name for name in folders if name not in _SKIPPED]
        yield from (os.path.join(folder, name) for name in names)
        for name in folders if folder == git_dir else ():
            if os.path.islink(path := os.path.join(folder, name)):
                yield from (os.path.join(at, each) for at, _, found in os.walk(path) for each in found)


def _blocks(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False
