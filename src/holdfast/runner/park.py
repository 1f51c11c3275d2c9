"""Park a task whose runners die before they can do it themselves. The keeper starts this process.

It touches only what it must: the lock, the journal, the manifest. Everything else of the packet may be what
kills the runners. An agent that is alive is left to its recorder; the runner after `resume` adopts it.
"""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.status import PARKED, Status
from holdfast.packet import sealed
from holdfast.redact import Redactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.user_files import notices
from holdfast.store import lock as locks
from holdfast.store.layout import Packet


def park(packet: Packet, reason: str, hello: ev.RunnerStarted) -> None:
    """Interrupt a live task. Raises LockHeld if it has a runner."""
    lock = locks.acquire(packet.runner_lock, role="runner")
    try:
        task, journal, repaired = sealed.open_for_runner(packet)
        if task.has_ended or task.status in PARKED:
            journal.close()
            return
        ledger = Ledger(packet, task, journal, Redactor({}, task.spec.env, ()))
        try:
            # As in every interrupt, the notice comes first: it may be posted twice, but is never missing.
            notices.post(ledger, str(Status.INTERRUPTED), reason)
            moved = ev.TaskMoved(old=task.status, new=Status.INTERRUPTED, reason=reason, interrupt=reason)
            # One record. The orderly exit resets the count of crashes: a resume starts from zero.
            left = ev.RunnerLeft(pid=hello.pid, reason=str(Status.INTERRUPTED))
            ledger.record(*repaired, hello, moved, left)
            sealed.settle(packet)
        finally:
            ledger.close()
    finally:
        lock.release()
