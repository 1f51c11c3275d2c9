"""Applying the work of a task's worktree to the user's tree: all changes in its scope, or nothing."""

from __future__ import annotations

import os
import shlex
from functools import partial

from holdfast.errors import GitFailed, NotPossible
from holdfast.failpoints import failpoint
from holdfast.model.record import Record
from holdfast.packet import load
from holdfast.redact import Redactor
from holdfast.store import atomic
from holdfast.store.directories import unreadable
from holdfast.units import plural
from holdfast.workspace import base as bases
from holdfast.workspace import git, lock, sandbox_commits
from holdfast.workspace import scope as scopes
from holdfast.workspace.current_tree import current_tree
from holdfast.workspace.project_tree import locate
from holdfast.workspace.snapshots import snapshot
from holdfast.workspace.snapshots.changes import changed, few, gitlinks, patch, within
from holdfast.workspace.snapshots.trees import Trees
from holdfast.workspace.worktrees import commits, submodules, unmerged, worktree
from holdfast.workspace.worktrees.overwritten import refuse_overwriting
from holdfast.workspace.worktrees.unjudged import changed_since_gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.layout import Packet
    from holdfast.workspace.base import Base
    from holdfast.workspace.scope import Scope
    from holdfast.workspace.worktrees.worktree import Worktree


class Applied(Record):
    """What was applied."""

    #: merge or patch.
    how: str
    into: str
    #: The branch of the main tree, and the new commit; null with a patch.
    branch: str | None = None
    commit: str | None = None
    paths: tuple[str, ...] = ()
    #: Files outside the scope, which were not applied.
    left_out: tuple[str, ...] = ()
    #: Submodules that are at another commit now; `git submodule update` updates their files.
    submodules: tuple[str, ...] = ()
    #: The commits were squashed, because some of them change files outside the scope that were reverted
    #: later.
    squashed: bool = False
    #: Everything was in the project already, and the task did not show it.
    was_there: bool = False
    #: Directories of the worktree that cannot be read: what is in them was not applied.
    unreadable: tuple[str, ...] = ()
    #: Files in the scope that changed after the last gate passed: no gate saw them as they are.
    unjudged: tuple[str, ...] = ()


def apply(packet: Packet, *, goal: str, as_patch: bool, is_recorded: bool = True) -> Applied:
    """Merge the worktree's HEAD into the branch of the main tree; or only patch the files.

    Raises NotPossible if the task works in place, if there is nothing to apply, or on a conflict. The main
    tree is unchanged then. Work that is there already is an error only if that `is_recorded`: an `apply`
    that was killed may have recorded nothing.
    """
    tree = complete_worktree(packet)
    # Not while another task writes in the main tree: the changes would be blamed on its agent.
    workspace_lock = lock.acquire(packet.home, tree.main, role="apply")
    try:
        with git.SharedDirectories():
            if as_patch:
                applied = _patch(packet, tree, is_recorded=is_recorded)
            else:
                applied = _merge(packet, tree, goal, is_recorded=is_recorded)
        return applied.evolve(unreadable=unreadable(tree.path))
    finally:
        workspace_lock.release()


def complete_worktree(packet: Packet) -> Worktree:
    """The worktree of a task, repaired if an agent damaged it. Raises NotPossible if there is none."""
    tree = worktree.of(packet)
    if tree is None:
        raise _no_worktree(packet)
    if worktree.is_own_repository(tree):
        raise NotPossible(
            f"{tree.path} was turned into a separate repository, which cannot be merged",
            hint=f"remove or rename its .git, then apply again: its files are compared with {tree.main}",
        )
    if not worktree.repair(tree):
        raise NotPossible(
            f"the worktree {tree.path} is gone", hint=f"'git merge {tree.branch}' if the branch exists"
        )
    sandbox_commits.bring(packet, tree)
    return tree


