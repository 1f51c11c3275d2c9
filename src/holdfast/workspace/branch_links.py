"""Links on the way to a branch, in a git directory in which an agent can write: git would follow them."""

from __future__ import annotations

import os

from holdfast.store.no_links import plain_path, refuse_second_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.workspace import git


def refuse_branch_links(repository: git.Repository, branch: str) -> None:
    """Before git writes or deletes a branch: raises StorageError if its files are reached through a link, or
    if a reflog, the only file to which git appends, is a hard link.

    git also logs the move as one of HEAD, if HEAD is on the branch.
    """
    common_dir, git_dir = repository.common_dir, repository.git_dir
    log = os.path.join(common_dir, "logs/refs/heads", branch)
    plain_path(common_dir, os.path.join(common_dir, "refs/heads", branch), log)
    refuse_second_name(log)
    refuse_log_links(git_dir, "HEAD")


def refuse_log_links(git_dir: str, name: str) -> None:
    """The same for the reflog of a reference in the git directory itself."""
    log = os.path.join(git_dir, "logs", name)
    plain_path(git_dir, log)
    refuse_second_name(log)
