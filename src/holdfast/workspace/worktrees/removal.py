"""Removing a task's worktree. Work that exists nowhere else is kept, unless the removal is forced."""

from __future__ import annotations

import os
import shlex

from holdfast.errors import GitFailed, NotPossible
from holdfast.store import atomic
from holdfast.store.directories import remove_tree
from holdfast.units import plural
from holdfast.workspace import base as bases
from holdfast.workspace import git, task_worktree
from holdfast.workspace import scope as scopes
from holdfast.workspace.branch_links import refuse_branch_links
from holdfast.workspace.current_tree import current_tree
from holdfast.workspace.snapshots.changes import gitlinks, patch, within
from holdfast.workspace.snapshots.snapshot import is_large
from holdfast.workspace.snapshots.trees import Trees
from holdfast.workspace.worktrees import submodules, unmerged, worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.store.layout import Packet
    from holdfast.workspace.scope import Scope
    from holdfast.workspace.worktrees.worktree import Worktree


def check_removable(
    tree: Worktree,
    scope: Scope | None = None,
    *,
    is_applied: bool = False,
    how_to_keep: Callable[[], str] | None = None,
) -> None:
    """Raises NotPossible if the worktree has work that exists nowhere else.

    With `is_applied`, its files were applied as a patch; commits of submodules are never part of a patch.
    `how_to_keep` is asked for the hint then.
    """
    task_id = os.path.basename(tree.path)
    if not os.path.isdir(tree.common_dir):
        # Without the repository there is nothing to merge into.
        if os.path.lexists(tree.path):
            raise NotPossible(
                f"the repository of {tree.path} is gone",
                hint=f"check it by hand; 'holdfast rm --force {task_id}' removes it",
            )
        return
    if worktree.is_own_repository(tree):
        raise NotPossible(
            f"{tree.path} was turned into a separate repository, whose history exists nowhere else",
            hint=f"check it by hand; 'holdfast rm --force {task_id}' discards it",
        )
    commits, files = (0, []) if is_applied else (unmerged.commits(tree), unmerged.files(tree, scope))
    inside = submodules.unmerged(tree)
    if not commits and not files and not inside:
        return
    branch = worktree.branch_of(tree)
    where = f"on {branch}" if branch is not None else "on no branch"
    if commits and unmerged.stray_commits(tree) == commits:
        where = f"on {tree.branch}"
    parts = [f"{plural(unmerged.commits_ahead(tree), 'commit')} {where}"] if commits else []
    parts += [f"{plural(len(files), 'uncommitted file')} in {tree.path}"] if files else []
    parts += [f"{plural(count, 'commit')} in the submodule {path}" for path, count in inside.items()]
    to_keep = (
        f"'holdfast apply {task_id}' applies it to {tree.main}" if how_to_keep is None else how_to_keep()
    )
    raise NotPossible(
        f"{task_id} has unmerged work: {' and '.join(parts)}", hint=_hint(tree, inside, to_keep)
    )


def _hint(tree: Worktree, inside: dict[str, int], to_keep: str) -> str:
    task_id = os.path.basename(tree.path)
    hints = [to_keep]
    if unmerged.stray_commits(tree):
        hints.append(f"'git merge {tree.branch}' merges the commits that are only on that branch")
    if inside:
        submodule = shlex.quote(os.path.join(tree.path, next(iter(inside))))
        hints.append(f"'git -C {submodule} push' saves the commits of a submodule")
    hints.append(f"'holdfast rm --force {task_id}' discards it, but commits stay on the branch")
    return "; ".join(hints)


def keep_left_out(packet: Packet) -> str | None:
    """Before an applied worktree is removed, save what `apply` left out as a patch in the home.

    Returns the path of the patch; None if nothing was left out. Raises NotPossible if a patch cannot contain
    it.
    """
    base, scope = bases.read(packet), scopes.of(packet)
    if base is None or scope is None or not os.path.isdir(base.place.directory):
        return None
    trees, whole = Trees.of(packet), current_tree(packet, base)
    inside, left_out = within(trees, base.base_tree, whole, scope=scope, prefix=base.place.prefix)
    if not left_out:
        return None
    if links := gitlinks(trees, inside, whole):
        raise NotPossible(
            f"{links[0]} is outside the scope, so 'apply' left it out, and no patch can contain a repository",
            hint=f"save {os.path.join(base.place.top, links[0])} yourself; "
            f"'holdfast rm --force {packet.task_id}' discards it",
        )
    for path in left_out:
        full = os.path.join(base.place.top, path)
        if is_large(full):
            raise NotPossible(
                f"{path} is outside the scope, so 'apply' left it out, and it is too large for a patch",
                hint=f"save {full} yourself; 'holdfast rm --force {packet.task_id}' discards it",
            )
    atomic.make_directory(packet.home.left_out)
    target, number = os.path.join(packet.home.left_out, f"{packet.task_id}.patch"), 1
    while os.path.lexists(target):
        number += 1
        target = os.path.join(packet.home.left_out, f"{packet.task_id}-{number}.patch")
    atomic.write(target, patch(trees, inside, whole), durable=True)
    return target


