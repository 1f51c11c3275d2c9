"""Bringing what a task did in its worktree into the person's own tree: all that is in its scope, or nothing."""

from __future__ import annotations

import os

from holdfast.errors import GitFailed, NotPossible
from holdfast.model.record import Record
from holdfast.redact import Redactor
from holdfast.store import atomic
from holdfast.workspace import base as bases
from holdfast.workspace import git, lock, prepare, snapshot, worktree
from holdfast.workspace import scope as scopes
from holdfast.workspace.changes import changed, patch, within
from holdfast.workspace.place import locate
from holdfast.workspace.trees import Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.layout import Packet
    from holdfast.workspace.worktree import Worktree

_NAMED = 5


class Applied(Record):
    """What was brought over."""

    #: merge or patch.
    how: str
    into: str
    #: The branch that was merged into, and the new commit; null with a patch.
    branch: str | None = None
    commit: str | None = None
    paths: tuple[str, ...] = ()
    #: What was not: files outside the scope of the task.
    left_out: tuple[str, ...] = ()


def apply(packet: Packet, *, goal: str, as_patch: bool) -> Applied:
    """Merge the task's branch into what is checked out in the main tree, or patch the files only.

    Raises NotPossible when the task works in place, when there is nothing to bring, or when the two do not fit together: the
    main tree is then as it was.
    """
    tree = worktree.of(packet)
    if tree is None:
        raise NotPossible(
            f"{packet.task_id} works in place: what it did is in its project already",
            hint=f"'holdfast diff {packet.task_id}' shows it" if bases.read(packet) is not None else "",
        )
    if not worktree.is_whole(tree):
        raise NotPossible(
            f"the worktree {tree.path} is gone", hint=f"'git merge {tree.branch}' if the branch is there"
        )
    # Not while another task writes in the main tree: what comes over would be blamed on its agent.
    held = lock.acquire(packet.home, tree.main, role="apply")
    try:
        return _patch(packet, tree) if as_patch else _merge(packet, tree, goal)
    finally:
        held.release()


def _merge(packet: Packet, tree: Worktree, goal: str) -> Applied:
    branch = git.text(git.run(["symbolic-ref", "-q", "--short", "HEAD"], cwd=tree.main, allowed=(0, 1)))
    if not branch:
        raise NotPossible(
            f"no branch is checked out in {tree.main}", hint="'git switch BRANCH' first, or use --patch"
        )
    # Redacted before it is cut; a history is for others to read.
    title = " ".join(Redactor(dict(os.environ))(goal).split())[:72] or packet.task_id
    scope = scopes.of(packet)
    if foreign := worktree.committed_outside(tree, scope):
        raise NotPossible(
            f"commits on {tree.branch} change what is outside the scope: {named(foreign)}",
            hint=f"--patch brings only what is in it; 'git merge {tree.branch}' brings the commits as they are",
        )
    left_out = worktree.commit_all(tree, f"{title}\n\nholdfast task {packet.task_id}\n", scope)
    old = git.head(tree.main)
    if worktree.is_merged(tree) or old is None:
        raise _nothing(packet, branch, left_out)
    _try_merge(tree)
    message = f"Merge {tree.branch}: {title}\n"
    words = [
        "merge",
        "-q",
        "--no-ff",
        "--no-verify",
        "--no-gpg-sign",
        "--no-autostash",
        "-m",
        message,
        tree.branch,
    ]
    try:
        git.run(words, cwd=tree.main, env=_committer(tree.main))
    except GitFailed as error:
        # A hook cannot have run, so this is a conflict or a dirty file: git left either nothing or a merge to abort.
        if _is_merging(tree):
            git.run(["merge", "--abort"], cwd=tree.main)
        raise NotPossible(
            f"{tree.branch} cannot be merged into {branch}: {error}",
            hint="commit or stash what is in the way, then apply again; nothing has changed",
        ) from error
    new = git.head(tree.main)
    names = git.names(git.run(["diff", "--name-only", "-z", old, new or "HEAD"], cwd=tree.main))
    return Applied(
        how="merge", into=tree.main, branch=branch, commit=new, paths=tuple(names), left_out=tuple(left_out)
    )


def named(paths: Sequence[str]) -> str:
    """Some paths in words; the first few, if there are many."""
    return ", ".join(paths[:_NAMED]) + (", …" if len(paths) > _NAMED else "")


