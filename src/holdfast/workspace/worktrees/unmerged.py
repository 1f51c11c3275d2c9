"""Work in a task's worktree that exists nowhere else, and committing it.

What counts are the checked-out commit and the files: an agent may have created another branch or detached
HEAD. The task's branch counts too, while it exists.
"""

from __future__ import annotations

import os
import shlex

from holdfast.errors import NotPossible
from holdfast.failpoints import failpoint
from holdfast.store.no_links import is_directory
from holdfast.workspace import changed_files, git, unlike_head
from holdfast.workspace.worktrees import commits as commits_of
from holdfast.workspace.worktrees import submodules, worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.workspace.scope import Scope
    from holdfast.workspace.worktrees.worktree import Worktree


def commits(tree: Worktree) -> int:
    """The number of the task's commits that are on no other branch and not in the main tree's HEAD."""
    own = {tree.branch, worktree.branch_of(tree) or tree.branch}
    return _count(tree, *(f"--exclude={name}" for name in sorted(own)), "--branches", "--remotes")


def commits_ahead(tree: Worktree) -> int:
    """The number of the task's commits that are not in the main tree's HEAD, as `git log HEAD..BRANCH` lists
    them. Those of a fan-out's items are on their branches, too."""
    return _count(tree)


def _count(tree: Worktree, *known: str) -> int:
    tips = [tip for tip in (worktree.tip_of(tree), worktree.head_of(tree)) if tip is not None]
    if not tips:
        return 0
    repository = worktree.main_of(tree)
    main = git.head(repository)
    args = ["rev-list", "--count", *tips, "--not", *known, tree.commit, *([main] if main is not None else [])]
    return int(git.run([*args, "--"], of=repository))


def is_merged(tree: Worktree) -> bool:
    """Whether all commits of the task are on another branch, too."""
    return commits(tree) == 0


def stray_commits(tree: Worktree) -> int:
    """The number of commits on the task's branch that are not in the worktree's HEAD or on another branch."""
    tip, head = worktree.tip_of(tree), worktree.head_of(tree)
    if tip is None or head is None or worktree.is_ancestor(tree, tip, head):
        return 0
    args = ["rev-list", "--count", tip, "--not", head, f"--exclude={tree.branch}", "--branches", "--remotes"]
    return int(git.run([*args, "--"], of=worktree.main_of(tree)))


def uncommitted(tree: Worktree) -> list[str]:
    """Uncommitted files of the worktree, without ignored ones. Raises NotPossible if git cannot tell."""
    if not os.path.isdir(tree.path) or worktree.is_unfinished(tree):
        return []
    return changed_files.listed(worktree.inside(tree))


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
    args = ["diff", "--name-only", "-z", "--no-renames", f"HEAD...{head}", "--"]
    return outside(tree, git.names(git.run(args, of=worktree.main_of(tree))), scope)


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
    """Commit all changes in the scope, as holdfast, on the task's branch or on none; in submodules first.

    Returns the files that were left out. Raises NotPossible during a merge if files would be left out,
    because that would undo changes of the other side.
    """
    inner = submodules.within(tree)
    _refuse_nested(tree, uncommitted(tree), scope)
    left_inside = [path for place in inner for path in _commit_inside(tree, place, message, scope)]
    commits_of.end_finished_merge(worktree.inside(tree))
    with commits_of.own_index(worktree.inside(tree)) as own:
        # Without the flags of its index there may be more.
        paths = changed_files.listed(own)
        _refuse_nested(tree, paths, scope)
        left_out = outside(tree, paths, scope)
        old, new = git.head(own), _commit(own, message, paths, left_out)
        if new is not None and old is not None:
            commits_of.put_index(own)
            worktree.move_head(tree, new, old)
            failpoint("commits.head_moved")
            commits_of.end_merge(own)
    return sorted({*left_out, *left_inside})


def _refuse_nested(tree: Worktree, paths: list[str], scope: Scope | None) -> None:
    left_out = outside(tree, paths, scope)
    # A directory in this list is an untracked repository. A commit would contain only its id, not its files.
    nested = [path for path in paths if path.endswith("/") and path not in left_out]
    if nested:
        git_dir = os.path.join(tree.path, nested[0], ".git")
        raise NotPossible(
            f"{nested[0]} is a nested repository in the worktree, which cannot be applied",
            hint=f"remove {git_dir} to apply its files, or ignore it; then apply again",
        )


