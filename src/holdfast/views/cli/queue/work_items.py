"""Work items (typed with `queue add`, or imported from a source) as tasks of the queue."""

from __future__ import annotations

from holdfast import paths
from holdfast.model.record import Record
from holdfast.model.spec import QueueSpec, short_name
from holdfast.store.layout import Home, Packet
from holdfast.views.cli.parse import command_spec
from holdfast.views.cli.parse.task_options import OPTIONS
from holdfast.views.cli.queue import item_trust
from holdfast.views.cli.show import out
from holdfast.views.create import enqueue, from_options
from holdfast.views.create.new_task import NewTask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.queue.work_item import WorkItem
    from holdfast.store.trust import TrustCheck


class QueuedWork(Record):
    """A work item as a task that is ready to be created."""

    task: NewTask
    queue: QueueSpec
    about: dict[str, object]


def check(
    work: WorkItem,
    *,
    agent: str | None,
    project: str | None,
    pool: str | None,
    trust_project: bool,
    sandbox: bool = False,
    judge: TrustCheck | None = None,
) -> QueuedWork:
    """Read and check a work item; `judge` decides what it may ask for. Raises UsageError."""
    # First: nothing that it names is read before, such as the files of options.
    contents: dict[str, bytes | None] = {}
    granted = item_trust.check(work, judge, contents)
    values = {**_values(work, agent=agent, project=project), "sandbox": sandbox}
    task = from_options.read({**values, "trust_project": trust_project}, verb="queue add", talk=out.talk)
    if granted:
        task = task.evolve(spec=task.spec.evolve(trust={**task.spec.trust, **granted}))
        task = item_trust.frozen(task, Home(paths.home()).packet(task.spec.task_id), contents)
    queue = QueueSpec(
        priority=work.priority,
        pool=pool or work.pool,
        after=work.after,
        not_before=work.not_before,
    )
    about: dict[str, object] = {
        "id": work.key,
        "details": work.title,
        "source": work.source,
        "url": work.url,
        **({"rig": work.rig} if work.rig else {}),
    }
    return QueuedWork(task=task, queue=queue, about=about)


def create(home: Home, work: QueuedWork) -> Packet:
    """Write its packet. Raises DuplicateTask, StorageError."""
    return enqueue.create(home, work.task, work.queue, work=work.about)


def _values(work: WorkItem, *, agent: str | None, project: str | None) -> dict[str, Any]:
    """A work item as the values of a command line. The item's own agent and project win."""
    empty = command_spec.defaults(command_spec.Command(name="", summary="", options=OPTIONS))
    return {
        **empty,
        "prompt": None if work.command else work.prompt,
        "command": work.command,
        "accept": list(work.accept),
        "agent": None if work.command else work.agent or agent,
        "model": work.model,
        "permissions": work.permissions,
        "project": work.project or project,
        "name": short_name(work.title),
        "id": work.task_id,
        # An unattended agent needs the bootstrap: it explains where it is and how to ask.
        "bootstrap": None if work.command or work.bootstrap == "none" else work.bootstrap,
        "option": list(work.options),
        "var": list(work.variables),
    }