def _merge(packet: Packet, tree: Worktree, goal: str, *, is_recorded: bool) -> Applied:
    main = worktree.main_of(tree)
    branch = git.text(git.run(["symbolic-ref", "-q", "--short", "HEAD"], of=main, allowed=(0, 1)))
    if not branch:
        raise NotPossible(
            f"no branch is checked out in {tree.main}", hint="'git switch BRANCH' first, or use --patch"
        )
    # Redact before cutting; others read the history.
    title = " ".join(Redactor(dict(os.environ))(goal).split())[:72] or packet.task_id
    scope = scopes.of(packet)
    source = worktree.branch_of(tree) or tree.branch
    squashed = squash_reverted(tree, scope)
    left_out = unmerged.commit_all(tree, f"{title}\n\nholdfast task {packet.task_id}\n", scope)
    old, head = git.head(main), worktree.head_of(tree)
    if old is None or head is None or worktree.is_ancestor(tree, head, old):
        if is_recorded or old is None or head is None or worktree.is_ancestor(tree, head, tree.commit):
            raise _nothing(packet, branch, left_out, tree, hidden=unreadable(tree.path))
        names = git.names(git.run(["diff", "--name-only", "-z", f"{tree.commit}...{head}", "--"], of=main))
        return Applied(
            how="merge",
            into=tree.main,
            branch=branch,
            commit=old,
            paths=tuple(names),
            left_out=tuple(left_out),
            was_there=True,
        )
    seen = refuse_unseen(packet, tree, head, scope)
    commits.make_ready_to_merge(main, branch)
    merged = _try_merge(tree, head, source) or head
    refuse_overwriting(partial(git.run, of=main), main.top, "HEAD", merged)
    changed_submodules = submodules.fetch_home(tree, head, tree.branch)
    args = ["merge", "-q", "--no-ff", "--no-verify", "--no-gpg-sign", "--no-autostash"]
    try:
        git.run([*args, "-m", f"Merge {source}: {title}\n", head], of=main, env=_committer(main))
    except GitFailed as error:
        # No hook has run, so this is a conflict or a dirty file: there is nothing, or a merge to abort.
        if git.is_merging(main):
            git.run(["merge", "--abort"], of=main)
        raise NotPossible(
            f"{source} cannot be merged into {branch}: {error}",
            hint="commit or stash the changes in the way, then apply again; the project was not changed",
        ) from error
    failpoint("apply.merged")
    new = git.head(main)
    names = git.names(git.run(["diff", "--name-only", "-z", old, new or "HEAD", "--"], of=main))
    return Applied(
        how="merge",
        into=tree.main,
        branch=branch,
        commit=new,
        paths=tuple(names),
        left_out=tuple(left_out),
        submodules=changed_submodules,
        squashed=squashed,
        unjudged=changed_since_gate(packet, seen),
    )


def _no_worktree(packet: Packet) -> NotPossible:
    if load.fold(packet).spec.workspace == "worktree":
        return NotPossible(
            f"{packet.task_id} has not started: it has no worktree yet",
            hint=f"'holdfast show {packet.task_id}' shows what it waits for",
        )
    return NotPossible(
        f"{packet.task_id} works in place: its changes are in the project already",
        hint=f"'holdfast diff {packet.task_id}' shows them"
        if bases.read(packet) is not None
        else "only a task started with --worktree can be applied",
    )


def squash_reverted(tree: Worktree, scope: Scope | None) -> bool:
    """Undo commits whose changes outside the scope the gate reverted, so that the files become one commit.

    Raises NotPossible if files outside the scope still differ: a person must decide about such commits.
    """
    foreign, head = unmerged.committed_outside(tree, scope), worktree.head_of(tree)
    if not foreign or head is None:
        return False
    start = git.text(git.run(["merge-base", "HEAD", head], of=worktree.main_of(tree)))
    # List all files: the paths may not fit on a command line, and diff cannot read them from stdin.
    args = ["diff", "--name-only", "-z", "--no-renames", "--ignore-submodules=dirty", start, "--"]
    with commits.own_index(worktree.inside(tree)) as own:
        changed_files = set(git.names(git.run(args, of=own)))
        if still_changed := [path for path in foreign if path in changed_files]:
            branch = worktree.branch_of(tree) or "no branch"
            raise NotPossible(
                f"commits on {branch} change files outside the scope: {few(still_changed)}",
                hint=f"--patch applies only changes in the scope; 'git merge {head[:12]}' merges the commits",
            )
        git.run(["read-tree", "--reset", start], of=own)
        worktree.move_head(tree, start, head)
        failpoint("apply.squashed")
        commits.put_index(own)
    return True


