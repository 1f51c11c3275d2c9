"""Links on the way to a branch, in a git directory in which an agent can write: git would follow them."""

from __future__ import annotations

import os

from holdfast.store.no_links import plain_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.workspace import git


def refuse_branch_links(repository: git.Repository, branch: str) -> None:
    """Before git writes or deletes a branch: raises StorageError if its files are reached through a link.

    git also logs the move as one of HEAD, if HEAD is on the branch.
    """
    common_dir, git_dir = repository.common_dir, repository.git_dir
    places = (os.path.join(common_dir, place, "heads", branch) for place in ("refs", "logs/refs"))
    plain_path(common_dir, *places)
    plain_path(git_dir, os.path.join(git_dir, "logs", "HEAD"))
