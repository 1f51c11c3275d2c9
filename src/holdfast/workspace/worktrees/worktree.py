"""A task's own git worktree, `<home>/worktrees/<task-id>`, on a branch of its own, `holdfast/<task-id>`.

What is intended is written down before git is asked. So a branch with a record is ours, whatever stands on it, and one without is
somebody else's; and whoever comes after a kill knows what to finish or to clear away. Other worktrees of the repository are
never touched: `git worktree prune` would forget those on a disk that is not mounted now.
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
    """A task's worktree, as it stands in `state/workspace/worktree.json`."""

    schema: str = "holdfast.worktree/1"
    #: The root of the worktree.
    path: str
    branch: str
    #: The commit that the branch began at.
    commit: str
    #: The root of the person's own working tree, and the repository.
    main: str
    common_dir: str
    #: Where the project lies below the root; empty, or with a slash at its end.
    prefix: str = ""

    @property
    def directory(self) -> str:
        """Where the agent works: the project's place in the worktree."""
        return os.path.join(self.path, self.prefix).rstrip("/")


def of(packet: Packet) -> Worktree | None:
    """The worktree that was made, or begun, for a task."""
    data = atomic.read_json(packet.worktree)
    return None if data is None else Worktree.from_json(data)


def make(packet: Packet, project: str) -> Worktree:
    """The worktree of a task, ready to work in: made, finished or repaired. What the task did in it stays.

    Raises NotPossible when the project has no repository or no commit, or when the branch is somebody else's.
    """
    tree = of(packet)
    if tree is None:
        tree = _intend(packet, project)
        os.makedirs(packet.workspace, mode=0o700, exist_ok=True)
        atomic.write_json(packet.worktree, tree.to_json(), durable=True)
    if not is_whole(tree) and not mend(tree):
        _clear(tree)
        _add(tree)
    if not os.path.isdir(tree.directory):
        # The project is a directory that the commit does not have yet.
        os.makedirs(tree.directory, exist_ok=True)
    return tree


def _intend(packet: Packet, project: str) -> Worktree:
    repository = git.find(project)
    if repository is None:
        raise NotPossible(
            f"{project} is not in a git repository, so it can have no worktree",
            hint="'git init' and a first commit make it one; or run without --worktree",
        )
    commit = git.head(project)
    if commit is None:
        raise NotPossible(
            f"the repository {repository.top} has no commit yet, so it can have no worktree",
            hint="commit something first; or run without --worktree",
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
            f"the branch {tree.branch} exists in {tree.main}, with commits that are not this task's",
            hint=f"rename it with 'git branch -m {tree.branch} NEW', or give the task another id",
        )
    if tip is not None and _is_checked_out(tree):
        raise NotPossible(
            f"the branch {tree.branch} is checked out in another worktree of {tree.main}",
            hint=f"'git -C {shlex.quote(tree.main)} worktree list' shows where",
        )
    return tree


def is_whole(tree: Worktree) -> bool:
    """Whether the worktree is there and checked out, whatever branch it is on; and still one of the repository."""
    admin = admin_of(tree)
    if admin is None or _is_begun(admin) or not os.path.isdir(tree.path):
        return False
    asked = git.call(["rev-parse", "--absolute-git-dir"], cwd=tree.path, allowed=(0, 128))
    return asked.returncode == 0 and git.text(asked.stdout) == os.path.realpath(admin)


def mend(tree: Worktree) -> bool:
    """Write the worktree's `.git` anew, where an agent removed it or led it elsewhere. Returns whether the worktree is whole."""
    admin, link = admin_of(tree), os.path.join(tree.path, ".git")
    is_work = admin is not None and not _is_begun(admin) and os.path.isdir(tree.path)
    if admin is None or not is_work or is_own_repository(tree):
        return False
    if not is_whole(tree):
        # A link is replaced, not followed.
        atomic.write(link, f"gitdir: {admin}\n".encode("utf-8", "surrogateescape"), durable=True)
    return is_whole(tree)


