"""A remote that is a repository on this machine: its branch is written object by object, without `git push`.

git would start another git there, which reads that repository's settings and runs its hooks. An agent may
have written them, or the address itself, also that of an earlier task.
"""

from __future__ import annotations

import os

from holdfast.errors import NotPossible
from holdfast.workspace import git
from holdfast.workspace.branch_links import refuse_branch_links
from holdfast.workspace.worktrees import submodules


def at(path: str) -> git.Repository:
    """The repository at the address of a remote. Raises NotPossible."""
    # git writes nowhere if a link is on the way.
    for place in map(os.path.realpath, (path, f"{path}.git")):
        repository = git.at(place) or git.of_git_dir(place, place)
        if repository is not None:
            return repository
    raise NotPossible(f"there is no repository at {path}", hint="check the address of the remote")


def tip(remote: git.Repository, branch: str) -> str | None:
    """The commit of a branch there; None if there is no such branch. Raises GitFailed."""
    args = ["rev-parse", "--verify", "-q", f"refs/heads/{branch}^{{commit}}"]
    done = git.call(args, of=remote, allowed=(0, 1, 128))
    return git.text(done.stdout) or None if done.returncode == 0 else None


def push(
    source: git.Repository, remote: git.Repository, *, commit: str, branch: str, instead_of: str | None
) -> None:
    """Make `commit` the tip of a branch there. Raises GitFailed, StorageError, NotPossible.

    `instead_of` is the tip that it may replace; None: there must be no such branch.
    """
    refuse_branch_links(remote, branch)
    ref = f"refs/heads/{branch}"
    if git.text(git.run(["symbolic-ref", "-q", "HEAD"], of=remote, allowed=(0, 1))) == ref:
        raise NotPossible(f"{branch} is checked out in {remote.top}", hint="switch to another branch there")
    submodules.copy_commit(source, remote, commit)
    old = instead_of or "0" * len(commit)
    git.run(["update-ref", "--no-deref", "-m", "holdfast", ref, commit, old], of=remote)