def _commit_inside(tree: Worktree, place: str, message: str, scope: Scope | None) -> list[str]:
    repository = submodules.at(tree, place)
    if repository is None:
        return []
    commits_of.end_finished_merge(repository)
    with commits_of.own_index(repository) as own:
        changed = changed_files.listed(own)
        left_out = set(outside(tree, [f"{place}/{path}" for path in changed], scope))
        if len(left_out) < len(changed):
            kept_back = [path for path in changed if f"{place}/{path}" in left_out]
            new = _commit(own, message, changed, kept_back)
            if new is not None:
                commits_of.put_index(own)
                commits_of.detach(own, new)
                commits_of.end_merge(own)
    return sorted(left_out)


def _commit(repository: git.Repository, message: str, changed: list[str], left_out: list[str]) -> str | None:
    """A commit of the changes that are not left out; None if there are none."""
    if left_out and git.is_merging(repository):
        raise NotPossible(
            f"an unfinished merge in {repository.top}",
            hint="run 'git merge --continue' or 'git merge --abort' there",
        )
    names = {path.rstrip("/") for path in left_out}
    _stage(repository, [path for path in changed if path.rstrip("/") not in names])
    if names:
        # The agent may have staged them.
        args = ["reset", "-q", "--pathspec-from-file=-", "--pathspec-file-nul"]
        git.run(args, of=repository, stdin=git.listing(sorted(names)))
    return commits_of.commit(repository, message)


def _stage(repository: git.Repository, paths: list[str]) -> None:
    """Update the index. Not with `git add`, which would start a git in each submodule."""
    _refuse_filtered(repository, paths)
    links = dict(git.gitlinks(git.run(["ls-files", "-s", "-z"], of=repository)))
    added: list[str] = []
    removed: list[str] = []
    info: list[bytes] = []
    for path in paths:
        full = os.path.join(repository.top, path)
        inner = changed_files.submodule(repository, path) if path in links else None
        commit = git.head(inner) if inner is not None else None
        if commit is not None:
            info.append(git.GITLINK + b" " + commit.encode() + b"\t" + os.fsencode(path))
        elif not os.path.lexists(full) or is_directory(full):
            # A directory here was a file before, or a submodule that is empty now.
            removed += [] if path in links and is_directory(full) else [path]
        else:
            added.append(path)
    for args, lines in (
        (["--force-remove", "-z", "--stdin"], git.listing(removed)),
        (["--replace", "-z", "--index-info"], b"".join(line + b"\0" for line in info)),
        (["--add", "--remove", "--replace", "-z", "--stdin"], git.listing(added)),
    ):
        if lines:
            git.run(["update-index", *args], of=repository, stdin=lines)


def _refuse_filtered(repository: git.Repository, paths: list[str]) -> None:
    """Raises NotPossible if a path is stored through a filter of the user (git-lfs), which we do not run."""
    filters = git.settings.read(repository).filters
    if not filters or not paths:
        return
    for path, name in unlike_head.filters_of(repository, paths).items():
        if name in filters and os.path.lexists(os.path.join(repository.top, path)):
            place = shlex.quote(repository.top)
            raise NotPossible(
                f"{path} is stored through the filter {name!r}, and holdfast runs no filters",
                hint=f"'git -C {place} add -A', 'git -C {place} commit', then apply again",
            )


def filtered_at_start(tree: Worktree, paths: list[str]) -> list[str]:
    """The paths that are stored through a filter of the user, by the rules of the commit at the start.

    Their content in a commit is not that of the file.
    """
    repository = worktree.inside(tree)
    filters = git.settings.read(repository).filters
    if not filters or not paths:
        return []
    with commits_of.own_index(repository) as own:
        git.run(["read-tree", "--reset", tree.commit], of=own)
        found = unlike_head.filters_of(own, paths, "--cached")
    return [path for path, name in found.items() if name in filters]
