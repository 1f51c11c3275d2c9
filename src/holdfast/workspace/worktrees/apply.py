"""Bringing what a task did in its worktree into the person's own tree: all that is in its scope, or nothing."""

from __future__ import annotations

import os

from holdfast.errors import GitFailed, NotPossible
from holdfast.model.record import Record
from holdfast.packet import load
from holdfast.redact import Redactor
from holdfast.store import atomic
from holdfast.workspace import base as bases
from holdfast.workspace import git, lock, prepare
from holdfast.workspace import scope as scopes
from holdfast.workspace.place import locate
from holdfast.workspace.snapshots import snapshot
from holdfast.workspace.snapshots.changes import changed, gitlinks, patch, within
from holdfast.workspace.snapshots.trees import Trees
from holdfast.workspace.worktrees import submodules, unmerged, worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.layout import Packet
    from holdfast.workspace.scope import Scope
    from holdfast.workspace.worktrees.worktree import Worktree

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
    #: Submodules that are at another commit now; their files change with `git submodule update`.
    submodules: tuple[str, ...] = ()
    #: Its commits came as one: some of them change what is outside the scope, and it was taken back since.
    squashed: bool = False


def apply(packet: Packet, *, goal: str, as_patch: bool) -> Applied:
    """Merge what is checked out in the task's worktree, on whatever branch, into what is checked out in the main tree; or patch
    the files only.

    Raises NotPossible when the task works in place, when there is nothing to bring, or when the two do not fit together: the
    main tree is then as it was.
    """
    tree = worktree.of(packet)
    if tree is None:
        raise _no_worktree(packet)
    if worktree.is_own_repository(tree):
        raise NotPossible(
            f"{tree.path} was made a repository of its own, which cannot be merged",
            hint=f"remove or rename its .git, then apply again: the files in it are compared with {tree.main}",
        )
    if not worktree.mend(tree):
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
    squashed = _squash_what_was_taken_back(tree, scope)
    left_out = unmerged.commit_all(tree, f"{title}\n\nholdfast task {packet.task_id}\n", scope)
    old, head = git.head(tree.main), worktree.head_of(tree)
    if old is None or head is None or worktree.is_ancestor(tree, head, old):
        raise _nothing(packet, branch, left_out, tree)
    source = worktree.branch_of(tree) or tree.branch
    _try_merge(tree, head)
    changed_submodules = submodules.bring(tree, head, tree.branch)
    words = ["merge", "-q", "--no-ff", "--no-verify", "--no-gpg-sign", "--no-autostash"]
    try:
        git.run([*words, "-m", f"Merge {source}: {title}\n", head], cwd=tree.main, env=_committer(tree.main))
    except GitFailed as error:
        # A hook cannot have run, so this is a conflict or a dirty file: git left either nothing or a merge to abort.
        if _is_merging(tree):
            git.run(["merge", "--abort"], cwd=tree.main)
        raise NotPossible(
            f"{source} cannot be merged into {branch}: {error}",
            hint="commit or stash what is in the way, then apply again; nothing has changed",
        ) from error
    new = git.head(tree.main)
    names = git.names(git.run(["diff", "--name-only", "-z", old, new or "HEAD"], cwd=tree.main))
    return Applied(
        how="merge",
        into=tree.main,
        branch=branch,
        commit=new,
        paths=tuple(names),
        left_out=tuple(left_out),
        submodules=changed_submodules,
        squashed=squashed,
    )


def _no_worktree(packet: Packet) -> NotPossible:
    if load.fold(packet).spec.workspace == "worktree":
        return NotPossible(
            f"{packet.task_id} has not begun: it has no worktree yet",
            hint=f"'holdfast show {packet.task_id}' says what it waits for",
        )
    return NotPossible(
        f"{packet.task_id} works in place: what it did is in its project already",
        hint=f"'holdfast diff {packet.task_id}' shows it"
        if bases.read(packet) is not None
        else "a task that is started with --worktree has something to apply",
    )


