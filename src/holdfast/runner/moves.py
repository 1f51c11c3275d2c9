"""What goes with a move of a task: a mark and the context before it asks for a person, a notice, a line in the audit."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.status import Status
from holdfast.packet import inbox
from holdfast.runner.people import marks
from holdfast.store import audit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.runner.ledger import Ledger


def before(ledger: Ledger, moved: ev.TaskMoved) -> None:
    """Before an interrupt is journalled. A kill in between means that all of it is done again, never that it is not done."""
    if moved.new != Status.INTERRUPTED:
        return
    from holdfast.runner.people import context as preserve
    from holdfast.runner.people import notices  # rare, and dear to load

    reason = moved.interrupt or moved.reason
    if ledger.seen.get("told") != (ledger.task.moved_at, reason):
        # On a full disk the move is tried again and again, and nobody needs to hear of it more than once.
        ledger.seen["told"] = (ledger.task.moved_at, reason)
        preserve.preserve(ledger, reason)
        notices.post(ledger, str(Status.INTERRUPTED), reason)
    # Last: while the mark lies there the task is not resumed by itself, and taking it away resumes it.
    marks.leave(ledger.packet, reason)


def between(ledger: Ledger, moved: ev.TaskMoved) -> None:
    """Once it is journalled, before it is shown: whoever sees in the manifest that a person is asked reads the summary next."""
    if moved.new != Status.INTERRUPTED:
        return
    from holdfast.runner.stage import finish  # rare, and dear to load

    finish.report(ledger)


def after(ledger: Ledger, moved: ev.TaskMoved) -> None:
    """Once it is journalled and shown."""
    if ledger.task.spec.queue is not None and moved.new in _FREE_A_SLOT:
        inbox.ring_keeper(ledger.packet.home)
    audit.append(
        ledger.packet.home,
        {
            "operation": "task.moved",
            "task_id": ledger.packet.task_id,
            "by": "runner",
            "old": moved.old,
            "new": moved.new,
            "reason": moved.reason,
            "level": _LEVELS.get(Status(moved.new), "info"),
            **({"iteration": ledger.task.iteration} if ledger.task.iteration else {}),
        },
    )


#: Moves after which a task of the queue needs no slot, or wants one.
_FREE_A_SLOT = frozenset({Status.WAITING, Status.INTERRUPTED, Status.QUEUED})
_LEVELS = {
    Status.CRASHED: "warn",
    Status.HUNG: "warn",
    Status.INTERRUPTED: "warn",
    Status.TIMEOUT: "warn",
    Status.FAILED: "error",
    Status.ABANDONED: "error",
}
