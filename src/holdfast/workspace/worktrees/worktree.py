"""The git worktree of a task: `<home>/worktrees/<task-id>` on the branch `holdfast/<task-id>`.

A record is written before git runs. So a branch with a record is ours, and after a kill it is known what to
finish or to clean up. Other worktrees of the repository are never touched: `git worktree prune` would remove
those on a disk that is not mounted.
"""

from __future__ import annotations

import os
import shlex

from holdfast import files
from holdfast.errors import NotPossible
from holdfast.failpoints import failpoint
from holdfast.store import atomic
from holdfast.store.directories import remove_tree
from holdfast.store.no_links import is_directory, refuse_link
from holdfast.workspace import git, task_worktree
from holdfast.workspace.branch_links import refuse_branch_links
from holdfast.workspace.task_worktree import (
    Worktree,
    admin_of,
    inside,
    is_admin_unfinished,
    main_of,
    of,
    path_of,
)
from holdfast.workspace.worktrees import commits

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable

    from holdfast.store.layout import Packet

__all__ = (
    "Worktree",
    "add",
    "admin_of",
    "branch_of",
    "call",
    "check_branch",
    "clean_up",
    "head_of",
    "inside",
    "is_ancestor",
    "is_complete",
    "is_own_repository",
    "is_symbolic",
    "is_unfinished",
    "main_of",
    "make",
    "move_head",
    "new_record",
    "of",
    "ready",
    "refuse_branch_of_others",
    "repair",
    "tip_of",
    "write_record",
)  # fmt: skip
#: The longest list of sparse paths.
_PATTERNS_BYTES = 4 << 20


def make(packet: Packet, project: str, *, commit: str | None = None) -> Worktree:
    """Create, finish or repair the worktree of a task. Work in it is kept.

    It starts at `commit`; by default at the one that is checked out in the project.

    Raises NotPossible if the project has no repository or no commit, or if the branch is not the task's.
    """
    tree = of(packet)
    if tree is None:
        tree = new_record(packet, project, commit)
        refuse_branch_of_others(tree)
        write_record(packet, tree)
    if not is_complete(tree) and not repair(tree):
        clean_up(tree)
        add(tree)
    return ready(tree)


def ready(tree: Worktree) -> Worktree:
    """A worktree that is there, with the directory of the project in it. Raises NotPossible for a link."""
    task_worktree.refuse_linked(tree)
    task_worktree.refuse_linked_project(tree.directory)
    # The project may be a directory that is not in the commit.
    os.makedirs(tree.directory, exist_ok=True)
    return tree


def write_record(packet: Packet, tree: Worktree) -> None:
    """Write the record, before anything else is made."""
    os.makedirs(packet.workspace, mode=0o700, exist_ok=True)
    atomic.write_json(packet.worktree, tree.to_json(), durable=True)


def new_record(packet: Packet, project: str, commit: str | None) -> Worktree:
    """The record of a worktree that starts at a commit; by default at the one that is checked out.

    Raises NotPossible if the project has no repository or no commit.
    """
    repository = git.find(project)
    if repository is None:
        raise NotPossible(
            f"{project} is not in a git repository, so it cannot have a worktree",
            hint="run 'git init' and commit first, or omit --worktree",
        )
    commit = commit or git.head(repository)
    if commit is None:
        raise NotPossible(
            f"the repository {repository.top} has no commit yet, so it cannot have a worktree",
            hint="commit something first, or omit --worktree",
        )
    return Worktree(
        path=path_of(packet),
        branch=task_worktree.branch_of(packet),
        commit=commit,
        main=repository.top,
        common_dir=repository.common_dir,
        prefix=repository.prefix,
    )


def refuse_branch_of_others(tree: Worktree) -> None:
    """Raises NotPossible if the branch of a new worktree exists, and is not the task's."""
    tip = tip_of(tree)
    if tip is not None and not is_ancestor(tree, tip, tree.commit):
        raise NotPossible(
            f"the branch {tree.branch} exists in {tree.main}, with commits of something else",
            hint=f"rename it with 'git branch -m {tree.branch} NEW', or use another task id",
        )
    if tip is not None and _is_checked_out(tree):
        raise NotPossible(
            f"the branch {tree.branch} is checked out in another worktree of {tree.main}",
            hint=f"'git -C {shlex.quote(tree.main)} worktree list' shows where",
        )


