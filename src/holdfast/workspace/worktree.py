"""A task's own git worktree, `<home>/worktrees/<task-id>`, on a branch of its own, `holdfast/<task-id>`.

What is intended is written down before git is asked. So a branch with a record is ours, whatever stands on it, and one without is
somebody else's; and whoever comes after a kill knows what to finish or to clear away. Other worktrees of the repository are
never touched: `git worktree prune` would forget those on a disk that is not mounted now.
"""

from __future__ import annotations

import os
import shutil

from holdfast.errors import GitFailed, NotPossible
from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.workspace import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.store.layout import Packet
    from holdfast.workspace.scope import Scope

_IDENTITY = {
    "GIT_AUTHOR_NAME": "holdfast",
    "GIT_AUTHOR_EMAIL": "holdfast@localhost",
    "GIT_COMMITTER_NAME": "holdfast",
    "GIT_COMMITTER_EMAIL": "holdfast@localhost",
}


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


def _record(packet: Packet) -> str:
    return os.path.join(packet.workspace, "worktree.json")


def of(packet: Packet) -> Worktree | None:
    """The worktree that was made, or begun, for a task."""
    data = atomic.read_json(_record(packet))
    return None if data is None else Worktree.from_json(data)


def make(packet: Packet, project: str) -> Worktree:
    """The worktree of a task, ready to work in: made, finished or repaired. What the task did in it stays.

    Raises NotPossible when the project has no repository or no commit, or when the branch is somebody else's.
    """
    tree = of(packet)
    if tree is None:
        tree = _intend(packet, project)
        os.makedirs(packet.workspace, mode=0o700, exist_ok=True)
        atomic.write_json(_record(packet), tree.to_json(), durable=True)
    if not is_whole(tree):
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
    if tip is not None and not _is_ancestor(tree, tip, commit):
        raise NotPossible(
            f"the branch {tree.branch} exists in {tree.main}, with commits that are not this task's",
            hint=f"rename it with 'git branch -m {tree.branch} NEW', or give the task another id",
        )
    if tip is not None and _is_checked_out(tree):
        raise NotPossible(
            f"the branch {tree.branch} is checked out in another worktree of {tree.main}",
            hint=f"'git -C {tree.main} worktree list' shows where",
        )
    return tree


def is_whole(tree: Worktree) -> bool:
    """Whether the worktree is there, checked out, and on its branch."""
    admin = _admin(tree)
    if admin is None or _is_begun(admin) or not os.path.isdir(tree.path):
        return False
    asked = git.call(["rev-parse", "--show-toplevel"], cwd=tree.path, allowed=(0, 128))
    return asked.returncode == 0 and git.text(asked.stdout) == os.path.realpath(tree.path)


def _admin(tree: Worktree) -> str | None:
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


def _is_begun(admin: str) -> bool:
    """Whether git was killed while it made the worktree: it writes this first and removes it last. (A person's own lock says
    something else.)"""
    locked = atomic.read_small(os.path.join(admin, "locked"), 100)
    return locked is not None and locked.strip() == b"initializing"


def _clear(tree: Worktree) -> None:
    """Clear away what a dead attempt left. A directory in which somebody may have worked is put aside, not removed."""
    # A git of ours that was killed may have held it. Nobody else writes this branch, and that git was swept.
    atomic.forget(os.path.join(tree.common_dir, "refs", "heads", f"{tree.branch}.lock"))
    admin = _admin(tree)
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
    if tip is None or _is_ancestor(tree, tip, tree.commit):
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


def _is_ancestor(tree: Worktree, old: str, new: str) -> bool:
    return git.call(["merge-base", "--is-ancestor", old, new], cwd=tree.main, allowed=(0, 1)).returncode == 0


def _is_checked_out(tree: Worktree) -> bool:
    listed = git.run(["worktree", "list", "--porcelain"], cwd=tree.main)
    return f"branch refs/heads/{tree.branch}".encode() in listed.split(b"\n")


def unmerged_commits(tree: Worktree) -> int:
    """Commits of the branch that no other branch, and nothing checked out, has."""
    if tip_of(tree) is None:
        return 0
    words = [
        "rev-list",
        "--count",
        f"refs/heads/{tree.branch}",
        "--not",
        f"--exclude={tree.branch}",
        "--branches",
    ]
    return int(git.run([*words, "--remotes", tree.commit, *_heads(tree)], cwd=tree.main))


def _heads(tree: Worktree) -> list[str]:
    found = git.head(tree.main)
    return [found] if found is not None else []


def uncommitted(tree: Worktree) -> list[str]:
    """Files in the worktree that are in no commit; without what git ignores."""
    if not is_whole(tree):
        return []
    words = [
        "status",
        "--porcelain",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules=none",
    ]
    return [entry[3:] for entry in git.names(git.run(words, cwd=tree.path))]