def _squash_what_was_taken_back(tree: Worktree, scope: Scope | None) -> bool:
    """Where commits change what is outside the scope, but the files do not any more (the gate took that back): take the commits
    off what is checked out, so that the files become one commit.

    Raises NotPossible where the files still change it: what to do with such commits is for a person to say.
    """
    foreign, head = unmerged.committed_outside(tree, scope), worktree.head_of(tree)
    if not foreign or head is None:
        return False
    began = git.text(git.run(["merge-base", "HEAD", head], cwd=tree.main))
    # They may be more than a command line holds, and diff takes paths from nowhere else.
    changed_files = set(
        git.names(git.run(["diff", "--name-only", "-z", "--no-renames", began], cwd=tree.path))
    )
    if still := [path for path in foreign if path in changed_files]:
        branch = worktree.branch_of(tree) or "no branch"
        raise NotPossible(
            f"commits on {branch} change what is outside the scope: {named(still)}",
            hint=f"--patch brings only what is in it; 'git merge {head[:12]}' brings the commits as they are",
        )
    # A branch that the agent chose may be a person's: it stays where it is.
    kept = [] if worktree.branch_of(tree) == tree.branch else ["--no-deref"]
    git.run(["update-ref", *kept, "-m", "holdfast: squash", "HEAD", began, head], cwd=tree.path)
    git.run(["reset", "-q"], cwd=tree.path)
    return True


def named(paths: Sequence[str]) -> str:
    """Some paths in words; the first few, if there are many."""
    return ", ".join(paths[:_NAMED]) + (", …" if len(paths) > _NAMED else "")


def _nothing(
    packet: Packet, where: str, left_out: Sequence[str], tree: Worktree | None = None
) -> NotPossible:
    if tree is not None and (count := unmerged.stray_commits(tree)):
        return NotPossible(
            f"{packet.task_id} has left its branch, and what is checked out in its worktree has nothing that {where} does not have",
            hint=f"{count} commit{'s' if count != 1 else ''} on {tree.branch}: 'git merge {tree.branch}' brings them",
        )
    if left_out:
        return NotPossible(
            f"{packet.task_id} has nothing in its scope that {where} does not have; outside: {named(left_out)}",
            hint=f"'holdfast diff {packet.task_id} --all' shows it",
        )
    return NotPossible(
        f"{packet.task_id} has nothing that {where} does not have", hint="there is nothing to do"
    )


def _try_merge(tree: Worktree, head: str) -> None:
    """Look for conflicts without touching a file. (git before 2.38 cannot; the merge itself tells, and is aborted.)"""
    tried = git.call(
        ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", "HEAD", head],
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
    return git.IDENTITY


def _patch(packet: Packet, tree: Worktree) -> Applied:
    """Merge as trees, in the task's own repository; only a result without conflicts touches a file, and all at once."""
    base = bases.require(packet)
    trees = Trees.of(packet)
    whole = prepare.current_tree(packet, base)
    theirs, left_out = within(trees, base.base_tree, whole, scope=scopes.of(packet), prefix=base.place.prefix)
    if links := gitlinks(trees, base.base_tree, theirs):
        raise NotPossible(
            f"{named(links)} is a repository of its own, of which a patch can bring nothing",
            hint=f"'holdfast apply {packet.task_id}' without --patch brings its commits",
        )
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
    atomic.write_json(packet.applied, {"schema": "holdfast.applied/1", "tree": whole}, durable=True)
    return Applied(how="patch", into=tree.main, paths=paths, left_out=left_out)


def is_needed(packet: Packet) -> bool:
    """Whether there is work in the scope that was not brought over yet."""
    tree = worktree.of(packet)
    if tree is None:
        return False
    files = unmerged.uncommitted(tree)
    loose = len(files) - len(unmerged.outside(tree, files, scopes.of(packet)))
    return (loose > 0 or not unmerged.is_merged(tree)) and not is_applied(packet)


def is_applied(packet: Packet) -> bool:
    """Whether all that is in the worktree was brought over as a patch, and nothing has changed there since."""
    data, base = atomic.read_json(packet.applied), bases.read(packet)
    return data is not None and base is not None and data.get("tree") == prepare.current_tree(packet, base)