def is_complete(tree: Worktree) -> bool:
    """Whether the worktree is checked out, on any branch, and belongs to the repository."""
    admin = admin_of(tree)
    if admin is None or is_admin_unfinished(admin) or not _is_there(tree):
        return False
    repository = git.at(tree.path)
    return repository is not None and repository.git_dir == os.path.realpath(admin)


def _is_there(tree: Worktree) -> bool:
    return is_directory(tree.path) and not task_worktree.is_linked(tree)


def repair(tree: Worktree) -> bool:
    """Restore the worktree's `.git` file if an agent removed or changed it.

    Returns whether it is complete then.
    """
    admin, link = admin_of(tree), os.path.join(tree.path, ".git")
    has_work = admin is not None and not is_admin_unfinished(admin) and _is_there(tree)
    if admin is None or not has_work or is_own_repository(tree):
        return False
    task_worktree.mend(tree, admin)
    if not is_complete(tree):
        # A symbolic link is replaced, not followed.
        atomic.write(link, f"gitdir: {admin}\n".encode("utf-8", "surrogateescape"), durable=True)
    return is_complete(tree)


def is_own_repository(tree: Worktree) -> bool:
    """Whether an agent turned it into a separate repository, whose history exists nowhere else."""
    link = os.path.join(tree.path, ".git")
    return os.path.isdir(link) and not os.path.islink(link)


def call(
    tree: Worktree, args: Iterable[str], *, allowed: tuple[int, ...] = (0,)
) -> subprocess.CompletedProcess[bytes]:
    """Run git on the worktree, whatever its `.git` file says. Raises NotPossible if it is not registered."""
    return git.call(args, of=inside(tree), allowed=allowed)


def head_of(tree: Worktree) -> str | None:
    """The commit that is checked out there, on a branch or detached; None if unknown."""
    return git.head(inside(tree)) if admin_of(tree) is not None else None


def branch_of(tree: Worktree) -> str | None:
    """The branch that is checked out there, the task's or another one; None if HEAD is detached."""
    admin = admin_of(tree)
    head = atomic.read_small(os.path.join(admin, "HEAD"), 1 << 12) if admin is not None else None
    prefix = b"ref: refs/heads/"
    return git.text(head)[len(prefix) :] if head is not None and head.startswith(prefix) else None


def is_symbolic(tree: Worktree) -> bool:
    """Whether the task's branch only refers to another one, which may be a user's. git never makes it so."""
    args = ["symbolic-ref", "-q", f"refs/heads/{tree.branch}"]
    return git.call(args, of=main_of(tree), allowed=(0, 1, 128)).returncode == 0


def check_branch(tree: Worktree) -> None:
    """Before the task's branch is written: raises StorageError or NotPossible if it is not a plain one."""
    refuse_branch_links(main_of(tree), tree.branch)
    if is_symbolic(tree):
        raise NotPossible(
            f"the branch {tree.branch} refers to another branch: an agent changed it",
            hint=f"in {tree.main}, 'git symbolic-ref --delete refs/heads/{tree.branch}' removes it",
        )


def move_head(tree: Worktree, commit: str, old: str) -> None:
    """Make a commit of ours HEAD of the worktree. Only the task's own branch moves with it."""
    if branch_of(tree) != tree.branch:
        # A branch that the agent checked out may be a user's.
        commits.detach(inside(tree), commit)
        return
    check_branch(tree)
    args = ["update-ref", "--no-deref", "-m", "holdfast", f"refs/heads/{tree.branch}", commit, old]
    git.run(args, of=main_of(tree))


def is_unfinished(tree: Worktree) -> bool:
    """Whether its creation was never finished, so that it has no work."""
    admin = admin_of(tree)
    return admin is not None and is_admin_unfinished(admin)


def clean_up(tree: Worktree) -> None:
    """Remove what a killed attempt left. A directory that may contain work is moved aside instead."""
    # A killed git of ours may have left this lock. Only we write this branch, and that git was swept.
    if not os.path.islink(os.path.join(tree.common_dir, "refs/heads/holdfast")):
        atomic.forget(os.path.join(tree.common_dir, "refs", "heads", f"{tree.branch}.lock"))
    admin = admin_of(tree)
    if os.path.lexists(tree.path):
        if admin is not None and is_admin_unfinished(admin) and is_directory(tree.path):
            remove_tree(tree.path)
        else:
            atomic.put_aside(tree.path)
    if admin is not None:
        remove_tree(admin)


