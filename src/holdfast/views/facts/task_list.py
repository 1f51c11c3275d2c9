"""The tasks of a home as short manifests, newest first."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError, NotFound
from holdfast.model.status import ENDS, Status
from holdfast.store import lock as locks
from holdfast.store import tail
from holdfast.store.index import Index
from holdfast.store.index_rows import read_row
from holdfast.store.layout import Home
from holdfast.views.text import amounts, describe

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


def one(home: Home, task_id: str) -> dict[str, Any]:
    """One task as in `tasks`, read from its packet: for a view that shows a change. Raises NotFound."""
    found = read_row(home, task_id)
    if found is None:
        raise NotFound(f"there is no task {task_id}")
    row = found[0]
    row["runner_gone"] = row["status"] not in ENDS and _is_runner_gone(home, row)
    return row


#: What a view that shows many tasks needs of each.
_SHOWN = (
    "task_id", "task_name", "status", "agent", "stage", "stages", "project_dir", "started_at", "begun_at",
    "finished_at", "asked_s", "wake_at", "usage", "progress", "labels", "runner_gone",
)  # fmt: skip
_LINE_CHARS = 300


def shown(home: Home, row: dict[str, Any]) -> dict[str, Any]:
    """A row for a list in a view that does not know the texts: with state, group, note and last line."""
    now = clock.now()
    interrupt: dict[str, Any] = row.get("interrupt") or {}
    return {
        **{name: row.get(name) for name in _SHOWN},
        "state": describe.state(row),
        "group": describe.group(row),
        "elapsed_s": round(describe.elapsed_s(row, now), 3),
        "is_counting": row["status"] not in (*ENDS, Status.QUEUED, Status.INTERRUPTED),
        "is_approval": bool(interrupt.get("approval")),
        "note": note(row),
        "last_line": last_line(home.output_log_of(row["task_id"]), row, now)[:_LINE_CHARS],
    }


def last_line(output_log: str, row: dict[str, Any], now: float) -> str:
    """The question of a task that waits for a person, why and until when one waits, the agent's last words
    after its end, and otherwise the last line of output. Only that one reads a file."""
    status = row["status"]
    if status == Status.QUEUED:
        return ""
    if status == Status.WAITING and row.get("wake_at"):
        return f"until {amounts.minute(row['wake_at'])}: {describe.reason(row, now)}"
    if status == Status.INTERRUPTED and (interrupt := row.get("interrupt")):
        return str(interrupt.get("reason") or "")
    if status in ENDS:
        said = row.get("last_words") or describe.last_words(row, tail.last_line(output_log))
        return said or ("" if status == Status.COMPLETED else row["status_reason"] or "")
    return describe.with_step(row, tail.last_line(output_log))


def note(row: dict[str, Any]) -> str:
    """`[no runner] `, what the task waits for or what reviewers object to, before its last line."""
    if row["runner_gone"]:
        return "[no runner] "
    told = (describe.concerns(row), describe.remarks(row))
    found = describe.waiting_for(row) or "; ".join(part for part in told if part)
    return f"[{found}] " if found else ""


def archived(home: Home, *, state: str | None) -> list[dict[str, Any]]:
    """Archived tasks; unreadable ones are skipped."""
    from holdfast.packet import load
    from holdfast.store.index_rows import short

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
