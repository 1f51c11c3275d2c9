"""Files of the user that a merge would overwrite or delete, because git ignores them.

git refuses to overwrite untracked files, but not ignored ones: they can be made again, it assumes. An agent
that commits `.env`, or a file named like an ignored directory, would replace what no commit has.
"""

from __future__ import annotations

import os

from holdfast.errors import NotPossible
from holdfast.store.no_links import is_directory
from holdfast.workspace import git
from holdfast.workspace.snapshots.changes import few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[[list[str]], bytes]


def refuse_overwriting(run: Run, top: str, old: str, new: str) -> None:
    """Before the files of a working tree, which has the tree `old` besides what git ignores, become those of
    `new`: raises NotPossible if a file that is not in `old` is in the way of a new one.

    `run` runs git where both trees are.
    """
    args = ["diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=A", old, new, "--"]
    places = dict.fromkeys(place for path in git.names(run(args)) if (place := _in_the_way(top, path)))
    lost = [name for place in places for name in _untracked(run, top, old, place)]
    if lost:
        raise NotPossible(
            f"{few(lost)} of {top} would be overwritten, and no commit has it",
            hint="rename what is there, or remove it, then apply again; the project was not changed",
        )


def _in_the_way(top: str, path: str) -> str:
    """What exists at the place of a new file, or of a directory above it; empty if nothing does."""
    parts = path.split("/")
    for count in range(1, len(parts)):
        folder = "/".join(parts[:count])
        if not is_directory(os.path.join(top, folder)):
            return folder if os.path.lexists(os.path.join(top, folder)) else ""
    return path if os.path.lexists(os.path.join(top, path)) else ""


def _untracked(run: Run, top: str, old: str, place: str) -> list[str]:
    """The files at a path, or below it, that a tree does not have."""
    args = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", "--", old, place]
    tracked, full = set(git.names(run(args))), os.path.join(top, place)
    if not is_directory(full):
        return [] if place in tracked else [place]
    found: list[str] = []
    for folder, folders, names in os.walk(full):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        paths = [os.path.relpath(os.path.join(folder, name), top) for name in (*names, *links)]
        found += [path for path in paths if path not in tracked]
    return found
