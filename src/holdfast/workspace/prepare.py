"""Preparing the workspace of a stage: make sure that it exists, and record its tree."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import GitFailed, GitMissing, NotPossible
from holdfast.packet import load
from holdfast.store import atomic
from holdfast.workspace import base as bases
from holdfast.workspace import git, sandbox_commits, surroundings
from holdfast.workspace.base import Base
from holdfast.workspace.current_tree import current_tree, take_snapshot
from holdfast.workspace.project_tree import locate
from holdfast.workspace.snapshots import git_files
from holdfast.workspace.snapshots.changes import changed
from holdfast.workspace.snapshots.trees import Trees
from holdfast.workspace.worktrees import fresh, worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.spec import TaskSpec
    from holdfast.store.layout import Packet

#: How many dirty paths are recorded.
_MAX_DIRTY = 100


def prepare(packet: Packet, stage: str) -> dict[str, Any]:
    """The fields of `workspace.prepared` for a stage. Safe to run again after a kill.

    A stage that only reads, in place, may start even if git fails; `tree` is then empty.
    """
    spec = load.fold(packet).spec
    try:
        return _prepare(packet, stage, spec)
    except (GitFailed, GitMissing):
        if spec.workspace == "worktree" or any(step.name == stage and step.writes for step in spec.stages):
            raise
        return {
            "schema": "holdfast.prepared/1",
            "stage": stage,
            "path": os.path.realpath(spec.project_dir),
            "kind": spec.workspace,
            "tree": "",
            "base_tree": "",
            "timestamp": clock.iso_now(),
        }


def _prepare(packet: Packet, stage: str, spec: TaskSpec) -> dict[str, Any]:
    base, tree = own_workspace(packet, spec)
    return fields(packet, stage, base, tree)


def own_workspace(packet: Packet, spec: TaskSpec) -> tuple[Base, str]:
    """The workspace of the task, made if it is missing, and its tree now."""
    # Before the journal has its start, the file is that of a chore which was killed, or an agent planted it.
    base = bases.read(packet) if load.fold(packet).first_workspace is not None else None
    if base is None:
        return _begin(packet, spec)
    if base.kind == "worktree":
        sandbox_commits.bring(packet, worktree.make(packet, spec.project_dir, commit=_start_of(spec)))
    return base, current_tree(packet, base)


def _start_of(spec: TaskSpec) -> str | None:
    """The commit at which a new worktree starts; None: what is checked out. Raises NotPossible."""
    repository = git.find(spec.project_dir) if spec.base is not None else None
    if repository is None:
        return None
    args = ["rev-parse", "--verify", "-q", f"refs/heads/{spec.base}^{{commit}}"]
    done = git.call(args, of=repository, allowed=(0, 1, 128))
    if done.returncode:
        raise NotPossible(f"there is no branch {spec.base} in {repository.top}, at which the worktree starts")
    return git.text(done.stdout)


def fields(packet: Packet, stage: str, base: Base, tree: str) -> dict[str, Any]:
    """The record of a workspace that has this tree."""
    trees = Trees.of(packet)
    repository = base.place.repository
    head = git.head(repository) if repository is not None else None
    dirty: list[str] = []
    if head is not None:
        dirty = [change.path for change in changed(trees, trees.tree_of(head), tree)][:_MAX_DIRTY]
    return {
        "schema": "holdfast.prepared/1",
        "stage": stage,
        "path": base.place.directory,
        "kind": base.kind,
        "tree": tree,
        "base_tree": base.base_tree,
        "commit": base.commit,
        "branch": base.branch,
        "dirty": dirty,
        "own_files": git_files.note(base.place, trees),
        "around": surroundings.note(packet, trees) if base.kind == "worktree" else "",
        "settings": trees.settings_digest,
        "timestamp": clock.iso_now(),
    }


def _begin(packet: Packet, spec: TaskSpec) -> tuple[Base, str]:
    Trees.of(packet).forget()
    branch = None
    if spec.workspace == "worktree":
        created, project, tree = fresh.make(packet, spec, commit=_start_of(spec))
        branch = created.branch
    else:
        project = locate(spec.project_dir)
        tree = take_snapshot(packet, project, spec, since="")
    repository = project.repository
    commit = git.head(repository) if repository is not None else None
    base = Base(kind=spec.workspace, place=project, base_tree=tree, commit=commit, branch=branch)
    atomic.write_json(packet.workspace_base, base.to_json(), durable=True)
    return base, tree
