"""The work item of a task: where it stands, in `state/work.json` and in the manifest. The steps are the agent's to tell."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.lane import Attempt
from holdfast.packet import work
from holdfast.runner.ledger import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def progress(ledger: Ledger) -> dict[str, Any] | None:
    """Steps done, of, and the present one; None where the agent says nothing."""
    item = work.read(ledger.packet) if os.path.exists(ledger.packet.work) else None
    if item is None:
        return None
    found: dict[str, Any] = item["progress"]
    if found["current_step"] is not None:
        found = {**found, "current_step": ledger.redact(found["current_step"])}
    return found if any(value is not None for value in found.values()) else None


def assign(ledger: Ledger, attempt: Attempt) -> None:
    """An attempt works on it now."""
    if ledger.task.spec.work:
        started = attempt.started.started_at if attempt.started is not None else None
        _put(ledger, status="in_progress", assigned_session=attempt.attempt_id, started_at=started)


def close(ledger: Ledger) -> None:
    """The task has ended."""
    if ledger.task.spec.work or os.path.exists(ledger.packet.work):
        _put(ledger, status=str(ledger.task.status))


def _put(ledger: Ledger, **known: str | None) -> None:
    spec = ledger.task.spec
    known = {"id": str(spec.work.get("id") or spec.task_id), "last_updated": clock.iso_now(), **known}
    try:
        work.write(ledger.packet, work.merge(work.read(ledger.packet), **known))
    except (OSError, HoldfastError):
        return  # for people; the journal has what matters
