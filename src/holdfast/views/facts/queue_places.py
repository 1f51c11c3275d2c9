"""The places of queued tasks: their order, why each waits, and what holds up the queue."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.status import Status
from holdfast.views.text import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.queue.engine import Item
    from holdfast.store.layout import Home


class QueuePlaces:
    """What the queue says about tasks. Read again when `is_outdated`."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._stamps: object = None
        #: By task: `position` (from 1), `state` of its item, what it `waits` for, and `held_by`, if a failed
        #: task holds it.
        self._of: dict[str, dict[str, Any]] = {}
        #: Sentences about what keeps queued tasks from starting.
        self.obstacles: list[str] = []

    @property
    def is_outdated(self) -> bool:
        """Whether the queue or the keeper's state changed since `read`."""
        return self._stamps != self._now()

    def note(self) -> None:
        """What has changed up to now is known."""
        self._stamps = self._now()

    def read(self) -> None:
        """Read the queue. One that cannot be read says nothing; `status` reports it."""
        self.note()
        self._of, self.obstacles = {}, []
        if not os.path.exists(self._home.queue):
            return
        from holdfast.queue.local import LocalQueue  # only for homes with queued tasks
        from holdfast.views.text import queue_reason

        try:
            with LocalQueue(self._home, reads_only=True) as queue:
                items, paused = queue.items(), queue.paused()
        except HoldfastError:
            return
        waiting = in_order([item for item in items if item.state != "claimed"])
        holds = queue_reason.read_holds(self._home)
        for position, item in enumerate(waiting, 1):
            why = queue_reason.reason(item, paused, holds)
            self._of[item.task_id] = {"position": position, "state": item.state, "waits": why}
            if on_id := queue_reason.held_by(self._home, item):
                self._of[item.task_id]["held_by"] = on_id
        self.obstacles = queue_reason.obstacles(self._home, waiting, paused)

    @property
    def held(self) -> dict[str, str]:
        """The tasks that only a person can let start, as far as the queue was read, and their states."""
        return {
            task_id: place["state"] for task_id, place in self._of.items() if place["state"] in describe.HELD
        }

    def arrange(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The same rows, of which the queued ones have their place and are in the order in which they will
        start. Reads the queue, if there are any."""
        if not any(row["status"] == Status.QUEUED for row in rows):
            self.note()
            self.obstacles = []
            return rows
        self.read()
        for row in rows:
            self.put(row)
        left_out = [row["task_id"] for row in rows if row["status"] == Status.QUEUED and not row["queue"]]
        self.obstacles += self._objections(left_out)
        queued = iter(sorted((row for row in rows if row["status"] == Status.QUEUED), key=order))
        return [next(queued) if row["status"] == Status.QUEUED else row for row in rows]

    def _objections(self, task_ids: list[str]) -> list[str]:
        """Why the queue does not take these tasks, for the first of those that it never takes."""
        if not task_ids:
            return []
        from holdfast.store import admitted

        packets = map(self._home.packet, task_ids)
        unknown = next((packet for packet in packets if not admitted.is_admitted(packet)), None)
        return [admitted.objection(unknown)] if unknown is not None else []

    def moved(self) -> set[str]:
        """The tasks whose place changed since it was read last. Reads the queue, if that changed."""
        if not self.is_outdated:
            return set()
        before = self._of
        self.read()
        return {task for task in before.keys() | self._of.keys() if before.get(task) != self._of.get(task)}

    def put(self, row: dict[str, Any]) -> None:
        """Give the row of a queued task its place as `queue`; null if the queue does not have it (yet)."""
        is_queued = row["status"] == Status.QUEUED
        row["queue"] = self._of.get(row["task_id"]) if is_queued else None

    def _now(self) -> object:
        home = self._home
        files = (home.queue, f"{home.queue}-wal", home.loop, home.interrupt_request, home.down)
        return [_stamp(path) for path in files]


def held(home: Home) -> dict[str, str]:
    """The tasks that the queue does not start by itself, and their states in it."""
    places = QueuePlaces(home)
    places.read()
    return places.held


def in_order(items: list[Item]) -> list[Item]:
    """Items of the queue, which are sorted by priority, in the order in which they will start. Those that
    have started come first."""
    return sorted(items, key=lambda item: (-1, "") if item.state == "claimed" else _start(item))


def _start(item: Item) -> tuple[int, str]:
    """Sorts items of the queue, which are sorted by priority, by when they can start: now, after other tasks,
    at a time, or never by themselves."""
    if item.state != "queued":
        return 3, ""
    if item.not_before is not None and clock.parse_iso(item.not_before) > clock.now():
        return 2, item.not_before
    return (1, "") if item.waits_for else (0, "")


def order(row: dict[str, Any]) -> tuple[float, str, str]:
    """Sorts queued tasks by when they will start; those that are not in the queue yet come last."""
    place: dict[str, Any] = row.get("queue") or {}
    return place.get("position") or float("inf"), row.get("started_at") or "", row["task_id"]


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)
