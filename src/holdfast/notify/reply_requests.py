"""Turn a reply that was taken into a request, and forget what is answered.

Every step may be repeated after a kill: the id of the request is in the record of the reply.
"""

from __future__ import annotations

import os

from holdfast import clock, files
from holdfast.errors import NotFound
from holdfast.failpoints import failpoint
from holdfast.notify import replies, rules
from holdfast.notify.replies import Awaited, Taken
from holdfast.packet import asker, inbox, load
from holdfast.store import admitted, audit
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.task import Task


def log(text: str) -> None:
    """A line in keeper.log."""
    files.log(f"{clock.iso_now()} replies {os.getpid()}: {text}")


class Requests:
    """The requests that follow the replies of a home."""

    def __init__(self, home: Home) -> None:
        self.home = home
        #: Tasks that waited at their interrupt: notice → what their journal looked like.
        self._waiting: dict[str, tuple[int, int, int]] = {}

    def settle(self, awaited: Awaited) -> bool:
        """Send the request if a reply was taken. Returns whether the task still waits at the interrupt, or is
        about to. Raises StorageError."""
        notice, packet = awaited.notice, self.home.packet(awaited.task_id)
        taken = replies.taken(self.home, notice)
        is_open = taken is None or taken.is_sent
        stamp = _stamp(packet)
        if is_open and self._waiting.get(notice) == stamp:
            return True
        where, task = _where(packet, awaited)
        if where == "past":
            if taken is not None and (task is None or taken.request not in task.requests):
                self._tell_late(awaited, taken)
            replies.forget(self.home, notice)
            return False
        if where == "at" and stamp is not None:
            self._waiting[notice] = stamp
        if where == "at" and taken is not None and not taken.is_sent and task is not None:
            if taken.request not in task.requests:
                self._send(packet, awaited, taken)
            replies.note_sent(self.home, taken)
        return True

    def _send(self, packet: Packet, awaited: Awaited, taken: Taken) -> None:
        """The request says which interrupt it answers: the runner refuses it for another one."""
        who = asker.reply(f"a reply via {rules.label(awaited.rule)}")
        args = {"interrupt": awaited.interrupt, "stage": awaited.stage}
        inbox.drop(packet, taken.verb, args, by=who.by, asker=who.kind, request_id=taken.request)
        self._audit(f"request.{taken.verb}", awaited, taken, by=who.by)
        if not inbox.ring(packet):
            inbox.ring_keeper(self.home)
        log(f"{taken.verb} {packet.task_id}: request {taken.request}")
        failpoint("replies.sent")

    def _tell_late(self, awaited: Awaited, taken: Taken) -> None:
        log(f"{taken.verb} {awaited.task_id}: it waits for this no more")
        self._audit("reply.late", awaited, taken, by=f"a reply via {rules.label(awaited.rule)}")

    def _audit(self, operation: str, awaited: Awaited, taken: Taken, *, by: str) -> None:
        entry = {"operation": operation, "task_id": awaited.task_id, "by": by}
        audit.append(self.home, {**entry, "asker": "reply", "request": taken.request})


def _where(packet: Packet, awaited: Awaited) -> tuple[str, Task | None]:
    """Whether the task is `before` the interrupt (its notice is posted first), `at` it, or `past` it."""
    try:
        task = load.fold(packet)
    except NotFound:
        return "past", None
    if task.has_ended or task.interrupts > awaited.interrupt or not admitted.is_admitted(packet):
        return "past", task
    if task.interrupts < awaited.interrupt:
        return "before", task
    is_at = task.interrupted is not None and task.interrupted.approval == awaited.stage
    return ("at" if is_at else "past"), task


def _stamp(packet: Packet) -> tuple[int, int, int] | None:
    try:
        found = os.stat(packet.journal)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