def _nothing(packet: Packet, where: str, left_out: Sequence[str]) -> NotPossible:
    if left_out:
        return NotPossible(
            f"{packet.task_id} has nothing in its scope that {where} does not have; outside: {named(left_out)}",
            hint=f"'holdfast diff {packet.task_id} --all' shows it",
        )
    return NotPossible(
        f"{packet.task_id} has nothing that {where} does not have", hint="there is nothing to do"
    )


def _try_merge(tree: Worktree) -> None:
    """Look for conflicts without touching a file. (git before 2.38 cannot; the merge itself tells, and is aborted.)"""
    tried = git.call(
        ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", "HEAD", tree.branch],
        cwd=tree.main,
        allowed=(0, 1, 128, 129),
    )
    if tried.returncode == 1:
        raise _conflict(git.names(tried.stdout)[1:], tree.main)


def _conflict(paths: list[str], where: str) -> NotPossible:
    return NotPossible(
        f"it does not fit what is in {where} now: conflict in {named(paths) or 'some files'}",
        hint="merge the branch by hand, or let the task go on from the newer state; nothing has changed",
    )


def _is_merging(tree: Worktree) -> bool:
    path = git.text(
        git.run(["rev-parse", "--path-format=absolute", "--git-path", "MERGE_HEAD"], cwd=tree.main)
    )
    return os.path.exists(path)


def _committer(directory: str) -> dict[str, str]:
    """Nothing, where git knows who commits; else holdfast."""
    if git.call(["var", "GIT_COMMITTER_IDENT"], cwd=directory, allowed=(0, 128)).returncode == 0:
        return {}
    return {
        "GIT_AUTHOR_NAME": "holdfast",
        "GIT_AUTHOR_EMAIL": "holdfast@localhost",
        "GIT_COMMITTER_NAME": "holdfast",
        "GIT_COMMITTER_EMAIL": "holdfast@localhost",
    }


def _patch(packet: Packet, tree: Worktree) -> Applied:
    """Merge as trees, in the task's own repository; only a result without conflicts touches a file, and all at once."""
    base = bases.require(packet)
    trees = Trees.of(packet)
    whole = prepare.now(packet, base)
    theirs, left_out = within(trees, base.base_tree, whole, scope=scopes.of(packet), prefix=base.place.prefix)
    main = locate(tree.main)
    ours = snapshot.take(main, trees, hidden=(os.path.realpath(packet.home.path),))
    began = trees.commit(base.base_tree)
    sides = [trees.commit(side, began) for side in (ours, theirs)]
    merged = git.call(
        ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", *sides],
        cwd=trees.path,
        env={"GIT_DIR": trees.git_dir},
        allowed=(0, 1, 128, 129),
    )
    if merged.returncode == 129:
        raise NotPossible(
            "this git cannot merge without touching files",
            hint="git 2.38 or newer can; so can apply without --patch",
        )
    if merged.returncode == 128:
        said = " ".join(merged.stderr.decode("utf-8", "replace").split())
        raise GitFailed(f"git merge-tree of {packet.task_id}: {said}")
    found = git.names(merged.stdout)
    if merged.returncode == 1:
        raise _conflict(found[1:], tree.main)
    result = found[0].strip()
    paths = tuple(change.path for change in changed(trees, ours, result))
    if not paths:
        raise _nothing(packet, tree.main, left_out)
    git.run(
        ["apply", "--whitespace=nowarn", "--binary", "-"],
        cwd=tree.main,
        stdin=patch(trees, ours, result),
    )
    atomic.write_json(_applied(packet), {"schema": "holdfast.applied/1", "tree": whole}, durable=True)
    return Applied(how="patch", into=tree.main, paths=paths, left_out=left_out)


def is_needed(packet: Packet) -> bool:
    """Whether there is work in the scope that was not brought over yet."""
    tree = worktree.of(packet)
    if tree is None:
        return False
    files = worktree.uncommitted(tree)
    loose = len(files) - len(worktree.outside(tree, files, scopes.of(packet)))
    return (loose > 0 or not worktree.is_merged(tree)) and not is_applied(packet)


def _applied(packet: Packet) -> str:
    return os.path.join(packet.workspace, "applied.json")


def is_applied(packet: Packet) -> bool:
    """Whether all that is in the worktree was brought over as a patch, and nothing has changed there since."""
    data, base = atomic.read_json(_applied(packet)), bases.read(packet)
    return data is not None and base is not None and data.get("tree") == prepare.now(packet, base)
