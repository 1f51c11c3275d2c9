"""What a task's worktree holds that is nowhere else, and how it becomes commits.

What counts is what is checked out there and the files as they are: an agent may have made a branch of its own, or have left all
branches. The task's branch counts beside that, as long as it is there.
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
    """Commits of the task that no branch of somebody else, and nothing that is checked out elsewhere, has."""
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
    """Whether every commit of the task is on a branch of somebody else as well."""
    return commits(tree) == 0


def stray_commits(tree: Worktree) -> int:
    """Commits on the task's branch that are neither in what is checked out in the worktree nor anywhere else."""
    tip, head = worktree.tip_of(tree), worktree.head_of(tree)
    if tip is None or head is None or worktree.is_ancestor(tree, tip, head):
        return 0
    words = ["rev-list", "--count", tip, "--not", head, f"--exclude={tree.branch}", "--branches", "--remotes"]
    return int(git.run(words, cwd=tree.main))


def uncommitted(tree: Worktree) -> list[str]:
    """Files in the worktree that are in no commit; without what git ignores. Raises NotPossible where nobody can tell."""
    if not os.path.isdir(tree.path) or worktree.is_begun(tree):
        return []
    return _changed(lambda words: worktree.call(tree, words).stdout)


def _changed(ask: Callable[[list[str]], bytes]) -> list[str]:
    """What is in no commit, of the repository that `ask` asks."""
    words = [
        "status",
        "--porcelain",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules=none",
    ]
    return [entry[3:] for entry in git.names(ask(words))]


def outside(tree: Worktree, paths: Iterable[str], scope: Scope | None) -> list[str]:
    """Those of some paths that are not in the scope of the task."""
    if scope is None:
        return []
    return [path for path in paths if not scope.has(_as_pattern_sees(tree, path), tree.prefix)]


def _as_pattern_sees(tree: Worktree, path: str) -> str:
    """A repository inside is a directory to patterns, and has a slash at its end."""
    full = os.path.join(tree.path, path)
    is_directory = os.path.isdir(full) and not os.path.islink(full)
    return path.rstrip("/") + "/" if is_directory else path


def committed_outside(tree: Worktree, scope: Scope | None) -> list[str]:
    """Paths that commits of the task change, and that are not in the scope. What came from the main tree is not theirs."""
    head = worktree.head_of(tree)
    if scope is None or head is None:
        return []
    words = ["diff", "--name-only", "-z", "--no-renames", f"HEAD...{head}"]
    return outside(tree, git.names(git.run(words, cwd=tree.main)), scope)


def exists(tree: Worktree, scope: Scope | None = None) -> bool:
    """Whether something would be lost, or be hard to find, if the worktree went: commits or files that are nowhere else."""
    return not is_merged(tree) or bool(files(tree, scope)) or bool(submodules.unmerged(tree))


def files(tree: Worktree, scope: Scope | None) -> list[str]:
    """Files that are in no commit and count as work. Once work was merged, what was left out of it, being out of scope, does
    not (it is kept as a patch when the worktree goes); before that, it may be all that a failed task has done."""
    found = uncommitted(tree)
    if scope is None or not found or worktree.head_of(tree) == tree.commit or not is_merged(tree):
        return found
    left_out = set(outside(tree, found, scope))
    return [path for path in found if path not in left_out]


def commit_all(tree: Worktree, message: str, scope: Scope | None = None) -> list[str]:
    """Commit what is uncommitted and in the scope, as holdfast, on what is checked out; in submodules first. Returns the files
    that were left out.

    Raises NotPossible in the middle of a merge, when something is to be left out: that would undo what the other side did.
    """
    left_inside = [
        path for place in submodules.within(tree) for path in _commit_inside(tree, place, message, scope)
    ]
    found = uncommitted(tree)
    left_out = outside(tree, found, scope)
    # A directory in this list is a repository that no commit names. As a part of one it would be a name without the files.
    strays = [path for path in found if path.endswith("/") and path not in left_out]
    if strays:
        raise NotPossible(
            f"{strays[0]} is a repository of its own inside the worktree, and cannot be brought as it is",
            hint=f"remove {os.path.join(tree.path, strays[0], '.git')} to bring its files, or ignore it; then apply again",
        )
    _commit(tree.path, message, left_out)
    return sorted({*left_out, *left_inside})


def _commit_inside(tree: Worktree, place: str, message: str, scope: Scope | None) -> list[str]:
    directory = os.path.join(tree.path, place)
    changed = _changed(lambda words: git.run(words, cwd=directory))
    left_out = set(outside(tree, [f"{place}/{path}" for path in changed], scope))
    if len(left_out) < len(changed):
        _commit(directory, message, [path for path in changed if f"{place}/{path}" in left_out])
    return sorted(left_out)


def _commit(directory: str, message: str, left_out: list[str]) -> None:
    if left_out and _is_merging(directory):
        raise NotPossible(
            f"a merge has begun in {directory} and is not done",
            hint="'git merge --continue' or '--abort' there",
        )
    named = ["--pathspec-from-file=-", "--pathspec-file-nul"]
    names = [path.rstrip("/") for path in left_out]
    but = git.listing([".", *(f":(top,exclude,literal){name}" for name in names)])
    git.run(["add", "-A", *named], cwd=directory, env={"GIT_LITERAL_PATHSPECS": "0"}, stdin=but)
    if names:
        # Somebody may have staged it.
        git.run(["reset", "-q", *named], cwd=directory, stdin=git.listing(names))
    words = ["diff", "--cached", "--quiet", "--ignore-submodules=none"]
    if git.call(words, cwd=directory, allowed=(0, 1)).returncode == 1 or _is_merging(directory):
        git.run(
            ["commit", "-q", "--no-verify", "--no-gpg-sign", "-F", "-"],
            cwd=directory,
            env=git.IDENTITY,
            stdin=message.encode("utf-8", "replace"),
        )


def _is_merging(directory: str) -> bool:
    words = ["rev-parse", "-q", "--verify", "MERGE_HEAD"]
    return git.call(words, cwd=directory, allowed=(0, 1, 128)).returncode == 0
