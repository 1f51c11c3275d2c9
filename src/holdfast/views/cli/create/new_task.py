"""A task that was read and checked, and the packet made from it."""

from __future__ import annotations

from holdfast import paths
from holdfast.errors import DuplicateTask
from holdfast.model.record import Record
from holdfast.model.spec import TaskSpec
from holdfast.packet import create as packet_create
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.status import Status


class NewTask(Record):
    """A task that is ready to be created."""

    spec: TaskSpec
    prompt: bytes | None
    #: What `environment.capture` returned, with the env file's variables added.
    env: dict[str, Any]
    #: The project's settings, by name.
    settings: dict[str, Any]
    #: Of a written packet: the directory of its inputs, and the text of its manifest.
    inputs: str | None = None
    manifest_yaml: bytes | None = None


def create(home: Home, task: NewTask, *, status: Status) -> Packet:
    """Write the packet, in the given state. Raises DuplicateTask, StorageError."""
    try:
        return packet_create.create(
            home,
            task.spec,
            prompt=task.prompt,
            env=task.env,
            status=status,
            inputs=task.inputs,
            manifest_yaml=task.manifest_yaml,
        )
    except DuplicateTask as error:
        if task.manifest_yaml is None:
            raise
        # The id came from the manifest, not from the command line.
        hint = "change task_id in manifest.yaml, or give another with --id"
        raise DuplicateTask(str(error), hint=hint) from error


def project_settings(project: str) -> dict[str, Any]:
    """The settings of a project; without settings files, the parser is not loaded."""
    if not paths.settings_files(project):
        return {}
    from holdfast.config import settings

    return settings.values(project)