def is_own_repository(tree: Worktree) -> bool:
    """Whether somebody made another repository of it, with a history that nobody else has."""
    link = os.path.join(tree.path, ".git")
    return os.path.isdir(link) and not os.path.islink(link)


def call(
    tree: Worktree, words: Iterable[str], *, allowed: tuple[int, ...] = (0,)
) -> subprocess.CompletedProcess[bytes]:
    """Ask git about the worktree, whatever its own `.git` says. Raises NotPossible when the repository does not know it."""
    admin = admin_of(tree)
    if admin is None:
        raise NotPossible(
            f"the repository {tree.main} does not know the worktree {tree.path} any more",
            hint="look at it by hand; 'holdfast rm --force' removes it",
        )
    return git.call(words, cwd=tree.path, env={"GIT_DIR": admin, "GIT_WORK_TREE": tree.path}, allowed=allowed)


def head_of(tree: Worktree) -> str | None:
    """The commit that is checked out there, on a branch or on none; None when nobody knows."""
    admin = admin_of(tree)
    if admin is None:
        return None
    ref = f"worktrees/{os.path.basename(admin)}/HEAD"
    words = ["rev-parse", "--verify", "-q", f"{ref}^{{commit}}"]
    asked = git.call(words, cwd=tree.main, allowed=(0, 1, 128))
    return git.text(asked.stdout) or None if asked.returncode == 0 else None


def branch_of(tree: Worktree) -> str | None:
    """The branch that is checked out there: the task's, or one that the agent made; None with a detached HEAD."""
    admin = admin_of(tree)
    said = atomic.read_small(os.path.join(admin, "HEAD"), 1 << 12) if admin is not None else None
    prefix = b"ref: refs/heads/"
    return git.text(said)[len(prefix) :] if said is not None and said.startswith(prefix) else None


def admin_of(tree: Worktree) -> str | None:
    """Where the repository keeps its word about this worktree."""
    folder = os.path.join(tree.common_dir, "worktrees")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        said = atomic.read_small(os.path.join(folder, name, "gitdir"), 1 << 16)
        if said is not None and os.path.dirname(git.text(said)) == tree.path:
            return os.path.join(folder, name)
        # Killed before it could say which one it is: git names it after the directory.
        is_ours = said is None and name == os.path.basename(tree.path)
        if is_ours and _is_begun(os.path.join(folder, name)):
            return os.path.join(folder, name)
    return None


def is_begun(tree: Worktree) -> bool:
    """Whether it was never finished: nobody has worked in it."""
    admin = admin_of(tree)
    return admin is not None and _is_begun(admin)


def _is_begun(admin: str) -> bool:
    """Whether git was killed while it made the worktree: it writes this first and removes it last. (A person's own lock says
    something else.)"""
    locked = atomic.read_small(os.path.join(admin, "locked"), 100)
    return locked is not None and locked.strip() == b"initializing"


def _clear(tree: Worktree) -> None:
    """Clear away what a dead attempt left. A directory in which somebody may have worked is put aside, not removed."""
    # A git of ours that was killed may have held it. Nobody else writes this branch, and that git was swept.
    atomic.forget(os.path.join(tree.common_dir, "refs", "heads", f"{tree.branch}.lock"))
    admin = admin_of(tree)
    if os.path.lexists(tree.path):
        if admin is not None and _is_begun(admin):
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
    """The commit at the end of the branch; None when there is no such branch."""
    asked = git.call(
        ["rev-parse", "--verify", "-q", f"refs/heads/{tree.branch}"], cwd=tree.main, allowed=(0, 1, 128)
    )
    return git.text(asked.stdout) or None if asked.returncode == 0 else None


def is_ancestor(tree: Worktree, old: str, new: str) -> bool:
    """Whether the history of one commit has the other."""
    return git.call(["merge-base", "--is-ancestor", old, new], cwd=tree.main, allowed=(0, 1)).returncode == 0


def _is_checked_out(tree: Worktree) -> bool:
    listed = git.run(["worktree", "list", "--porcelain"], cwd=tree.main)
    return f"branch refs/heads/{tree.branch}".encode() in listed.split(b"\n")