def add(tree: Worktree, *, index: str = "") -> None:
    """Create the worktree as `git worktree add` does, step by step. `index` is where git writes the index
    first, so that nobody else can write it: the worktree gets a copy.

    (git would write the path of its git directory, which is ours for one call, into the worktree.) While the
    lock "initializing" exists, everything is done again from the start.
    """
    repository = main_of(tree)
    refuse_link(os.path.join(tree.common_dir, "worktrees"))
    check_branch(tree)
    tip = tip_of(tree)
    if tip is None or is_ancestor(tree, tip, tree.commit):
        git.run(["update-ref", "--no-deref", f"refs/heads/{tree.branch}", tree.commit], of=repository)
    failpoint("worktree.branch_made")
    admin = _new_admin(tree)
    failpoint("worktree.registered")
    atomic.make_directory(os.path.dirname(tree.path))
    os.mkdir(tree.path)
    _put(os.path.join(tree.path, ".git"), f"gitdir: {admin}\n")
    failpoint("worktree.linked")
    _be_sparse(repository, admin)
    # With an index that is missing, everything is checked out.
    repository = inside(tree)
    git.run(["read-tree", "--reset", "-u", "HEAD"], of=repository.evolve(index=index or None))
    if index:
        _copy_index(index, os.path.join(repository.git_dir, "index"))
    failpoint("worktree.checked_out")
    atomic.remove(os.path.join(admin, "locked"))


def _copy_index(source: str, target: str) -> None:
    with files.stream(source) as file:
        atomic.write(target, file.read(), durable=False)
        # git reads files again that are as new as the index.
        modified_ns = os.fstat(file.fileno()).st_mtime_ns
    os.utime(target, ns=(modified_ns, modified_ns), follow_symlinks=False)


def _new_admin(tree: Worktree) -> str:
    """Create the directory in which the repository stores its data about the worktree."""
    folder = os.path.join(tree.common_dir, "worktrees")
    os.makedirs(folder, exist_ok=True)
    name, number = os.path.basename(tree.path), 0
    admin = os.path.join(folder, name)
    while os.path.lexists(admin):
        number += 1
        admin = os.path.join(folder, f"{name}{number}")
    os.mkdir(admin)
    _put(os.path.join(admin, "locked"), "initializing\n")
    _put(os.path.join(admin, "gitdir"), f"{os.path.join(tree.path, '.git')}\n")
    _put(os.path.join(admin, "commondir"), "../..\n")
    _put(os.path.join(admin, "HEAD"), f"ref: refs/heads/{tree.branch}\n")
    return admin


def _be_sparse(repository: git.Repository, admin: str) -> None:
    """If only a part of the user's tree is checked out, let it be the same part here."""
    settings = git.settings.read(repository)
    patterns = os.path.join(repository.git_dir, "info", "sparse-checkout")
    data = atomic.read_small(patterns, _PATTERNS_BYTES)
    if settings.values.get("core.sparsecheckout") != "true" or data is None:
        return
    os.mkdir(os.path.join(admin, "info"))
    atomic.write(os.path.join(admin, "info", "sparse-checkout"), data, durable=True)
    if settings.has_worktree_config:
        cone = settings.values.get("core.sparsecheckoutcone", "false")
        _put(
            os.path.join(admin, "config.worktree"),
            f"[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = {cone}\n",
        )


def _put(path: str, text: str) -> None:
    atomic.write(path, text.encode("utf-8", "surrogateescape"), durable=False)


def tip_of(tree: Worktree) -> str | None:
    """The tip of the task's branch; None if there is no such branch, or it only refers to another one."""
    if is_symbolic(tree):
        return None
    done = git.call(
        ["rev-parse", "--verify", "-q", f"refs/heads/{tree.branch}"], of=main_of(tree), allowed=(0, 1, 128)
    )
    return git.text(done.stdout) or None if done.returncode == 0 else None


def is_ancestor(tree: Worktree, old: str, new: str) -> bool:
    """Whether `old` is an ancestor of `new`."""
    args = ["merge-base", "--is-ancestor", old, new]
    return git.call(args, of=main_of(tree), allowed=(0, 1)).returncode == 0


def _is_checked_out(tree: Worktree) -> bool:
    listed = git.run(["worktree", "list", "--porcelain"], of=main_of(tree))
    return f"branch refs/heads/{tree.branch}".encode() in listed.split(b"\n")
