"""Submodules of a task's worktree: git keeps their repositories with the worktree, and they go when it goes.

So what was committed in one is brought into the project's own repository of that submodule before anything is merged that names it.
"""

from __future__ import annotations

import os

from holdfast.errors import NotPossible
from holdfast.workspace import git, worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.workspace.worktree import Worktree

_GITLINK = b"160000"


def within(tree: Worktree) -> list[str]:
    """Where repositories lie in the worktree that its commits name, and that are checked out."""
    if not os.path.isdir(tree.path) or worktree.admin_of(tree) is None:
        return []
    entries = worktree.call(tree, ["ls-files", "-s", "-z"]).stdout.split(b"\0")
    paths = [os.fsdecode(entry.partition(b"\t")[2]) for entry in entries if entry.startswith(_GITLINK)]
    return [path for path in paths if _is_repository(os.path.join(tree.path, path))]


def unmerged(tree: Worktree) -> dict[str, int]:
    """Commits in submodules that neither their origin nor the project's own repository of them has, by the submodule's path."""
    found: dict[str, int] = {}
    for path in within(tree):
        directory = os.path.join(tree.path, path)
        words = ["rev-list", "HEAD", "--branches", "--not", "--remotes"]
        asked = git.call(words, cwd=directory, allowed=(0, 128))
        commits = asked.stdout.decode().split()
        home = _home_of(tree, path)
        missing = [commit for commit in commits if home is None or not _has(home, commit)]
        if missing:
            found[path] = len(missing)
    return found


def bring(tree: Worktree, head: str, ref: str) -> tuple[str, ...]:
    """Bring the commits that a merge of `head` would name into the project's repositories of the submodules, at the branch `ref`.
    Returns the submodules that have a new commit.

    Raises NotPossible, before anything is merged, where the project has no such repository.
    """
    raw = git.run(["diff", "--raw", "-z", "--no-abbrev", "--no-renames", f"HEAD...{head}"], cwd=tree.main)
    words = iter(git.names(raw))
    brought: list[str] = []
    for facts in words:
        path = next(words)
        _, mode, _, commit, _ = facts[1:].split(" ")
        if mode.encode() != _GITLINK:
            continue
        source, home = os.path.join(tree.path, path), _home_of(tree, path)
        brought.append(path)
        if (home is not None and _has(home, commit)) or not _is_repository(source):
            continue
        if home is None:
            raise NotPossible(
                f"{path} has commits of its own, and {tree.main} has no repository of that submodule to bring them into",
                hint=f"'git -C {tree.main} submodule update --init {path}' makes it, or push from {source}; then apply again",
            )
        target = f"+{commit}:refs/heads/{ref}"
        git.run(["fetch", "-q", "--no-tags", "--recurse-submodules=no", source, target], cwd=home)
    return tuple(brought)


def _is_repository(directory: str) -> bool:
    """Whether it is the root of a repository. (An empty place of a submodule belongs to the repository around it.)"""
    return os.path.isdir(directory) and os.path.lexists(os.path.join(directory, ".git"))


def _home_of(tree: Worktree, path: str) -> str | None:
    """The project's own repository of a submodule: where it is checked out, or where git keeps it."""
    for directory in (os.path.join(tree.main, path), os.path.join(tree.common_dir, "modules", path)):
        if _is_repository(directory) or os.path.isfile(os.path.join(directory, "HEAD")):
            return directory
    return None


def _has(repository: str, commit: str) -> bool:
    words = ["cat-file", "-e", f"{commit}^{{commit}}"]
    return git.call(words, cwd=repository, allowed=(0, 1, 128)).returncode == 0
