"""The work item of a task: its status and progress, in `state/work.json` and in the manifest.

The agent reports steps by writing that file, or in a to-do list of its CLI. The latest report counts.
holdfast always writes the latest progress, so the file is never newer than its content.
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


def update_progress(ledger: Ledger) -> None:
    """Read the progress from the file for the manifest; update the file if the task has a work item."""
    _read(ledger)
    if (
        ledger.task.spec.work
        and manifest.progress(ledger.task, ledger.observed) != ledger.observed.file_progress
    ):
        _put(ledger)


def assign(ledger: Ledger, attempt: Attempt) -> None:
    """Record that an attempt works on the item."""
    if ledger.task.spec.work:
        started = attempt.started.started_at if attempt.started is not None else None
        _put(ledger, status="in_progress", assigned_session=attempt.attempt_id, started_at=started)


def close(ledger: Ledger) -> None:
    """Record the end of the task."""
    if ledger.task.spec.work or os.path.exists(ledger.packet.work):
        # An agent may have written the file unasked; then it does not say who works on it.
        _put(ledger, status=str(ledger.task.status), **_worker(ledger))
    _read(ledger)


def _worker(ledger: Ledger) -> dict[str, str | None]:
    """The last attempt, and when it started."""
    attempt = ledger.task.attempt
    if attempt is None or attempt.started is None:
        return {}
    return {"assigned_session": attempt.attempt_id, "started_at": attempt.started.started_at}


def _read(ledger: Ledger) -> None:
    """Read progress and its time from the file; the progress is None if the file has none."""
    path, observed = ledger.packet.work, ledger.observed
    try:
        observed.file_progress_at = clock.iso(os.lstat(path).st_mtime)
    except OSError:
        observed.file_progress = None
        return
    item = work_file.read(ledger.packet)
    progress: dict[str, Any] = item["progress"] if item is not None else {}
    if progress.get("current_step") is not None:
        progress = {**progress, "current_step": ledger.redact(progress["current_step"])}
    observed.file_progress = progress if any(value is not None for value in progress.values()) else None


def _put(ledger: Ledger, **known: str | None) -> None:
    spec = ledger.task.spec
    known = {"id": str(spec.work.get("id") or spec.task_id), "last_updated": clock.iso_now(), **known}
    _read(ledger)
    item = work_file.merge(work_file.read(ledger.packet), **known)
    latest = manifest.progress(ledger.task, ledger.observed)
    try:
        work_file.write(ledger.packet, item if latest is None else {**item, "progress": latest})
    except (OSError, HoldfastError):
        return  # informational; the journal has the facts
