"""Making the packet of a task that a command line asked for."""

from __future__ import annotations

from holdfast.errors import DuplicateTask
from holdfast.packet.create import create
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.status import Status
    from holdfast.views.cli.create.new_task import Asked


def make(home: Home, task: Asked, *, status: Status) -> Packet:
    """The new packet, in the given state. Raises DuplicateTask, StorageError."""
    try:
        return create(
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
        # Nobody typed this id.
        hint = "change task_id in manifest.yaml, or give another with --id"
        raise DuplicateTask(str(error), hint=hint) from error
