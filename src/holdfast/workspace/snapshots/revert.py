"""Reverting changes. Only in a worktree, where all changes are the agent's."""

from __future__ import annotations

import os

from holdfast.errors import NotPossible
from holdfast.store import atomic
from holdfast.store.directories import remove_tree
from holdfast.workspace import git
from holdfast.workspace.snapshots.changes import only, patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.workspace.base import Base
    from holdfast.workspace.snapshots.trees import Trees

#: It need not be listed.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def revert(
    trees: Trees, base: Base, old_tree: str, new_tree: str, *, paths: Iterable[str], keep_at: str
) -> None:
    """Restore `paths` as they are in `old_tree`. Their changes are saved as a patch at `keep_at` first.

    Raises NotPossible outside a worktree, and changes nothing.
    """
    if base.kind != "worktree":
        raise NotPossible(f"cannot revert in {base.place.directory}: it is not a worktree of holdfast")
    wanted = sorted(set(paths))
    reverted, _ = only(trees, old_tree, new_tree, set(wanted))
    atomic.write(keep_at, patch(trees, old_tree, reverted), durable=True)
    restore(trees, base.place.top, old_tree, wanted)


def restore(trees: Trees, top: str, tree: str, wanted: list[str]) -> None:
    """Make these paths of a worktree, which are sorted, as they are in a tree."""
    index = trees.temporary("revert")
    try:
        trees.run(["read-tree", tree], work_tree=top, index=index)
        known = set(git.names(trees.run(["ls-files", "-z"], work_tree=top, index=index)))
        # Short paths first: a link in place of a directory must be removed before its files are restored.
        for path in wanted:
            _remove(top, path)
        back = [path for path in wanted if path in known]
        trees.run(
            ["checkout-index", "-f", "-z", "--stdin"], work_tree=top, index=index, stdin=git.listing(back)
        )
    except OSError as error:
        atomic.storage_failed(error, f"cannot restore files in {top}")
    finally:
        atomic.forget(index)


def _remove(top: str, path: str) -> None:
    """Remove a path and its empty parents, but never through a link: it may lead out of the tree.

    By descriptors: an agent of another task may put a link there at any time.
    """
    *folders, name = path.split("/")
    held: list[int] = []
    try:
        held.append(os.open(top, _FOLDER))
        for folder in folders:
            held.append(os.open(folder, _FOLDER, dir_fd=held[-1]))
        remove_tree(name, held[-1])
        for at in reversed(range(len(folders))):
            os.rmdir(folders[at], dir_fd=held[at])
    except OSError:
        return  # a link, or not empty, or gone
    finally:
        for each in held:
            os.close(each)