def remove(tree: Worktree, *, force: bool, scope: Scope | None = None) -> str:
    """Remove the worktree, and the task's branch if it is merged.

    Returns a sentence on what is left, if anything.

    Raises NotPossible, and changes nothing, if there is unmerged work and no `force`.
    """
    if left := _behind_link(tree.path):
        return left
    if not force:
        check_removable(tree, scope)
    if not os.path.isdir(tree.common_dir):
        remove_tree(tree.path)
        return ""
    try:
        remainder = _keep_commits(tree)
    except GitFailed:
        if not force:
            raise
        # Its HEAD cannot be read: an agent may have replaced it by anything.
        remainder = f"commits that are on no branch of {tree.main} are lost"
    admin = worktree.admin_of(tree)
    for path in (tree.path, *([admin] if admin is not None else [])):
        if not remove_tree(path):
            raise GitFailed(f"cannot remove {path} of the worktree completely", hint="see who owns its files")
    try:
        return _remove_branch(tree, remainder)
    except GitFailed as error:
        if not force:
            raise
        return remainder or f"the branch {tree.branch} of {tree.main} stays: {error}"


def _remove_branch(tree: Worktree, remainder: str) -> str:
    """Remove the task's branch if it is merged. Returns a sentence on what is left."""
    if worktree.is_symbolic(tree):
        # Not the branch to which it refers.
        refuse_branch_links(worktree.main_of(tree), tree.branch)
        git.run(["symbolic-ref", "--delete", f"refs/heads/{tree.branch}"], of=worktree.main_of(tree))
    tip = worktree.tip_of(tree)
    if tip is None or remainder:
        return remainder
    if not unmerged.is_merged(tree):
        return f"its commits stay on the branch {tree.branch} of {tree.main}"
    worktree.check_branch(tree)
    packed = os.path.join(tree.common_dir, "packed-refs")
    if os.path.islink(packed):
        # git deletes a branch there, too.
        return f"the branch {tree.branch} of {tree.main} stays: {packed} is a symbolic link"
    args = ["update-ref", "--no-deref", "-d", f"refs/heads/{tree.branch}", tip]
    git.run(args, of=worktree.main_of(tree))
    return ""


def _behind_link(path: str) -> str:
    """That a worktree is behind a link, which an agent may have put in place of our directory; or nothing."""
    folder = os.path.dirname(path)
    return f"{folder} is a symbolic link, so nothing behind it was removed" if os.path.islink(folder) else ""


def discard(packet: Packet) -> str:
    """Remove the worktree of a task whose record cannot be believed: only its directory in the home.

    Returns a sentence on what is left.
    """
    path = task_worktree.path_of(packet)
    if left := _behind_link(path):
        return left
    remove_tree(path)
    return f"its record was changed, so only {path} was removed"


def _keep_commits(tree: Worktree) -> str:
    """Put commits that only a detached HEAD refers to on a branch: the task's, if it is an ancestor.

    Returns a sentence on what is left, or nothing.
    """
    head, tip = worktree.head_of(tree), worktree.tip_of(tree)
    if head is None or worktree.branch_of(tree) is not None or unmerged.is_merged(tree):
        return ""
    branch = tree.branch
    if tip is not None and not worktree.is_ancestor(tree, tip, head):
        if worktree.is_ancestor(tree, head, tip):
            return ""
        branch = f"{tree.branch}-{head[:12]}"
    if branch == tree.branch and worktree.is_symbolic(tree):
        branch = f"{tree.branch}-{head[:12]}"
    refuse_branch_links(worktree.main_of(tree), branch)
    args = ["update-ref", "--no-deref", f"refs/heads/{branch}", head]
    git.run(args, of=worktree.main_of(tree))
    return f"its commits stay on the branch {branch} of {tree.main}"
