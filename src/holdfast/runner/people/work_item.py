"""The work item of a task: where it stands, in `state/work.json` and in the manifest.

The steps are the agent's to tell: by writing that file, or by a to-do list of its CLI's that its reader understands. What was said
last counts. Whatever holdfast writes holds it, so that the file is never newer than what it says.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model import manifest
from holdfast.model.attempt import Attempt
from holdfast.packet import work_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.runner.ledger import Ledger


def look(ledger: Ledger) -> None:
    """See what the file says, for the manifest; and bring it up to date, where there is a work item."""
    _read(ledger)
    if (
        ledger.task.spec.work
        and manifest.progress(ledger.task, ledger.observed) != ledger.observed.file_progress
    ):
        _put(ledger)


def assign(ledger: Ledger, attempt: Attempt) -> None:
    """An attempt works on it now."""
    if ledger.task.spec.work:
        started = attempt.started.started_at if attempt.started is not None else None
        _put(ledger, status="in_progress", assigned_session=attempt.attempt_id, started_at=started)


def close(ledger: Ledger) -> None:
    """The task has ended."""
    if ledger.task.spec.work or os.path.exists(ledger.packet.work):
        _put(ledger, status=str(ledger.task.status))
    _read(ledger)


def _read(ledger: Ledger) -> None:
    """Steps done, of, and the present one, and when that was written; None where the file says nothing of them."""
    path, observed = ledger.packet.work, ledger.observed
    try:
        observed.file_progress_at = clock.iso(os.lstat(path).st_mtime)
    except OSError:
        observed.file_progress = None
        return
    item = work_file.read(ledger.packet)
    found: dict[str, Any] = item["progress"] if item is not None else {}
    if found.get("current_step") is not None:
        found = {**found, "current_step": ledger.redact(found["current_step"])}
    observed.file_progress = found if any(value is not None for value in found.values()) else None


def _put(ledger: Ledger, **known: str | None) -> None:
    spec = ledger.task.spec
    known = {"id": str(spec.work.get("id") or spec.task_id), "last_updated": clock.iso_now(), **known}
    _read(ledger)
    item = work_file.merge(work_file.read(ledger.packet), **known)
    said_last = manifest.progress(ledger.task, ledger.observed)
    try:
        work_file.write(ledger.packet, item if said_last is None else {**item, "progress": said_last})
    except (OSError, HoldfastError):
        return  # for people; the journal has what matters
