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
    from holdfast.workspace.place import Place


def current_tree(packet: Packet, base: Base, spec: TaskSpec | None = None) -> str:
    """The tree of the workspace now. Raises NotPossible if its directory or repository is gone."""
    place = base.place
    for path in (place.directory, place.git_dir):
        if path is not None and not os.path.isdir(path):
            raise NotPossible(f"{path} is gone; the workspace of {packet.task_id} needs it")
    return take_snapshot(packet, place, spec or load.fold(packet).spec)


def take_snapshot(packet: Packet, place: Place, spec: TaskSpec) -> str:
    """The tree of a place now, without the home of holdfast."""
    deny = spec.pipeline.scope_deny if spec.pipeline is not None else ()
    return snapshot.take(place, Trees.of(packet), deny=deny, hidden=(os.path.realpath(packet.home.path),))
