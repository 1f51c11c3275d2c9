"""The tree of a task's workspace as it is now."""

from __future__ import annotations

import os

from holdfast.errors import NotPossible
from holdfast.packet import load
from holdfast.workspace.snapshots import snapshot
from holdfast.workspace.snapshots.trees import Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import TaskSpec
    from holdfast.store.layout import Packet
    from holdfast.workspace.base import Base
    from holdfast.workspace.project_tree import ProjectTree


def current_tree(packet: Packet, base: Base, spec: TaskSpec | None = None) -> str:
    """The tree of the workspace now. Raises NotPossible if its directory or repository is gone."""
    project = base.place
    for path in (project.directory, project.git_dir):
        if path is not None and not os.path.isdir(path):
            raise NotPossible(f"{path} is gone; the workspace of {packet.task_id} needs it")
    return take_snapshot(packet, project, spec or load.fold(packet).spec, since=base.base_tree)


def take_snapshot(packet: Packet, project: ProjectTree, spec: TaskSpec, *, since: str) -> str:
    """The tree of a project now, without the home of holdfast. `since` is as in `snapshot.take`."""
    deny = spec.pipeline.scope_deny if spec.pipeline is not None else ()
    hidden = (os.path.realpath(packet.home.path),)
    return snapshot.take(project, Trees.of(packet), deny=deny, hidden=hidden, since=since)