def refuse_unseen(packet: Packet, tree: Worktree, head: str, scope: Scope | None) -> str:
    """Raises NotPossible if a commit has other content in the scope than the files; returns their tree.

    Gates and `diff` see the files. git can be told to see no difference: by flags or times in an index, or by
    ignore rules.
    """
    trees = Trees.of(packet)
    seen = current_tree(packet, bases.require(packet))
    paths = [end for change in changed(trees, seen, trees.tree_of(head)) for end in change.ends]
    foreign = {*unmerged.outside(tree, paths, scope), *unmerged.filtered_at_start(tree, paths)}
    unseen = [path for path in paths if path not in foreign and not _is_large_and_same(tree, head, path)]
    if unseen:
        empty = _empty_submodules(tree, head)
        unseen = [path for path in unseen if not any(f"{path}/".startswith(f"{each}/") for each in empty)]
    if unseen:
        raise NotPossible(
            f"commits of {packet.task_id} have other content than its files: {few(unseen)}",
            hint=f"the project was not changed; 'git diff {head[:12]}' in {tree.path} shows it; "
            "--patch applies the files",
        )
    return seen


def _empty_submodules(tree: Worktree, head: str) -> list[str]:
    """Submodules that are not checked out, and that the task did not change: their files are not applied."""
    sides = [
        set(git.gitlinks(worktree.call(tree, ["ls-tree", "-r", "-z", "--full-tree", commit]).stdout))
        for commit in (tree.commit, head)
    ]
    return [path for path, _ in sides[0] & sides[1] if submodules.at(tree, path) is None]


def _is_large_and_same(tree: Worktree, head: str, path: str) -> bool:
    """Whether a path is a file of which a snapshot has only a note, and the commit has its content."""
    full = os.path.join(tree.path, path)
    if not snapshot.is_large(full):
        return False
    inside = worktree.inside(tree)
    args = ["rev-parse", "--verify", "-q", f"{head}:{path}"]
    return git.run(args, of=inside, allowed=(0, 1, 128)) == git.run(["hash-object", "--", path], of=inside)


def _nothing(
    packet: Packet,
    where: str,
    left_out: Sequence[str],
    tree: Worktree | None = None,
    *,
    hidden: Sequence[str] = (),
) -> NotPossible:
    if tree is not None and (count := unmerged.stray_commits(tree)):
        return NotPossible(
            f"{packet.task_id} is not on its own branch, and its HEAD has nothing new for {where}",
            hint=f"'git merge {tree.branch}' merges {plural(count, 'commit')} of that branch",
        )
    if left_out:
        return NotPossible(
            f"{packet.task_id} has nothing new for {where} in its scope; outside: {few(left_out)}",
            hint=f"'holdfast diff {packet.task_id} --all' shows it",
        )
    if hidden:
        return NotPossible(
            f"{packet.task_id} has nothing new for {where}, but {few(hidden)} cannot be read",
            hint="'chmod u+rx' opens it; then apply again",
        )
    return NotPossible(f"{packet.task_id} has nothing new for {where}", hint="nothing to do")


def _try_merge(tree: Worktree, head: str, source: str) -> str:
    """Look for conflicts without changing a file. Returns the merged tree.

    (git before 2.38 cannot; then it is empty, and the merge itself is aborted.)
    """
    merged = git.merge_trees(partial(git.call, of=worktree.main_of(tree)), "HEAD", head)
    if merged.has_conflicts:
        raise _conflict(
            merged.conflicts,
            tree.main,
            # The name of a branch is an agent's choice, and people copy hints into their shell.
            hint=f"'git merge {shlex.quote(source)}' in {tree.main} merges it by hand; the project was not "
            "changed",
        )
    return merged.tree


