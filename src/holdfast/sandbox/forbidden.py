"""The forbidden paths of a task that a workspace has: no sandbox of the task shows them."""

from __future__ import annotations

import os

from holdfast.store.directories import walk
from holdfast.workspace.scope import compiled


def forbidden_in(
    directory: str,
    patterns: tuple[str, ...],
    *,
    known: tuple[list[int], ...] = (),
    has_git: bool = True,
) -> list[str]:
    """The forbidden paths of the workspace that exist now, and what was one at the start (`known`)."""
    forbidden, found = compiled(patterns), list[str]()
    inodes = {(device, inode) for device, inode in known}
    root = os.path.realpath(directory)

    def is_meant(folder: str, prefix: str, name: str) -> bool:
        if forbidden.match_file(prefix + name):
            return True
        path = os.path.join(folder, name.rstrip("/"))
        return bool(inodes) and _inode(path) in inodes

    for folder, folders, names in walk(root):
        inner = os.path.relpath(folder, root)
        prefix = "" if inner == "." else inner + "/"
        if not prefix and has_git and ".git" in folders:
            folders.remove(".git")
        for name in folders[:]:
            if is_meant(folder, prefix, f"{name}/"):
                folders.remove(name)
                found.append(os.path.join(folder, name))
        found += [os.path.join(folder, name) for name in names if is_meant(folder, prefix, name)]
    return found


def _inode(path: str) -> tuple[int, int] | None:
    try:
        stats = os.stat(path)
    except OSError:
        return None
    return stats.st_dev, stats.st_ino