def is_merged(tree: Worktree) -> bool:
    """Whether every commit of the branch is on another branch as well."""
    return unmerged_commits(tree) == 0


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
    """Paths that commits of the branch change, and that are not in the scope. What came from the main tree is not theirs."""
    if scope is None:
        return []
    words = ["diff", "--name-only", "-z", "--no-renames", f"HEAD...refs/heads/{tree.branch}"]
    return outside(tree, git.names(git.run(words, cwd=tree.main)), scope)


def has_unmerged_work(tree: Worktree, scope: Scope | None = None) -> bool:
    """Whether something would be lost, or be hard to find, if the worktree went: commits or files that are nowhere else."""
    return not is_merged(tree) or bool(_loose(tree, scope))


def _loose(tree: Worktree, scope: Scope | None) -> list[str]:
    """Files that are in no commit and count as work. Once work was merged, what was left out of it, being out of scope, does
    not; before that, it may be all that a failed task has done."""
    files = uncommitted(tree)
    if scope is None or not files or tip_of(tree) == tree.commit or not is_merged(tree):
        return files
    left_out = set(outside(tree, files, scope))
    return [path for path in files if path not in left_out]


def commit_all(tree: Worktree, message: str, scope: Scope | None = None) -> list[str]:
    """Commit what is uncommitted and in the scope, as holdfast. Returns the files that were left out.

    Raises NotPossible in the middle of a merge, when something is to be left out: that would undo what the other side did.
    """
    left_out = outside(tree, uncommitted(tree), scope)
    if left_out and _has_ref(tree, "MERGE_HEAD"):
        raise NotPossible(
            f"a merge has begun in {tree.path} and is not done",
            hint="'git merge --continue' or '--abort' there",
        )
    named = ["--pathspec-from-file=-", "--pathspec-file-nul"]
    names = [path.rstrip("/") for path in left_out]
    but = git.listing([".", *(f":(top,exclude,literal){name}" for name in names)])
    git.run(["add", "-A", *named], cwd=tree.path, env={"GIT_LITERAL_PATHSPECS": "0"}, stdin=but)
    if names:
        # Somebody may have staged it.
        git.run(["reset", "-q", *named], cwd=tree.path, stdin=git.listing(names))
    words = ["diff", "--cached", "--quiet", "--ignore-submodules=none"]
    if git.call(words, cwd=tree.path, allowed=(0, 1)).returncode == 1 or _has_ref(tree, "MERGE_HEAD"):
        git.run(
            ["commit", "-q", "--no-verify", "--no-gpg-sign", "-F", "-"],
            cwd=tree.path,
            env=_IDENTITY,
            stdin=message.encode("utf-8", "replace"),
        )
    return left_out


def _has_ref(tree: Worktree, name: str) -> bool:
    return git.call(["rev-parse", "-q", "--verify", name], cwd=tree.path, allowed=(0, 1, 128)).returncode == 0


def check_removable(tree: Worktree, scope: Scope | None = None) -> None:
    """Raises NotPossible when work in the worktree is nowhere else."""
    commits, files = unmerged_commits(tree), _loose(tree, scope)
    if not commits and not files:
        return
    task_id = os.path.basename(tree.path)
    parts = [f"{commits} commit{'s' if commits != 1 else ''} on {tree.branch}"] if commits else []
    parts += (
        [f"{len(files)} uncommitted file{'s' if len(files) != 1 else ''} in {tree.path}"] if files else []
    )
    raise NotPossible(
        f"{task_id} has work that is not merged: {' and '.join(parts)}",
        hint=f"'holdfast apply {task_id}' brings it into {tree.main}; 'holdfast rm --force {task_id}' gives it up, and commits stay on the branch",
    )


def remove(tree: Worktree, *, force: bool, scope: Scope | None = None) -> str:
    """Remove the worktree; the branch goes with it if it is merged. Returns what is left of it, in words; often nothing.

    Raises NotPossible, and changes nothing, when there is unmerged work and no `force`.
    """
    if not os.path.isdir(tree.common_dir):
        # The repository is gone, and with it everything that the worktree could be merged into.
        if os.path.lexists(tree.path) and not force:
            raise NotPossible(
                f"the repository of {tree.path} is gone", hint="look at it by hand; --force removes it"
            )
        shutil.rmtree(tree.path, ignore_errors=True)
        return ""
    if not force:
        check_removable(tree, scope)
    admin = _admin(tree)
    if os.path.lexists(tree.path):
        try:
            shutil.rmtree(tree.path)
        except OSError as error:
            raise GitFailed(f"cannot remove the worktree {tree.path}: {error.strerror}") from error
    if admin is not None:
        shutil.rmtree(admin)
    tip = tip_of(tree)
    if tip is None:
        return ""
    if not is_merged(tree):
        return f"its commits stay on the branch {tree.branch} of {tree.main}"
    git.run(["update-ref", "-d", f"refs/heads/{tree.branch}", tip], cwd=tree.main)
    return ""