def _conflict(paths: Sequence[str], where: str, *, hint: str) -> NotPossible:
    return NotPossible(f"conflict with {where} in {few(paths) or 'some files'}", hint=hint)


def _committer(main: git.Repository) -> dict[str, str]:
    """The variables that make holdfast the committer, if git has no identity configured."""
    if git.call(["var", "GIT_COMMITTER_IDENT"], of=main, allowed=(0, 128)).returncode == 0:
        return {}
    return git.IDENTITY


def _patch(packet: Packet, tree: Worktree, *, is_recorded: bool) -> Applied:
    """Merge the trees in the task's own repository. Files are changed only if there is no conflict."""
    base = bases.require(packet)
    trees = Trees.of(packet)
    whole = current_tree(packet, base)
    theirs, left_out = within(trees, base.base_tree, whole, scope=scopes.of(packet), prefix=base.place.prefix)
    if links := gitlinks(trees, base.base_tree, theirs):
        raise NotPossible(
            f"{few(links)} is a nested repository, which a patch cannot contain",
            hint=f"'holdfast apply {packet.task_id}' without --patch merges its commits",
        )
    if large := _too_large(trees, base, theirs):
        raise NotPossible(
            f"{few(large)} is larger than {snapshot.BIG_BYTES >> 20} MiB, which a patch cannot contain",
            hint=f"'holdfast apply {packet.task_id}' without --patch merges it; the project was not changed",
        )
    main = locate(tree.main)
    ours = snapshot.take(main, trees, hidden=(os.path.realpath(packet.home.path),))
    start = trees.commit(base.base_tree)
    merged = git.merge_trees(trees.call, trees.commit(ours, start), trees.commit(theirs, start))
    if not merged.is_supported:
        raise NotPossible(
            "this git cannot merge trees", hint="update git to 2.38 or newer, or apply without --patch"
        )
    if merged.has_conflicts:
        raise _conflict(
            merged.conflicts,
            tree.main,
            hint=f"'holdfast apply {packet.task_id}' without --patch says how to merge it by hand; "
            "the project was not changed",
        )
    if not merged.tree:
        raise GitFailed(f"git merge-tree of {packet.task_id}: {merged.error}")
    paths = tuple(change.path for change in changed(trees, ours, merged.tree))
    was_there = not paths
    if was_there:
        paths = tuple(change.path for change in changed(trees, base.base_tree, theirs))
        if is_recorded or not paths:
            raise _nothing(packet, tree.main, left_out, hidden=unreadable(tree.path))
    else:
        # git would write some files before it fails.
        refuse_overwriting(trees.run, main.top, ours, merged.tree)
        git.run(
            ["apply", "--whitespace=nowarn", "--binary", "-"],
            of=worktree.main_of(tree),
            stdin=patch(trees, ours, merged.tree),
        )
        failpoint("apply.patched")
    atomic.write_json(packet.applied, {"schema": "holdfast.applied/1", "tree": whole}, durable=True)
    return Applied(
        how="patch",
        into=tree.main,
        paths=paths,
        left_out=left_out,
        was_there=was_there,
        unjudged=changed_since_gate(packet, whole),
    )


def _too_large(trees: Trees, base: Base, tree: str) -> list[str]:
    """The changed files of which the tree has only a note."""
    paths = [change.path for change in changed(trees, base.base_tree, tree)]
    return [path for path in paths if snapshot.is_large(os.path.join(base.place.top, path))]


def is_needed(packet: Packet) -> bool:
    """Whether there is work in the scope that was not applied yet. Raises GitFailed if git is slow."""
    tree = worktree.of(packet)
    if tree is None:
        return False
    with git.within(git.VIEW_S):
        files = unmerged.uncommitted(tree)
        in_scope = len(files) - len(unmerged.outside(tree, files, scopes.of(packet)))
        return (in_scope > 0 or not unmerged.is_merged(tree)) and not is_applied(packet)


def is_applied(packet: Packet) -> bool:
    """Whether the worktree was applied as a patch and has not changed since."""
    data, base = atomic.read_json(packet.applied), bases.read(packet)
    return data is not None and base is not None and data.get("tree") == current_tree(packet, base)
