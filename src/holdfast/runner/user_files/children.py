"""The tasks of a fan-out's items, when the fan-out has ended: those that still work are stopped."""

from __future__ import annotations

import os

from holdfast import ids
from holdfast.errors import HoldfastError
from holdfast.failpoints import failpoint
from holdfast.model.status import ENDS
from holdfast.packet import fan_out, inbox, load
from holdfast.runner.ledger import Ledger
from holdfast.spawn import execute_runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Packet


def stop(ledger: Ledger) -> None:
    """Ask each of them to stop. Safe to run again after a kill."""
    task, packet = ledger.task, ledger.packet
    assert task.spec.fan_out is not None
    for task_id in fan_out.task_ids(packet, task.spec.fan_out):
        child = packet.home.packet(task_id)
        if _is_at_work(child, packet.task_id):
            inbox.drop(child, "stop", {"reason": f"{packet.task_id} {task.status}"}, by=packet.task_id)
            failpoint("children.stop_sent")
            if not inbox.ring(child):
                execute_runner(child)


def _is_at_work(child: Packet, parent: str) -> bool:
    """Whether it is a task of the fan-out that has neither ended nor been asked to stop."""
    # The record, which an agent can write, may name anything.
    if not ids.is_safe_name(child.task_id, 64) or not os.path.isdir(child.path):
        return False
    try:
        manifest = load.read_manifest(child)
        is_going = manifest["status"] not in ENDS and not manifest.get("stopping")
        return is_going and not _is_asked(child) and load.fold(child).spec.parent == parent
    except HoldfastError:
        return False


def _is_asked(child: Packet) -> bool:
    """Whether a stop is pending: a second one would kill its agent at once."""
    return any(getattr(inbox.read(child, name), "verb", "") == "stop" for name in inbox.names(child))
