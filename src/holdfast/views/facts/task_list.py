"""The tasks of a home as short manifests, newest first."""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError
from holdfast.model.status import ENDS
from holdfast.store import lock as locks
from holdfast.store.index import Index
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Ended tasks that are listed by default.
RECENT = 20


def tasks(home: Home, *, everything: bool, state: str | None) -> list[dict[str, Any]]:
    """Tasks that have not ended and the most recently ended ones; all with `everything` or in one `state`."""
    if not os.path.isdir(home.tasks):
        return []
    index = Index(home)
    try:
        live = index.live()
        ended = index.ended(None if everything or state is not None else RECENT)
    finally:
        index.close()
    # A task may have ended between the two queries: the later answer wins.
    rows = list({row["task_id"]: row for row in [*live, *ended]}.values())
    rows = _newest_first(rows, state)
    for row in rows:
        row["runner_gone"] = row["status"] not in ENDS and _is_runner_gone(home, row)
    return rows


def archived(home: Home, *, state: str | None) -> list[dict[str, Any]]:
    """Archived tasks; unreadable ones are skipped."""
    from holdfast.packet import load
    from holdfast.store.index import short

    rows: list[dict[str, Any]] = []
    for task_id in load.archived_ids(home):
        try:
            rows.append({**short(load.read_manifest(home.archived(task_id))), "runner_gone": False})
        except HoldfastError:
            continue
    return _newest_first(rows, state)


def _newest_first(rows: list[dict[str, Any]], state: str | None) -> list[dict[str, Any]]:
    rows = [row for row in rows if state is None or row["status"] == state]
    return sorted(rows, key=lambda row: (row["started_at"] or "", row["task_id"]), reverse=True)


def _is_runner_gone(home: Home, row: dict[str, Any]) -> bool | None:
    from holdfast.packet import runner_gone  # only for tasks that have not ended

    try:
        if locks.is_held(home.runner_lock_of(row["task_id"])):
            return False
    except HoldfastError:
        pass  # asked again below
    return runner_gone.for_display(home.packet(row["task_id"]), row["status"])
