"""The tasks of a home as short manifests, newest first."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError, NotFound
from holdfast.model.status import ENDS, Status, newest_at
from holdfast.packet import runner_gone
from holdfast.packet.runner_gone import NEEDS_NONE
from holdfast.store import lock as locks
from holdfast.store import tail
from holdfast.store.index import Index
from holdfast.store.index_rows import read_row
from holdfast.store.layout import Home, runner_lock_in
from holdfast.views.text import amounts, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Ended tasks that are listed by default.
RECENT = 20


def tasks(home: Home, *, everything: bool, state: str | None, is_brief: bool = False) -> list[dict[str, Any]]:
    """Tasks that have not ended, the most recently ended ones and those that need you; all with `everything`
    or in one `state`, as it is shown: a task that is held in the queue is not `queued`.

    With `is_brief`, those that have not ended have only what a table shows.
    """
    if not os.path.isdir(home.tasks):
        return []
    is_all = everything or state is not None
    index = Index(home)
    try:
        live = index.brief() if is_brief else index.live()
        ended = index.ended(None) if is_all else _recently_ended(index)
    finally:
        index.close()
    return _rows(home, live, ended, state)


def recent(home: Home) -> tuple[list[dict[str, Any]], int]:
    """The tasks of `tasks` that are listed by default, those that have not ended with only what a table
    shows; and the number of the others: all of them have ended, and none needs you."""
    if not os.path.isdir(home.tasks):
        return [], 0
    index = Index(home)
    try:
        count = index.ended_count()
        live = index.brief()
        ended = _recently_ended(index)
    finally:
        index.close()
    # Those that have ended since are not among the counted ones.
    shown = {row["task_id"] for row in ended} - {row["task_id"] for row in live}
    return _rows(home, live, ended), max(0, count - len(shown))


def recent_and_others(home: Home) -> tuple[list[dict[str, Any]], set[str]]:
    """The tasks of `tasks` that are listed by default, and the ids of the others."""
    if not os.path.isdir(home.tasks):
        return [], set()
    index = Index(home)
    try:
        live, ended = index.live(), _recently_ended(index)
        ended_ids = index.ended_ids() if len(ended) >= RECENT else []
    finally:
        index.close()
    rows = _rows(home, live, ended)
    return rows, {*ended_ids} - {row["task_id"] for row in rows}


def _recently_ended(index: Index) -> list[dict[str, Any]]:
    return index.ended(RECENT) + index.to_look_at(describe.look_back_to())


def _rows(
    home: Home, live: list[dict[str, Any]], ended: list[dict[str, Any]], state: str | None = None
) -> list[dict[str, Any]]:
    # A task may have ended between the two queries: the later answer wins.
    found = {row["task_id"]: row for row in [*live, *ended]}
    rows = _newest_first(list(found.values()), Status.QUEUED if state in describe.HELD else state)
    if state == Status.QUEUED or state in describe.HELD:
        from holdfast.views.facts.queue_places import QueuePlaces  # few lists are only of these

        rows = [row for row in QueuePlaces(home).arrange(rows) if describe.state(row) == state]
    _mark_lost(home, rows)
    for row in rows:
        if row.get("labels"):
            packet = home.packet(row["task_id"])
            describe.mark_waiting_for_person(row, packet)
            describe.mark_left_out(row, packet)
    return rows


def one(home: Home, task_id: str) -> dict[str, Any]:
    """One task as in `tasks`, read from its packet: for a view that shows a change. Raises NotFound."""
    found = read_row(home, task_id)
    if found is None:
        raise NotFound(f"there is no task {task_id}")
    _mark_lost(home, [found[0]])
    describe.mark_waiting_for_person(found[0], home.packet(task_id))
    describe.mark_left_out(found[0], home.packet(task_id))
    return found[0]


#: What a view that shows many tasks needs of each.
_SHOWN = (
    "task_id", "task_name", "status", "agent", "stage", "stages", "project_dir", "started_at", "begun_at",
    "finished_at", "asked_s", "wake_at", "usage", "progress", "labels", "runner_gone", "queue",
)  # fmt: skip
_LINE_CHARS = 300


def shown(home: Home, row: dict[str, Any]) -> dict[str, Any]:
    """A row for a list in a view that does not know the texts: with state, group, note and last line. What
    is null is left out."""
    now = clock.now()
    interrupt: dict[str, Any] = row.get("interrupt") or {}
    return {
        **{name: value for name in _SHOWN if (value := row.get(name)) is not None},
        "state": describe.state(row),
        "group": describe.group(row),
        "elapsed_s": round(describe.elapsed_s(row, now), 3),
        "is_counting": row["status"] not in (*ENDS, Status.QUEUED, Status.WAITING, Status.INTERRUPTED),
        "is_approval": bool(interrupt.get("approval")),
        "note": note(row),
        "last_line": last_line(home.output_log_of(row["task_id"]), row, now)[:_LINE_CHARS],
    }


#: States in which the log is not the best answer.
_TOLD_BY_ROW = frozenset({Status.QUEUED, Status.WAITING, Status.INTERRUPTED, *ENDS})


def last_line(output_log: str, row: dict[str, Any], now: float, folder: int | None = None) -> str:
    """The question of a task that waits for a person, why and until when one waits or is queued, the agent's
    last words after its end or why it failed (for a command, with its last line), and otherwise the last line
    of output. Only that one reads a file.

    The path of the log may be relative to an open folder.
    """
    status = row["status"]
    if status not in _TOLD_BY_ROW:
        return describe.with_step(row, tail.last_line(output_log, folder))
    if status == Status.QUEUED:
        return _why_queued(row)
    if status == Status.WAITING and row.get("wake_at"):
        return f"until {amounts.hour(row['wake_at'])}: {describe.reason(row, now)}"
    if status == Status.INTERRUPTED and (interrupt := row.get("interrupt")):
        return str(interrupt.get("reason") or "")
    if status in ENDS:
        why = "" if status == Status.COMPLETED else row["status_reason"] or ""
        is_agent = row.get("last_words") or row["agent"] != "command"
        if why and (is_agent or status == Status.ABANDONED):
            return why  # what it said before explains less
        said = row.get("last_words") or describe.last_words(row, tail.last_line(output_log, folder))
        return ": ".join(part for part in (why, describe.without_headings(said)) if part)
    return describe.with_step(row, tail.last_line(output_log, folder))


#: What `note` tells of, besides a runner that is gone.
_NOTED = (
    "asking", "left_out", "waiting_for", "concerns", "denied", "applied", "denied_readers", "over_budget",
)  # fmt: skip


def _why_queued(row: dict[str, Any]) -> str:
    """Why it has not started, if its place in the queue is known (`queue_places`)."""
    place: dict[str, Any] = row.get("queue") or {}
    if not describe.is_held(row):
        return str(place.get("waits") or "")
    from holdfast.model import next_action  # few tasks are held

    held_by = place.get("held_by") or ""
    retry = next_action.for_manifest(row, queue_state=place["state"], held_by=held_by).steps[0]
    return f"{place['waits']}; {retry.as_hint()}"


def note(row: dict[str, Any]) -> str:
    """`[no runner] `, what the task waits for or what reviewers object to, before its last line."""
    if row["runner_gone"]:
        return "[no runner] "
    if not any(map(row.get, _NOTED)) and not describe.has_passed_before(row):
        return ""  # most tasks
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
            row = {**short(load.read_true(home.archived(task_id))), "runner_gone": False}
            describe.mark_left_out(row, home.archived(task_id))
            rows.append(row)
        except HoldfastError:
            continue
    return _newest_first(rows, state)


def _newest_first(rows: list[dict[str, Any]], state: str | None) -> list[dict[str, Any]]:
    rows = [row for row in rows if state is None or row["status"] == state]
    return sorted(rows, key=lambda row: (newest_at(row), row["task_id"]), reverse=True)


def _mark_lost(home: Home, rows: list[dict[str, Any]]) -> None:
    """Set `runner_gone`: whether a task should have a runner and has none; None if that is unknown."""
    need_one: list[dict[str, Any]] = []
    for row in rows:
        row["runner_gone"] = False
        if row["status"] not in NEEDS_NONE:
            need_one.append(row)
    held = locks.held_among(home.tasks, [runner_lock_in(row["task_id"]) for row in need_one])
    if len(held) == len(need_one):
        return
    for row in need_one:
        if runner_lock_in(row["task_id"]) not in held:
            row["runner_gone"] = runner_gone.for_display(home.packet(row["task_id"]), row["status"])
