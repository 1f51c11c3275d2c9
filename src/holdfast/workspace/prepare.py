"""Before a stage: the workspace is there, and what stands in it is known."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import GitFailed, GitMissing, NotPossible
from holdfast.packet import load
from holdfast.store import atomic
from holdfast.workspace import base as bases
from holdfast.workspace import git
from holdfast.workspace.base import Base
from holdfast.workspace.place import locate
from holdfast.workspace.snapshots import git_files, snapshot
from holdfast.workspace.snapshots.changes import changed
from holdfast.workspace.snapshots.trees import Trees
from holdfast.workspace.worktrees import worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.spec import TaskSpec
    from holdfast.store.layout import Packet
    from holdfast.workspace.place import Place

#: Dirty paths that are named.
_DIRTY = 100


def prepare(packet: Packet, stage: str) -> dict[str, Any]:
    """The fields of `workspace.prepared` for a stage. Safe to run again after a kill: nothing is recorded twice. Where a stage only
    reads, in place, it may begin though nobody could look: `tree` is empty then."""
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
    known = bases.read(packet)
    if known is None:
        known, tree = _begin(packet, spec)
    else:
        if known.kind == "worktree":
            worktree.make(packet, spec.project_dir)
        tree = now(packet, known)
    trees = Trees.of(packet)
    head = git.head(known.place.top) if known.place.git_dir is not None else None
    dirty: list[str] = []
    if head is not None:
        dirty = [change.path for change in changed(trees, trees.tree_of(head), tree)][:_DIRTY]
    return {
        "schema": "holdfast.prepared/1",
        "stage": stage,
        "path": known.place.directory,
        "kind": known.kind,
        "tree": tree,
        "base_tree": known.base_tree,
        "commit": known.commit,
        "branch": known.branch,
        "dirty": dirty,
        "own_files": git_files.note(known.place, trees),
        "timestamp": clock.iso_now(),
    }


def _begin(packet: Packet, spec: TaskSpec) -> tuple[Base, str]:
    branch = None
    directory = spec.project_dir
    if spec.workspace == "worktree":
        made = worktree.make(packet, spec.project_dir)
        branch, directory = made.branch, made.directory
    place = locate(directory)
    tree = _take(packet, place, spec)
    commit = git.head(place.top) if place.git_dir is not None else None
    known = Base(kind=spec.workspace, place=place, base_tree=tree, commit=commit, branch=branch)
    atomic.write_json(bases.path_of(packet), known.to_json(), durable=True)
    return known, tree


def now(packet: Packet, known: Base, spec: TaskSpec | None = None) -> str:
    """The tree of the workspace as it is now. Raises NotPossible when its repository or directory is gone."""
    place = known.place
    for path in (place.directory, place.git_dir):
        if path is not None and not os.path.isdir(path):
            raise NotPossible(f"{path} is gone, which the workspace of {packet.task_id} needs")
    return _take(packet, place, spec or load.fold(packet).spec)


def _take(packet: Packet, place: Place, spec: TaskSpec) -> str:
    deny = spec.pipeline.scope_deny if spec.pipeline is not None else ()
    return snapshot.take(place, Trees.of(packet), deny=deny, hidden=(os.path.realpath(packet.home.path),))
