"""The tasks of a fan-out's items, when the fan-out has ended: those that still work are stopped."""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError
from holdfast.failpoints import failpoint
from holdfast.model.fan_out import child_id
from holdfast.model.status import ENDS
from holdfast.packet import inbox, load
from holdfast.runner.ledger import Ledger
from holdfast.spawn import execute_runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Packet


def stop(ledger: Ledger) -> None:
    """Ask each of them to stop. Safe to run again after a kill."""
    task, packet = ledger.task, ledger.packet
    assert task.spec.fan_out is not None
    for item in task.spec.fan_out.items:
        child = packet.home.packet(child_id(packet.task_id, item.id))
        if _is_at_work(child, packet.task_id):
            inbox.drop(child, "stop", {"reason": f"{packet.task_id} {task.status}"}, by=packet.task_id)
            failpoint("children.stop_sent")
        if inbox.names(child) and not inbox.ring(child):
            execute_runner(child)


def _is_at_work(child: Packet, parent: str) -> bool:
    """Whether it is a task of the fan-out that has not ended, and that nobody has asked to stop."""
    if not os.path.isdir(child.path):
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
