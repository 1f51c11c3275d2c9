"""Submodules of a task's worktree, at any depth.

git stores their repositories with the worktree and deletes them with it. So commits in a submodule are
fetched into the project's own repository of that submodule before a commit that refers to them is merged.
"""

from __future__ import annotations

import os
import shlex

from holdfast.errors import GitFailed, NotPossible
from holdfast.workspace import git
from holdfast.workspace.worktrees import worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.workspace.worktrees.worktree import Worktree


def within(tree: Worktree) -> list[str]:
    """The paths of the checked-out submodules, inner ones first. Raises NotPossible if git cannot tell."""
    if not os.path.isdir(tree.path) or worktree.admin_of(tree) is None:
        return []
    return list(_below(tree, "", worktree.call(tree, ["ls-files", "-s", "-z"]).stdout))


def _below(tree: Worktree, parent: str, listed: bytes) -> Iterator[str]:
    """The submodules of one repository, given the list of its index."""
    for name, _ in git.gitlinks(listed):
        if _is_repository(os.path.join(tree.path, parent), name):
            path = os.path.join(parent, name)
            yield from _below(tree, path, _git(os.path.join(tree.path, path), "ls-files", "-s", "-z"))
            yield path


def unmerged(tree: Worktree) -> dict[str, int]:
    """Submodule path → number of commits that neither its origin nor the project's repository of it has.

    Raises NotPossible if git cannot tell.
    """
    counts: dict[str, int] = {}
    homes: dict[str, str | None] = {}
    for path in sorted(within(tree)):
        # A parent sorts before its submodules, so its home is known.
        parent = max((other for other in homes if path.startswith(other + "/")), key=len, default="")
        homes[path] = _home_of(homes[parent] if parent else tree.main, os.path.relpath(path, parent or "."))
        directory, home = os.path.join(tree.path, path), homes[path]
        heads = ["--branches"] if _is_unborn(directory) else ["HEAD", "--branches"]
        commits = _git(directory, "rev-list", *heads, "--not", "--remotes").decode().split()
        missing = commits if home is None else _missing(home, commits)
        if missing:
            counts[path] = len(missing)
    return counts


def fetch_home(tree: Worktree, head: str, ref: str) -> tuple[str, ...]:
    """Fetch the submodule commits that a merge of `head` would refer to into the project's repositories.

    They are stored at the branch `ref`. Returns the submodules of the project that get a new commit. Raises
    NotPossible, before anything is merged, if the project has no such repository and no remote has the
    commit.
    """
    raw = git.run(["diff", "--raw", "-z", "--no-abbrev", "--no-renames", f"HEAD...{head}"], cwd=tree.main)
    words = iter(git.names(raw))
    changed: list[str] = []
    for facts in words:
        path = next(words)
        _, mode, _, commit, _ = facts[1:].split(" ")
        if mode.encode() == git.GITLINK:
            _fetch_commit(tree.path, path, commit, project=tree.main, ref=ref)
            changed.append(path)
    return tuple(changed)


def _fetch_commit(worktree_dir: str, path: str, commit: str, *, project: str, ref: str) -> None:
    """Fetch one commit, and those it refers to, from the submodule at `path` to its home in `project`."""
    source, home = os.path.join(worktree_dir, path), _home_of(project, path)
    if not _is_repository(worktree_dir, path) or _missing(source, [commit]):
        return
    if home is None:
        if not _git(source, "rev-list", "--max-count=1", commit, "--not", "--remotes"):
            return  # its origin has it; `git submodule update` fetches it from there
        raise NotPossible(
            f"the submodule {path} has unpushed commits, but {project} has no repository of it",
            hint=f"'git -C {shlex.quote(project)} submodule update --init {shlex.quote(path)}' creates it, "
            f"or push from {source}; then apply again",
        )
    for name, inner_commit in git.gitlinks(_git(source, "ls-tree", "-r", "-z", commit)):
        _fetch_commit(source, name, inner_commit, project=home, ref=ref)
    if _missing(home, [commit]):
        target = f"+{commit}:refs/heads/{ref}"
        git.run(["fetch", "-q", "--no-tags", "--recurse-submodules=no", source, target], cwd=home)


def _is_repository(inside: str, path: str) -> bool:
    """Whether a path is the root of a repository: not an empty submodule, and not reached through a link."""
    directory = os.path.join(inside, path)
    has_git = os.path.isdir(directory) and os.path.lexists(os.path.join(directory, ".git"))
    return has_git and os.path.realpath(directory) == os.path.join(os.path.realpath(inside), path)


def _home_of(parent: str | None, path: str) -> str | None:
    """The project's repository of a submodule: checked out in its parent, or in git's `modules`."""
    if parent is None:
        return None
    checked_out = os.path.join(parent, path)
    if os.path.lexists(os.path.join(checked_out, ".git")):
        return checked_out
    module = os.path.join(_git_dir(parent), "modules", path)
    return module if os.path.isfile(os.path.join(module, "HEAD")) else None


def _git_dir(repository: str) -> str:
    if not os.path.lexists(os.path.join(repository, ".git")):
        return repository  # a directory in `modules`
    return git.text(_git(repository, "rev-parse", "--path-format=absolute", "--git-common-dir"))


def _is_unborn(directory: str) -> bool:
    """Whether the checked-out branch has no commit yet. (git does not know the name HEAD then.)"""
    is_on_branch = (
        git.call(["symbolic-ref", "-q", "HEAD"], cwd=directory, allowed=(0, 1, 128)).returncode == 0
    )
    return is_on_branch and git.head(directory) is None


def _git(directory: str, *words: str) -> bytes:
    """Run git in the repository of exactly this directory. Raises NotPossible if it fails."""
    try:
        # In a broken repository, git would use the one around it.
        return git.run(words, cwd=directory, env={"GIT_CEILING_DIRECTORIES": os.path.dirname(directory)})
    except GitFailed as error:
        raise NotPossible(
            f"cannot read the repository {directory}: {error}",
            hint="check it by hand; 'holdfast rm --force' discards it",
        ) from error


def _missing(repository: str, commits: Iterable[str]) -> list[str]:
    """The commits that a repository does not have."""
    wanted = list(commits)
    if not wanted:
        return []
    query = "".join(f"{commit}^{{commit}}\n" for commit in wanted).encode()
    lines = git.run(["cat-file", "--batch-check"], cwd=repository, stdin=query).splitlines()
    return [
        commit for commit, line in zip(wanted, lines, strict=True) if line.split(b" ")[1:2] != [b"commit"]
    ]
