"""The settings of git from before a task's first agent, which can change those of the repository."""

from __future__ import annotations

import os

from holdfast.store import atomic
from holdfast.workspace import git
from holdfast.workspace.snapshots.trees import Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Packet


def freeze(packet: Packet, repository: git.Repository) -> None:
    """Keep the settings of a repository, unless those of an earlier time are kept already."""
    if read(packet) is None:
        atomic.make_directory(packet.state)
        atomic.write_json(packet.git_settings, git.settings.read(repository).to_json(), durable=True)


def read(packet: Packet) -> git.Settings | None:
    """The kept settings, or those of the task's snapshots; None if it has neither."""
    data = atomic.read_json(packet.git_settings)
    if data is not None:
        return git.Settings.from_file(data)
    trees = Trees.of(packet)
    return trees.settings if os.path.isdir(trees.git_dir) else None
