"""The repository and the settings of git as they were before a task's first agent started.

An agent can change both: it can even make a repository of its own around its files.
"""

from __future__ import annotations

import os

from holdfast.errors import NotPossible
from holdfast.store import atomic
from holdfast.store.digest import sha256
from holdfast.workspace import base as bases
from holdfast.workspace import git, unlike_head
from holdfast.workspace.snapshots.trees import Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.task import Task
    from holdfast.store.layout import Packet

#: The longest file of settings.
_MAX_BYTES = 64 << 20
#: The fields of the file that have the repository, and the files that a sparse checkout leaves out.
_REPOSITORY, _SKIPPED = "repository", "skipped"


def freeze(packet: Packet, repository: git.Repository) -> None:
    """Save the settings of a repository, unless they were saved before.

    The rules of its uncommitted ignore files become part of the excludes.
    """
    if atomic.read_json(packet.git_settings) is None:
        atomic.make_directory(packet.state)
        settings = read(packet) or git.settings.read(repository)
        exclude = settings.exclude + unlike_head.uncommitted_rules(repository, settings)
        frozen = {
            **settings.evolve(exclude=exclude).to_json(),
            _REPOSITORY: repository.to_json(),
            _SKIPPED: unlike_head.skipped(repository),
        }
        atomic.write_json(packet.git_settings, frozen, durable=True)


def refuse_changed(packet: Packet, task: Task, stage: str) -> None:
    """Raises NotPossible if what is saved is not what the journal says: an agent changed it."""
    data = atomic.read_small(packet.git_settings, _MAX_BYTES)
    if data is not None and not task.settings_before:
        atomic.forget(packet.git_settings)  # no check before the work wrote it
        data = None
    found, noted = sha256(data) if data is not None else "", task.settings_before
    prepared = task.stage_state(stage).workspace
    if not noted and prepared is not None and prepared.settings:
        found, noted = Trees.of(packet).settings_digest, prepared.settings
    if found != noted:
        raise NotPossible(
            f"git's settings in {packet.path} are not those from before the work: they were changed",
            hint="an agent may have hidden files by them; check the workspace by hand",
        )


def read(packet: Packet) -> git.Settings | None:
    """The saved settings, or those of the task's snapshots; None if it has neither."""
    data = atomic.read_json(packet.git_settings)
    if data is not None:
        return git.Settings.from_file(data)
    trees = Trees.of(packet)
    return trees.settings if os.path.isdir(trees.git_dir) else None


def skipped(packet: Packet) -> list[str]:
    """The files that a sparse checkout left out."""
    found = (atomic.read_json(packet.git_settings) or {}).get(_SKIPPED)
    return [path for path in found if isinstance(path, str)] if isinstance(found, list) else []  # pyright: ignore


def repository_of(packet: Packet, directory: str) -> git.Repository | None:
    """The repository of the workspace as it was saved, else the one around it now; None outside git."""
    base = bases.read(packet)
    if base is not None and base.place.repository is not None:
        return base.place.repository
    frozen = (atomic.read_json(packet.git_settings) or {}).get(_REPOSITORY)
    if not isinstance(frozen, dict):
        return git.find(directory)
    return git.Repository.from_json(frozen)  # pyright: ignore[reportUnknownArgumentType]
