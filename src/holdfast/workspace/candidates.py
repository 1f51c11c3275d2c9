"""The worktrees of candidates (best of N): each starts from the same tree, and one is adopted.

A candidate is carried from one worktree to another as a tree. What no tree contains is refused by its gate
(`not_carried`).
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import GitFailed, NotPossible
from holdfast.failpoints import failpoint
from holdfast.model import contest
from holdfast.packet import load
from holdfast.store import admitted, atomic
from holdfast.workspace import scope as scopes
from holdfast.workspace import task_worktree
from holdfast.workspace.base import Base
from holdfast.workspace.current_tree import current_tree, take_snapshot
from holdfast.workspace.prepare import fields, own_workspace
from holdfast.workspace.project_tree import locate
from holdfast.workspace.snapshots import revert
from holdfast.workspace.snapshots.changes import changed, few, gitlinks, text, within
from holdfast.workspace.snapshots.snapshot import is_large
from holdfast.workspace.snapshots.trees import Trees
from holdfast.workspace.worktrees import fresh, worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.task import Task
    from holdfast.store.layout import Packet


def prepare(packet: Packet, task: Task, stage: str) -> dict[str, Any]:
    """Make the worktree of a candidate, with the tree that the first of them started from.

    Safe to run again after a kill, and on the worktree of an earlier run.
    """
    own, spec = task_worktree.of_stage(packet, task, stage), task.spec
    base, tree = own_workspace(packet, spec)
    start = next(
        (each.tree for name in task.parallel_stages(stage) if (each := task.stage_state(name).workspace)),
        tree,
    )
    trees, is_known = Trees.of(packet), _is_made(packet, own)
    if is_known or task.stage_state(stage).workspace is not None:
        made = worktree.make(own, spec.project_dir, commit=base.commit)
        project = locate(made.directory)
        now = take_snapshot(packet, project, spec, since=base.base_tree)
    else:
        made, project, now = fresh.make(own, spec, commit=base.commit, since=base.base_tree)
    failpoint("candidates.worktree_made")
    if unable := not_carried(trees, now, start, top=base.place.top):
        raise NotPossible(
            f"candidates cannot start from {few(unable)}: too large to be copied, or a repository",
            hint="commit it before, or work without attempts",
        )
    put(trees, project.top, now, start)
    failpoint("candidates.tree_put")
    own_base = Base(
        kind="worktree", place=project, base_tree=base.base_tree, commit=base.commit, branch=made.branch
    )
    atomic.write_json(own.workspace_base, own_base.to_json(), durable=True)
    _check(packet, own_base, start)
    if not is_known:
        admitted.note(packet, admitted.Kind.CANDIDATE, own.worktree_name)
    return fields(packet, stage, own_base, start)


def _is_made(packet: Packet, own: Packet) -> bool:
    """Whether we have made the worktree of a candidate: a retry uses it again."""
    return admitted.is_noted(packet, admitted.Kind.CANDIDATE, own.worktree_name)


def adopt(packet: Packet, patch_at: str) -> dict[str, Any]:
    """Put the tree of the chosen candidate into the task's worktree, and write what the task has changed.

    Which one that is follows from the journal. Safe to run again after a kill.
    """
    task = load.fold(packet)
    judge, chosen = contest.judge_of(task), contest.choice(task)
    gate = task.stage_state(chosen.name).gate_result if chosen is not None else None
    trees = Trees.of(packet)
    if judge is None or chosen is None or gate is None or not gate.tree or not trees.has(gate.tree):
        raise NotPossible(f"{packet.task_id} has no candidate to adopt", hint="judge them again with 'retry'")
    base, tree = own_workspace(packet, task.spec)
    put(trees, base.place.top, tree, gate.tree)
    failpoint("candidates.adopted")
    _check(packet, base, gate.tree)
    new, _ = within(trees, base.base_tree, gate.tree, scope=scopes.of(packet), prefix=base.place.prefix)
    atomic.write(patch_at, text(trees, base.base_tree, new), durable=True)
    return {
        "schema": "holdfast.adopted/1",
        "stage": judge.name,
        "chosen": chosen.name,
        "candidate": chosen.candidate,
        "by": "gate" if len(contest.survivors(task)) == 1 else "judge",
        "tree": gate.tree,
        "timestamp": clock.iso_now(),
    }


def put(trees: Trees, top: str, old: str, new: str) -> None:
    """Change a worktree that has the tree `old` so that it has the tree `new`."""
    ends = sorted({end for change in changed(trees, old, new) for end in change.ends})
    if ends:
        revert.restore(trees, top, new, ends)


def not_carried(trees: Trees, old: str, new: str, *, top: str) -> list[str]:
    """The changes from `old` to `new`, which is the tree of `top`, that no tree can carry elsewhere."""
    ends = {end for change in changed(trees, old, new) for end in change.ends}
    large = [path for path in sorted(ends) if is_large(os.path.join(top, path))]
    return [*gitlinks(trees, old, new), *large]


def _check(packet: Packet, base: Base, tree: str) -> None:
    now = current_tree(packet, base)
    if now != tree:
        trees = Trees.of(packet)
        paths = [change.path for change in changed(trees, tree, now)]
        raise GitFailed(
            f"{base.place.directory} does not have the tree of its candidate: {few(paths)}",
            hint="is another process writing there?",
        )
