"""Notices of a task, according to the user's current rules."""

from __future__ import annotations

import os

from holdfast import files, paths
from holdfast.errors import HoldfastError
from holdfast.model.status import ENDS, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.runner.ledger import Ledger


def post(
    ledger: Ledger,
    event: str,
    reason: str | None = None,
    *,
    cause: str = "",
    approval: str | None = None,
    asked_by: str = "",
) -> int:
    """Post a notice for each rule that matches `event` (a state, `quality_gate`, …). `approval` is the stage
    that a person must approve, `asked_by` who interrupted the task, as in `Answer`.

    Returns how many; never raises. When a task ends, notices are posted before `_task.done` is written and
    delivered after it. A kill in between can cause a duplicate, never a loss.
    """
    if not os.path.exists(paths.user_settings()):
        return 0  # no rules: skip the imports
    try:
        from holdfast.config import settings

        rules = settings.notify_rules()
    except HoldfastError as error:
        # They were valid when the task was created, so they are being edited. The keeper has the old ones.
        files.log(f"the keeper chooses the rules for the notice of {event}: {error}")
        rules = None
    if rules == []:
        return 0
    from holdfast.notify import outbox

    task, packet = ledger.task, ledger.packet
    # Posted before the transition is journalled: the event is the new state.
    status = str(event if event in tuple(Status) else task.status)
    happened: dict[str, Any] = {
        "event": event,
        "task_id": task.spec.task_id,
        "task_name": ledger.redact(task.spec.task_name),
        "status": status,
        "reason": task.reason if reason is None else reason,
        "cause": cause,
        "project_dir": task.spec.project_dir,
        "agent": task.attempt.agent if task.attempt is not None else task.spec.agent,
        "stage": task.stage,
        "packet": packet.path,
    }
    if event == Status.INTERRUPTED:
        # A reply is for this interrupt and no later one. Its move is journalled after the notice.
        happened |= {"interrupt": task.interrupts + 1, "approval": approval, "asked_by": asked_by}
    after = packet.task_done if status in ENDS else None
    posted = outbox.post(packet.home, rules, happened, ledger.redact, after=after)
    if posted:
        _ensure_keeper(ledger)
    return posted


def _ensure_keeper(ledger: Ledger) -> None:
    """Start a keeper to deliver the notice: this may be the last runner of the home."""
    from holdfast.spawn import ensure_keeper

    try:
        ensure_keeper(ledger.packet.home, by_person=False)
    except (OSError, HoldfastError):
        return  # the next keeper delivers it
