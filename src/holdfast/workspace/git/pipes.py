"""Files on which git would wait for ever.

git opens ignore rules, attributes and files of a git directory as they are. A named pipe in the place of one
blocks it, and nobody writes into that pipe.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: What git reads of a working tree by itself.
_NAMES = frozenset({".gitignore", ".gitattributes", ".gitmodules", ".mailmap", ".git"})
#: In a git directory, git opens everything but this. (Objects are files that git writes under their digest;
#: it opens no other there.)
_SKIPPED = frozenset({"objects", "modules", "worktrees"})


def find(tree: str, git_dir: str | None) -> str | None:
    """The first such file of a working tree, or of a git directory; None if there is none."""
    for path in _in_tree(tree):
        if _blocks(path):
            return path
    for path in _in_git_dir(git_dir) if git_dir is not None else ():
        if _blocks(path):
            return path
    return None


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
    for folder, folders, names in os.walk(git_dir):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        yield from (os.path.join(folder, name) for name in names)


def _blocks(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False
