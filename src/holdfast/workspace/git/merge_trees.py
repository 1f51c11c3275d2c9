"""Merging two commits in the object store: no file of a working tree is changed."""

from __future__ import annotations

from holdfast.model.record import Record
from holdfast.workspace.git.parse import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    #: Runs git on a repository; takes the arguments and the `allowed` exit statuses.
    Call = Callable[..., CompletedProcess[bytes]]


class Merged(Record):
    """The result of a merge."""

    #: The merged tree; empty if there are conflicts, or git failed.
    tree: str = ""
    has_conflicts: bool = False
    #: The paths in conflict.
    conflicts: tuple[str, ...] = ()
    #: What git printed when it failed.
    error: str = ""
    #: git before 2.38 cannot merge trees.
    is_supported: bool = True


def merge_trees(call: Call, ours: str, theirs: str) -> Merged:
    """Merge two commits."""
    done = call(
        ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs],
        allowed=(0, 1, 128, 129),
    )
    if done.returncode > 1:
        error = " ".join(done.stderr.decode("utf-8", "replace").split())[:300]
        return Merged(error=error, is_supported=done.returncode != 129)
    tree, *conflicts = names(done.stdout)
    if done.returncode == 1:
        return Merged(has_conflicts=True, conflicts=tuple(conflicts))
    return Merged(tree=tree.strip())
