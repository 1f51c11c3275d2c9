"""Notices of a task: what its runner has to tell, by the user's rules as they are at that moment."""

from __future__ import annotations

import os
import sys

from holdfast import paths
from holdfast.errors import HoldfastError
from holdfast.model.status import ENDS, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.runner.ledger import Ledger


def post(ledger: Ledger, event: str, reason: str | None = None) -> int:
    """Leave a notice for each rule that wants to hear of `event` (a state, `quality_gate`, …). Returns how many; never raises.

    For an end: called before `_task.done` is written, after which it is delivered. A kill in between means that it is
    told twice, never that it is not told.
    """
    if not os.path.exists(paths.user_settings()):
        return 0  # nobody asked to be told, so nothing of it is loaded
    try:
        from holdfast.config import settings

        rules = settings.notify_rules()
    except HoldfastError as error:
        # They were fine when the task was made: somebody is editing them. The keeper knows those before.
        print(f"the keeper finds out who is told of {event}: {error}", file=sys.stderr, flush=True)
        rules = None
    if rules == []:
        return 0
    from holdfast.notify import outbox

    task, packet = ledger.task, ledger.packet
    # A move is told before it is journalled: then the event is the state to come.
    status = str(event if event in tuple(Status) else task.status)
    happened: dict[str, Any] = {
        "event": event,
        "task_id": task.spec.task_id,
        "task_name": ledger.redact(task.spec.task_name),
        "status": status,
        "reason": task.reason if reason is None else reason,
        "project_dir": task.spec.project_dir,
        "agent": task.attempt.agent if task.attempt is not None else task.spec.agent,
        "stage": task.stage,
        "packet": packet.path,
    }
    after = packet.task_done if status in ENDS else None
    posted = outbox.post(packet.home, rules, happened, ledger.redact, after=after)
    if posted:
        _see_to_a_keeper(ledger)
    return posted


def _see_to_a_keeper(ledger: Ledger) -> None:
    """The last runner of a home may be about to leave: then there has to be somebody who delivers."""
    from holdfast.spawn import ensure_keeper

    try:
        ensure_keeper(ledger.packet.home, by_person=False)
    except (OSError, HoldfastError):
        return  # the next keeper delivers it
