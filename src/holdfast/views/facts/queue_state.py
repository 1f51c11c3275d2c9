"""The queue of a home, for views: its items in order, why each waits, and what holds up all of them."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.queue import schedule
from holdfast.queue.local import LocalQueue
from holdfast.store.layout import Home
from holdfast.views.facts import task_list
from holdfast.views.text import queue_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.queue.engine import Item

#: Items that are listed; the rest is counted.
MAX_ITEMS = 500
#: Steps of the series of waiting tasks, newest.
MAX_STEPS = 1000


def gather(home: Home, *, since_s: float) -> dict[str, Any]:
    """The queue of now, and how many tasks waited in it during the last `since_s` seconds."""
    items, paused, problem = _items(home)
    rows = task_list.tasks(home, everything=True, state=None)
    names = {row["task_id"]: row["task_name"] for row in rows}
    try:
        schedules = [schedule.summary(each) for each in schedule.read_all(home)]
    except HoldfastError as error:
        schedules, problem = [], problem or str(error)
    shown = [
        {**item.to_json(), "task_name": names.get(item.task_id, ""), "waits": why}
        for item, why in items[:MAX_ITEMS]
    ]
    counts: dict[str, int] = {}
    for item, _ in items:
        counts[item.state] = counts.get(item.state, 0) + 1
    return {
        "at": clock.iso_now(),
        "items": shown,
        "left_out": max(0, len(items) - MAX_ITEMS),
        "counts": counts,
        "paused": paused,
        "schedules": schedules,
        "obstacles": [
            *([problem] if problem else []),
            *queue_reason.obstacles(home, [item for item, _ in items], paused),
        ],
        "waiting": waiting(rows, clock.iso(clock.now() - since_s)),
    }


def _items(home: Home) -> tuple[list[tuple[Item, str]], list[str], str]:
    """Items with what each waits for, the paused pools, and what is wrong with the queue."""
    if not os.path.exists(home.queue):
        return [], [], ""
    try:
        with LocalQueue(home, reads_only=True) as queue:
            paused, holds = queue.paused(), queue_reason.read_holds(home)
            return [(item, queue_reason.reason(item, paused, holds)) for item in queue.items()], paused, ""
    except HoldfastError as error:
        return [], [], str(error)


def waiting(rows: Iterable[dict[str, Any]], since: str) -> list[dict[str, Any]]:
    """How many tasks waited in the queue, at each time at which that changed. Pure."""
    steps: list[tuple[str, int]] = []
    for row in rows:
        begun_at, is_queued = row.get("begun_at"), row["status"] == "queued"
        # One that ended in the queue is left out: nothing says when it left it.
        if row.get("started_at") and (begun_at or is_queued):
            steps.append((str(row["started_at"]), 1))
            if not is_queued:
                steps.append((str(begun_at), -1))
    series: list[dict[str, Any]] = []
    count = 0
    for at, change in sorted(steps):
        count += change
        if at < since:
            series = [{"at": since, "count": count}]
        elif series and series[-1]["at"] == at:
            series[-1] = {"at": at, "count": count}
        else:
            series.append({"at": at, "count": count})
    if series and series[0]["at"] > since:
        series.insert(0, {"at": since, "count": 0})
    return series[-MAX_STEPS:]
