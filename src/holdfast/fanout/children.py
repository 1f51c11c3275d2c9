"""The tasks of items: created in the queue, looked at, and sent back."""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError, NotPossible
from holdfast.failpoints import failpoint
from holdfast.fanout.decide import Child
from holdfast.model.soundness import UNREADABLE
from holdfast.model.spec import TaskSpec, short_name
from holdfast.model.status import ENDS, Status
from holdfast.packet import create, inbox, load
from holdfast.queue import sync
from holdfast.redact import Redactor
from holdfast.runner_process import start_runner
from holdfast.store import atomic, index
from holdfast.workspace import task_worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.fan_out import Row
    from holdfast.model.spec import PlanItem
    from holdfast.store.layout import Home, Packet


def packet_of(parent: Packet, row: Row) -> Packet:
    """The packet of an item's task, whether it exists or not."""
    return parent.home.packet(row.task)


def look(parent: Packet, row: Row) -> Child | None:
    """The task of an item; None if it does not exist. One that was removed or archived has ended."""
    packet = packet_of(parent, row)
    if not os.path.isdir(packet.path):
        was_made = row.judged_run > 0 or os.path.isdir(parent.home.archived(row.task).path)
        return (
            Child(status=Status.KILLED, is_settled=True, run=1 << 30, reason="removed") if was_made else None
        )
    try:
        manifest = load.read_manifest(packet)
        if manifest["status"] not in ENDS:
            return Child(status=manifest["status"])
        is_settled = load.is_settled(packet, manifest) and not inbox.names(packet)
        task = load.fold(packet) if is_settled else None
    except HoldfastError:
        return Child(status=UNREADABLE)
    if task is None or not task.has_ended:
        return Child(status=manifest["status"])
    return Child(status=task.status, is_settled=True, run=task.run, reason=task.reason)


def make(parent: Packet, spec: TaskSpec, item: PlanItem, row: Row) -> None:
    """Create the task of an item in the queue. Safe to run again after a kill.

    Raises NotPossible if another task has its id.
    """
    home, packet = parent.home, packet_of(parent, row)
    if not os.path.isdir(packet.path):
        env = _environment(parent)
        title = Redactor(env.get("env", {}), spec.env)(item.title)
        child = _shared(spec, row.task).evolve(
            task_name=short_name(title),
            goal=title,
            parent=parent.task_id,
            base=task_worktree.branch_of(parent),
        )
        create.create(
            home, child, prompt=item.prompt.encode("utf-8", "replace"), env=env, status=Status.QUEUED
        )
        failpoint("fanout.created")
    elif load.fold(packet).spec.parent != parent.task_id:
        raise NotPossible(f"there is another task {row.task}", hint="remove it, or use another --id")
    enqueue(home)


def _shared(spec: TaskSpec, task_id: str) -> TaskSpec:
    """What all tasks of the plan have in common."""
    assert spec.fan_out is not None
    return TaskSpec.from_json({**spec.fan_out.child, "task_id": task_id})


def enqueue(home: Home) -> None:
    """Add new packets to the queue, and wake its keeper. (The runner of the parent starts a lost one.)"""
    sync.open_queue(home).close()
    inbox.ring_keeper(home)


def send_back(parent: Packet, row: Row) -> None:
    """Let the agent of an item continue in its session, with what is wrong with its work."""
    packet = packet_of(parent, row)
    args: dict[str, Any] = {"env": _environment(parent), "message": row.message}
    args["from"] = load.fold(packet).spec.stages[-1].name
    inbox.drop(packet, "retry", args, by=f"the fan-out {parent.task_id}")
    failpoint("fanout.sent_back")
    wake(packet)


def wake(packet: Packet) -> None:
    """Make sure that a runner answers the requests of a task, and that the keeper starts it."""
    if not inbox.ring(packet):
        start_runner(packet)


def relist(packet: Packet) -> None:
    """A task that was sent back has not ended any more: list it, and queue it."""
    index.update(packet.home, load.read_manifest(packet))
    enqueue(packet.home)


def _environment(parent: Packet) -> dict[str, Any]:
    """The environment of the parent, which its tasks get too."""
    return atomic.read_json(parent.env) or {}
