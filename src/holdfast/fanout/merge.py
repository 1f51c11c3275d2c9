"""Merging the work of one item into the parent's branch. Nothing is written before everything is judged.

The work of an item is merged with the tip of the branch as trees. The result must change only what the item
may change, and pass the acceptance commands in a clean room. Then it becomes a commit, to which the branch
moves.
"""

from __future__ import annotations

import os
from functools import partial

from holdfast.errors import GitFailed, NotPossible
from holdfast.failpoints import failpoint
from holdfast.gates import acceptance_commands, room_commands
from holdfast.model.record import Record
from holdfast.model.spec import DEPENDENCIES
from holdfast.store import atomic
from holdfast.store.no_links import plain_path
from holdfast.workspace import base as bases
from holdfast.workspace import clean_room, git, lock, task_worktree
from holdfast.workspace.project_tree import locate
from holdfast.workspace.scope import Scope, literal
from holdfast.workspace.snapshots.changes import few
from holdfast.workspace.snapshots.trees import Trees
from holdfast.workspace.worktrees import apply, submodules, unmerged, worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import PlanItem, TaskSpec
    from holdfast.redact import Redactor
    from holdfast.store.layout import Packet
    from holdfast.workspace.worktrees.worktree import Worktree


class MergeInput(Record):
    """The work of one item, and the parent into whose branch it is merged."""

    parent: Packet
    spec: TaskSpec
    item: PlanItem
    child: Packet
    redact: Redactor


class MergeResult(Record):
    """What was found about the work of an item."""

    #: The commit that merges it; empty if it is refused.
    commit: str = ""
    files: int = 0
    #: Why it is refused, in one line, and everything that its agent should know.
    reason: str = ""
    evidence: str = ""


def tip_of(parent: Packet) -> str:
    """The tip of the parent's branch. Raises NotPossible if its worktree or branch is gone."""
    tip = worktree.tip_of(_tree(parent))
    if tip is None:
        raise NotPossible(f"the branch of {parent.task_id} is gone")
    return tip


def branch_of(parent: Packet) -> str:
    """The branch of a task."""
    return _tree(parent).branch


def _tree(parent: Packet) -> Worktree:
    tree = worktree.of(parent)
    if tree is None:
        raise NotPossible(f"{parent.task_id} has no worktree")
    task_worktree.refuse_linked(tree)
    return tree


def judge(work: MergeInput, tip: str) -> MergeResult:
    """Judge the work of an item on top of `tip`. Raises GitFailed, StorageError."""
    try:
        return _judge(work, tip, _head_of(work.child, work.item.title))
    except NotPossible as error:
        return MergeResult(reason=str(error), evidence=error.hint)


def _head_of(child: Packet, title: str) -> str:
    """The commit with all the work of a task; what is uncommitted is committed."""
    tree = apply.complete_worktree(child)
    held = lock.acquire(child.home, tree.path, role="fan-out")
    try:
        with git.SharedDirectories():
            unmerged.commit_all(tree, f"{title}\n\nholdfast task {child.task_id}\n")
            head = worktree.head_of(tree)
            if head is None:
                raise NotPossible(f"{tree.path} has no commit")
            apply.refuse_unseen(child, tree, head, None)
            if submodules.unmerged(tree):
                raise NotPossible(
                    f"{child.task_id} has commits in submodules, which cannot be merged",
                    hint="Undo them: change only files of the project itself.",
                )
            return head
    finally:
        held.release()


def _judge(work: MergeInput, tip: str, head: str) -> MergeResult:
    tree, item = _tree(work.parent), work.item
    main = worktree.main_of(tree)
    if worktree.is_ancestor(tree, head, tip):
        return MergeResult(commit=tip)  # it has changed nothing
    merged = git.merge_trees(partial(git.call, of=main), tip, head)
    if merged.has_conflicts:
        conflicts = few(merged.conflicts)
        return MergeResult(
            reason=f"it conflicts with what is merged: {conflicts}",
            evidence=f"Your branch and {tree.branch} change the same lines of {conflicts}.",
        )
    if not merged.tree:
        raise GitFailed(f"git merge-tree: {merged.error}", hint="fan-out needs git 2.38 or newer")
    names = git.names(git.run(["diff", "--name-only", "-z", "--no-renames", tip, merged.tree, "--"], of=main))
    outside = _outside(item, names, tree.prefix)
    if outside:
        return MergeResult(
            reason=f"it changes files outside its scope: {few(outside)}",
            evidence=f"You may change only {', '.join(item.scope)}. Undo your changes of: {few(outside)}.",
        )
    refused = _accept(work, merged.tree)
    if refused is not None:
        return refused
    message = f"Merge {branch_of(work.child)}: {item.title}\n\nholdfast task {work.child.task_id}\n"
    args = ["commit-tree", "--no-gpg-sign", "-p", tip, "-p", head, merged.tree]
    commit = git.text(git.run(args, of=main, env=git.IDENTITY, stdin=message.encode("utf-8", "replace")))
    return MergeResult(commit=commit, files=len(names))


def _outside(item: PlanItem, names: list[str], prefix: str) -> list[str]:
    if not item.scope:
        return []
    scope = Scope(map(literal, item.scope), ())
    return [name for name in names if not scope.has(name, prefix)]


def _accept(work: MergeInput, tree: str) -> MergeResult | None:
    """Run the acceptance commands on the merged tree, in a clean room; None if they pass."""
    parent, item, spec = work.parent, work.item, work.spec
    assert spec.fan_out is not None
    quality = spec.fan_out.quality
    if not quality.accept:
        return None
    acceptance = acceptance_commands.Acceptance(
        commands=tuple(acceptance_commands.Command(text=text) for text in quality.accept),
        links=room_commands.Links(names=DEPENDENCIES),
        limit_s=quality.timeout_s,
        source="given with --accept",
        title=f"Acceptance of {item.id} with everything merged before",
        redact=work.redact,
    )
    trees, base = Trees.of(parent), bases.require(parent)
    with clean_room.entered(parent, trees, base, tree) as room:
        setting = room_commands.of_room(room, locate(spec.project_dir), acceptance.links)
        result = acceptance_commands.run(acceptance, setting)
    outcome = "not passed" if result.reasons else "passed"
    text = "\n".join([f"# {acceptance.title}\n", *result.entries, f"Result: {outcome}\n"])
    path = os.path.join(parent.outputs, f"{item.id}.merge.md")
    atomic.write(path, work.redact(text).encode("utf-8", "backslashreplace"), durable=True)
    if not result.reasons:
        return None
    return MergeResult(reason=f"together with what is merged: {result.reasons[0]}", evidence=result.evidence)


def move(parent: Packet, old: str, new: str) -> None:
    """Move the parent's branch from one commit to the next, and then its files. Safe to run again."""
    tree = _tree(parent)
    if worktree.tip_of(tree) != new:
        worktree.check_branch(tree)
        args = ["update-ref", "--no-deref", "-m", "holdfast fan-out", f"refs/heads/{tree.branch}", new, old]
        git.run(args, of=worktree.main_of(tree))
        failpoint("fanout.branch_moved")
    # The worktree belongs to the conductor: files that are not in the commit are not work.
    inside = worktree.inside(tree)
    plain_path(inside.git_dir, os.path.join(inside.git_dir, "index"))
    git.run(["read-tree", "--reset", "-u", new], of=inside)
    failpoint("fanout.files_moved")
