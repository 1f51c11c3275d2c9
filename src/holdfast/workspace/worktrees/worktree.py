"""The git worktree of a task: `<home>/worktrees/<task-id>` on the branch `holdfast/<task-id>`.

A record is written before git runs. So a branch with a record is ours, and after a kill it is known what to
finish or to clean up. Other worktrees of the repository are never touched: `git worktree prune` would remove
those on a disk that is not mounted.
"""

from __future__ import annotations

import os
import shlex
import shutil

from holdfast.errors import NotPossible
from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.workspace import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable

    from holdfast.store.layout import Packet


class Worktree(Record):
    """The record of a worktree in `state/workspace/worktree.json`."""

    schema: str = "holdfast.worktree/1"
    #: The root of the worktree.
    path: str
    branch: str
    #: The commit at which the branch started.
    commit: str
    #: The root of the user's working tree, and the repository.
    main: str
    common_dir: str
    #: The path of the project below the root; empty, or with a final slash.
    prefix: str = ""

    @property
    def directory(self) -> str:
        """Where the agent works: the project in the worktree."""
        return os.path.join(self.path, self.prefix).rstrip("/")


def of(packet: Packet) -> Worktree | None:
    """The worktree of a task, complete or not; None if it has none."""
    data = atomic.read_json(packet.worktree)
    return None if data is None else Worktree.from_json(data)


def make(packet: Packet, project: str) -> Worktree:
    """Create, finish or repair the worktree of a task. Work in it is kept.

    Raises NotPossible if the project has no repository or no commit, or if the branch is not the task's.
    """
    tree = of(packet)
    if tree is None:
        tree = _new_record(packet, project)
        os.makedirs(packet.workspace, mode=0o700, exist_ok=True)
        atomic.write_json(packet.worktree, tree.to_json(), durable=True)
    if not is_complete(tree) and not repair(tree):
        _clean_up(tree)
        _add(tree)
    if not os.path.isdir(tree.directory):
        # The project is a directory that is not in the commit.
        os.makedirs(tree.directory, exist_ok=True)
    return tree


def _new_record(packet: Packet, project: str) -> Worktree:
    repository = git.find(project)
    if repository is None:
        raise NotPossible(
            f"{project} is not in a git repository, so it cannot have a worktree",
            hint="run 'git init' and commit first, or omit --worktree",
        )
    commit = git.head(project)
    if commit is None:
        raise NotPossible(
            f"the repository {repository.top} has no commit yet, so it cannot have a worktree",
            hint="commit something first, or omit --worktree",
        )
    tree = Worktree(
        path=os.path.join(os.path.realpath(packet.home.path), "worktrees", packet.task_id),
        branch=f"holdfast/{packet.task_id}",
        commit=commit,
        main=repository.top,
        common_dir=repository.common_dir,
        prefix=repository.prefix,
    )
    tip = tip_of(tree)
    if tip is not None and not is_ancestor(tree, tip, commit):
        raise NotPossible(
            f"the branch {tree.branch} exists in {tree.main}, with commits of something else",
            hint=f"rename it with 'git branch -m {tree.branch} NEW', or use another task id",
        )
    if tip is not None and _is_checked_out(tree):
        raise NotPossible(
            f"the branch {tree.branch} is checked out in another worktree of {tree.main}",
            hint=f"'git -C {shlex.quote(tree.main)} worktree list' shows where",
        )
    return tree


def is_complete(tree: Worktree) -> bool:
    """Whether the worktree is checked out, on any branch, and belongs to the repository."""
    admin = admin_of(tree)
    if admin is None or _is_initializing(admin) or not os.path.isdir(tree.path):
        return False
    done = git.call(["rev-parse", "--absolute-git-dir"], cwd=tree.path, allowed=(0, 128))
    return done.returncode == 0 and git.text(done.stdout) == os.path.realpath(admin)


def repair(tree: Worktree) -> bool:
    """Restore the worktree's `.git` file if an agent removed or changed it.

    Returns whether it is complete then.
    """
    admin, link = admin_of(tree), os.path.join(tree.path, ".git")
    has_work = admin is not None and not _is_initializing(admin) and os.path.isdir(tree.path)
    if admin is None or not has_work or is_own_repository(tree):
        return False
    if not is_complete(tree):
        # A symbolic link is replaced, not followed.
        atomic.write(link, f"gitdir: {admin}\n".encode("utf-8", "surrogateescape"), durable=True)
    return is_complete(tree)


def is_own_repository(tree: Worktree) -> bool:
    """Whether an agent turned it into a separate repository, whose history exists nowhere else."""
    link = os.path.join(tree.path, ".git")
    return os.path.isdir(link) and not os.path.islink(link)


