"""Taking changes back, in a worktree only: there everything is the agent's, and nothing a person's."""

from __future__ import annotations

import os
import shutil

from holdfast.errors import NotPossible
from holdfast.store import atomic
from holdfast.workspace import git
from holdfast.workspace.snapshots.changes import only, patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.workspace.base import Base
    from holdfast.workspace.snapshots.trees import Trees


def revert(
    trees: Trees, base: Base, old_tree: str, new_tree: str, *, paths: Iterable[str], keep_at: str
) -> None:
    """Bring `paths` back to what they are in `old_tree`. What they were goes into the patch at `keep_at` first, durably.

    Raises NotPossible outside a worktree; nothing has changed then.
    """
    if base.kind != "worktree":
        raise NotPossible(
            f"{base.place.directory} is not a worktree of holdfast: nothing is taken back there"
        )
    wanted = sorted(set(paths))
    taken_back, _ = only(trees, old_tree, new_tree, set(wanted))
    atomic.write(keep_at, patch(trees, old_tree, taken_back), durable=True)
    top = base.place.top
    index = f"{trees.index_of(top)}.{os.getpid()}.revert"
    try:
        trees.run(["read-tree", old_tree], work_tree=top, index=index)
        known = set(git.names(trees.run(["ls-files", "-z"], work_tree=top, index=index)))
        # Short paths first: a link that took a directory's place must go before what belongs below it comes back.
        for path in wanted:
            _remove(top, path)
        back = [path for path in wanted if path in known]
        trees.run(
            ["checkout-index", "-f", "-z", "--stdin"], work_tree=top, index=index, stdin=git.listing(back)
        )
    except OSError as error:
        atomic.storage_failed(error, f"cannot take back changes in {top}")
    finally:
        atomic.forget(index)


def _remove(top: str, path: str) -> None:
    """Remove one path, and the directories that it leaves empty. Never through a link: that leads out of the worktree."""
    folder = os.path.dirname(path)
    above = folder
    while above:
        if os.path.islink(os.path.join(top, above)):
            return
        above = os.path.dirname(above)
    full = os.path.join(top, path)
    if os.path.isdir(full) and not os.path.islink(full):
        shutil.rmtree(full)
    else:
        atomic.forget(full)
    while folder:
        try:
            os.rmdir(os.path.join(top, folder))
        except OSError:
            return
        folder = os.path.dirname(folder)
