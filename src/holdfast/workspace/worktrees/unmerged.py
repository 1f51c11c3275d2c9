"""Work in a task's worktree that exists nowhere else, and committing it.

What counts are the checked-out commit and the files: an agent may have created another branch or detached
HEAD. The task's branch counts too, while it exists.
"""

from __future__ import annotations

import os

from holdfast.errors import NotPossible
from holdfast.workspace import git
from holdfast.workspace.worktrees import submodules, worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.workspace.scope import Scope
    from holdfast.workspace.worktrees.worktree import Worktree


def commits(tree: Worktree) -> int:
    """The number of the task's commits that are on no other branch and not in the main tree's HEAD."""
    tips = [tip for tip in (worktree.tip_of(tree), worktree.head_of(tree)) if tip is not None]
    if not tips:
        return 0
    own = {tree.branch, worktree.branch_of(tree) or tree.branch}
    others = [f"--exclude={name}" for name in sorted(own)]
    main = git.head(tree.main)
    known = [tree.commit, *([main] if main is not None else [])]
    words = ["rev-list", "--count", *tips, "--not", *others, "--branches", "--remotes", *known]
    return int(git.run(words, cwd=tree.main))


def is_merged(tree: Worktree) -> bool:
    """Whether all commits of the task are on another branch, too."""
    return commits(tree) == 0


def stray_commits(tree: Worktree) -> int:
    """The number of commits on the task's branch that are not in the worktree's HEAD or on another branch."""
    tip, head = worktree.tip_of(tree), worktree.head_of(tree)
    if tip is None or head is None or worktree.is_ancestor(tree, tip, head):
        return 0
    words = ["rev-list", "--count", tip, "--not", head, f"--exclude={tree.branch}", "--branches", "--remotes"]
    return int(git.run(words, cwd=tree.main))


def uncommitted(tree: Worktree) -> list[str]:
    """Uncommitted files of the worktree, without ignored ones. Raises NotPossible if git cannot tell."""
    if not os.path.isdir(tree.path) or worktree.is_initializing(tree):
        return []
    return _uncommitted(lambda words: worktree.call(tree, words).stdout)


def _uncommitted(run_git: Callable[[list[str]], bytes]) -> list[str]:
    words = [
        "status",
        "--porcelain",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules=none",
    ]
    return [entry[3:] for entry in git.names(run_git(words))]


def outside(tree: Worktree, paths: Iterable[str], scope: Scope | None) -> list[str]:
    """The paths that are not in the scope of the task."""
    if scope is None:
        return []
    return [path for path in paths if not scope.has(_for_pattern(tree, path), tree.prefix)]


def _for_pattern(tree: Worktree, path: str) -> str:
    """A path with a final slash if it is a directory (a nested repository), as patterns need it."""
    full = os.path.join(tree.path, path)
    is_directory = os.path.isdir(full) and not os.path.islink(full)
    return path.rstrip("/") + "/" if is_directory else path


def committed_outside(tree: Worktree, scope: Scope | None) -> list[str]:
    """Paths outside the scope that commits of the task change, without what was merged from the main tree."""
    head = worktree.head_of(tree)
    if scope is None or head is None:
        return []
    words = ["diff", "--name-only", "-z", "--no-renames", f"HEAD...{head}"]
    return outside(tree, git.names(git.run(words, cwd=tree.main)), scope)


def exists(tree: Worktree, scope: Scope | None = None) -> bool:
    """Whether removing the worktree would lose commits or files, or make them hard to find."""
    return not is_merged(tree) or bool(files(tree, scope)) or bool(submodules.unmerged(tree))


def files(tree: Worktree, scope: Scope | None) -> list[str]:
    """Uncommitted files that count as work.

    Once work was merged, files outside the scope do not count (they are saved as a patch when the worktree is
    removed). Before that, they may be all that a failed task has done.
    """
    paths = uncommitted(tree)
    if scope is None or not paths or worktree.head_of(tree) == tree.commit or not is_merged(tree):
        return paths
    left_out = set(outside(tree, paths, scope))
    return [path for path in paths if path not in left_out]


def commit_all(tree: Worktree, message: str, scope: Scope | None = None) -> list[str]:
    """Commit all changes in the scope, as holdfast, on the checked-out branch; in submodules first.

    Returns the files that were left out. Raises NotPossible during a merge if files would be left out,
    because that would undo changes of the other side.
    """
    left_inside = [
        path for place in submodules.within(tree) for path in _commit_inside(tree, place, message, scope)
    ]
    paths = uncommitted(tree)
    left_out = outside(tree, paths, scope)
    # A directory in this list is an untracked repository. A commit would contain only its id, not its files.
    nested = [path for path in paths if path.endswith("/") and path not in left_out]
    if nested:
        git_dir = os.path.join(tree.path, nested[0], ".git")
        raise NotPossible(
            f"{nested[0]} is a nested repository in the worktree, which cannot be applied",
            hint=f"remove {git_dir} to apply its files, or ignore it; then apply again",
        )
    _commit(tree.path, message, left_out)
    return sorted({*left_out, *left_inside})


def _commit_inside(tree: Worktree, place: str, message: str, scope: Scope | None) -> list[str]:
    directory = os.path.join(tree.path, place)
    changed = _uncommitted(lambda words: git.run(words, cwd=directory))
    left_out = set(outside(tree, [f"{place}/{path}" for path in changed], scope))
    if len(left_out) < len(changed):
        _commit(directory, message, [path for path in changed if f"{place}/{path}" in left_out])
    return sorted(left_out)


def _commit(directory: str, message: str, left_out: list[str]) -> None:
    if left_out and git.is_merging(directory):
        raise NotPossible(
            f"an unfinished merge in {directory}",
            hint="run 'git merge --continue' or 'git merge --abort' there",
        )
    from_stdin = ["--pathspec-from-file=-", "--pathspec-file-nul"]
    names = [path.rstrip("/") for path in left_out]
    pathspecs = git.listing([".", *(f":(top,exclude,literal){name}" for name in names)])
    git.run(["add", "-A", *from_stdin], cwd=directory, env={"GIT_LITERAL_PATHSPECS": "0"}, stdin=pathspecs)
    if names:
        # The agent may have staged them.
        git.run(["reset", "-q", *from_stdin], cwd=directory, stdin=git.listing(names))
    words = ["diff", "--cached", "--quiet", "--ignore-submodules=none"]
    if git.call(words, cwd=directory, allowed=(0, 1)).returncode == 1 or git.is_merging(directory):
        git.run(
            ["commit", "-q", "--no-verify", "--no-gpg-sign", "-F", "-"],
            cwd=directory,
            env=git.IDENTITY,
            stdin=message.encode("utf-8", "replace"),
        )