def call(
    tree: Worktree, words: Iterable[str], *, allowed: tuple[int, ...] = (0,)
) -> subprocess.CompletedProcess[bytes]:
    """Run git on the worktree, whatever its `.git` file says. Raises NotPossible if it is not registered."""
    admin = admin_of(tree)
    if admin is None:
        raise NotPossible(
            f"{tree.path} is no longer a worktree of the repository {tree.main}",
            hint="check it by hand; 'holdfast rm --force' removes it",
        )
    return git.call(words, cwd=tree.path, env={"GIT_DIR": admin, "GIT_WORK_TREE": tree.path}, allowed=allowed)


def head_of(tree: Worktree) -> str | None:
    """The commit that is checked out there, on a branch or detached; None if unknown."""
    admin = admin_of(tree)
    if admin is None:
        return None
    ref = f"worktrees/{os.path.basename(admin)}/HEAD"
    words = ["rev-parse", "--verify", "-q", f"{ref}^{{commit}}"]
    done = git.call(words, cwd=tree.main, allowed=(0, 1, 128))
    return git.text(done.stdout) or None if done.returncode == 0 else None


def branch_of(tree: Worktree) -> str | None:
    """The branch that is checked out there, the task's or another one; None if HEAD is detached."""
    admin = admin_of(tree)
    head = atomic.read_small(os.path.join(admin, "HEAD"), 1 << 12) if admin is not None else None
    prefix = b"ref: refs/heads/"
    return git.text(head)[len(prefix) :] if head is not None and head.startswith(prefix) else None


def admin_of(tree: Worktree) -> str | None:
    """The directory in which the repository stores its data about this worktree."""
    folder = os.path.join(tree.common_dir, "worktrees")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        gitdir = atomic.read_small(os.path.join(folder, name, "gitdir"), 1 << 16)
        if gitdir is not None and os.path.dirname(git.text(gitdir)) == tree.path:
            return os.path.join(folder, name)
        # If git was killed before it wrote `gitdir`: it names the directory after the worktree.
        is_ours = gitdir is None and name == os.path.basename(tree.path)
        if is_ours and _is_initializing(os.path.join(folder, name)):
            return os.path.join(folder, name)
    return None


def is_initializing(tree: Worktree) -> bool:
    """Whether its creation was never finished, so that it has no work."""
    admin = admin_of(tree)
    return admin is not None and _is_initializing(admin)


def _is_initializing(admin: str) -> bool:
    """Whether git was killed while it created the worktree: it writes this lock first and removes it last.

    A lock by a user has another text.
    """
    locked = atomic.read_small(os.path.join(admin, "locked"), 100)
    return locked is not None and locked.strip() == b"initializing"


def _clean_up(tree: Worktree) -> None:
    """Remove what a killed attempt left. A directory that may contain work is moved aside instead."""
    # A killed git of ours may have left this lock. Only we write this branch, and that git was swept.
    atomic.forget(os.path.join(tree.common_dir, "refs", "heads", f"{tree.branch}.lock"))
    admin = admin_of(tree)
    if os.path.lexists(tree.path):
        if admin is not None and _is_initializing(admin):
            shutil.rmtree(tree.path)
        else:
            atomic.put_aside(tree.path)
    if admin is not None:
        shutil.rmtree(admin)


def _add(tree: Worktree) -> None:
    os.makedirs(os.path.dirname(tree.path), mode=0o700, exist_ok=True)
    words = ["worktree", "add", "-q", "--force"]
    tip = tip_of(tree)
    if tip is None or is_ancestor(tree, tip, tree.commit):
        words += ["--no-track", "-B", tree.branch, tree.path, tree.commit]
    else:
        words += [tree.path, tree.branch]
    git.run(words, cwd=tree.main)


def tip_of(tree: Worktree) -> str | None:
    """The tip of the task's branch; None if there is no such branch."""
    done = git.call(
        ["rev-parse", "--verify", "-q", f"refs/heads/{tree.branch}"], cwd=tree.main, allowed=(0, 1, 128)
    )
    return git.text(done.stdout) or None if done.returncode == 0 else None


def is_ancestor(tree: Worktree, old: str, new: str) -> bool:
    """Whether `old` is an ancestor of `new`."""
    return git.call(["merge-base", "--is-ancestor", old, new], cwd=tree.main, allowed=(0, 1)).returncode == 0


def _is_checked_out(tree: Worktree) -> bool:
    listed = git.run(["worktree", "list", "--porcelain"], cwd=tree.main)
    return f"branch refs/heads/{tree.branch}".encode() in listed.split(b"\n")
