"""Bringing the queue in line with the packets, which are the truth: a submit may have died halfway, a task may have ended
while nobody looked, the database may be new."""

from __future__ import annotations

import os

from holdfast.errors import CorruptFile, HoldfastError
from holdfast.model.status import ENDS, PARKED, Status
from holdfast.packet import load
from holdfast.queue import order, owner
from holdfast.queue.engine import Item
from holdfast.queue.local import LocalQueue
from holdfast.store import atomic
from holdfast.store.index import Index
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import TaskSpec
    from holdfast.queue.engine import Dependencies, Engine

#: The owner of a claim that nobody remembers, though the packet's task runs.
_BY_PACKET = "packet"
#: A packet is there, and nothing can be read of it: a person has to look, and nothing is concluded from it.
UNREADABLE = "unreadable"


def open_queue(home: Home, *, reads_only: bool = False) -> LocalQueue:
    """The queue of a home, in line with its packets. Raises StorageError."""
    try:
        queue = LocalQueue(home, reads_only=reads_only)
        sync(home, queue)
    except CorruptFile:
        queue = LocalQueue(home, reads_only=reads_only)  # it was put aside just now: this one is new
        sync(home, queue)
    return queue


def sync(home: Home, engine: Engine, *, counts_ends: bool = False) -> None:
    """Add queued packets that the queue lacks, take out what has ended or is gone, settle what others wait for.

    With `counts_ends`, as the keeper asks, rows of tasks that ended under a claim stay: it counts them before they go."""
    # The packets first: a row is claimed before its packet leaves `queued`, so a row that is read later is never behind.
    index = Index(home)
    try:
        live = {row["task_id"]: row for row in index.live()}
    finally:
        index.close()
    items, has_new = {item.task_id: item for item in engine.items()}, False
    for task_id, row in sorted(live.items(), key=lambda pair: (pair[1]["started_at"] or "", pair[0])):
        if task_id not in items and row["status"] == Status.QUEUED:
            # Its turn may have come and ended before any attempt: a look at what it needs found something missing.
            has_run = bool(row["attempt"] or row["begun_at"])
            item = item_of(home.packet(task_id), has_run=has_run)
            if item is not None:
                has_new = engine.add(item) or has_new
    if has_new:
        items = {item.task_id: item for item in engine.items()}
    for task_id, item in items.items():
        status = live[task_id]["status"] if task_id in live else None
        _follow(home, engine, item, status, counts_ends=counts_ends)
    _settle_waits(home, engine, [item for item in items.values() if item.waits_for])


def _settle_waits(home: Home, engine: Dependencies, waiting: list[Item]) -> None:
    """Who waits for what: it has ended or is gone, it came (back) after all, or it waits for the waiting one itself."""
    _, circles = order.dependencies_first({item.task_id: item.waits_for for item in waiting})
    closed = {(circle[0], circle[1 % len(circle)]): order.words(circle) for circle in circles}
    status = {on_id: status_of(home, on_id) for item in waiting for on_id in item.waits_for}
    for on_id, found in status.items():
        if found is None or found in ENDS:
            engine.settle(on_id, found or "gone")
    for item in waiting:
        for on_id in item.waits_for:
            if (item.task_id, on_id) in closed and item.state == "queued":
                engine.hold(item.task_id, on_id, closed[item.task_id, on_id])
            elif (
                item.state == "held"
                and status[on_id] not in (None, *ENDS)
                and (item.task_id, on_id) not in closed
            ):
                engine.expect(item.task_id, on_id)


def settle_strangers(home: Home, engine: Dependencies) -> None:
    """Some task has ended: settle it, where somebody waits for it and it never was the queue's."""
    for on_id in engine.strangers():
        status = status_of(home, on_id)
        if status is None or status in ENDS:
            engine.settle(on_id, status or "gone")


def _follow(home: Home, engine: Engine, item: Item, status: str | None, *, counts_ends: bool) -> None:
    """The row of one task, as its packet says."""
    # Four possibilities: (1) it waits, and so does its row, or its row is claimed and its runner about to start;
    # (2) it has ended or is gone; (3) it is interrupted and needs no slot; (4) it runs, and the claim is known or not.
    if status not in (Status.QUEUED, UNREADABLE):
        # Once more, behind the row: between the two reads it may have been resumed, and claimed anew.
        status = status_of(home, item.task_id)
    if status == UNREADABLE:
        return
    if status is None or status in ENDS:
        if status is None or not _is_counted_by_keeper(home, item, counts_ends=counts_ends):
            engine.ack(item.task_id, owner=item.claimed_by, status=status or "gone")
    elif status != Status.QUEUED and (status in PARKED or not _is_claimed(engine, item)):
        engine.ack(item.task_id, owner=item.claimed_by)


def _is_counted_by_keeper(home: Home, item: Item, *, counts_ends: bool) -> bool:
    """Whether an ended task's row is the keeper's to take out, which counts the end first. Others than the keeper leave that
    of a dead one only until the task's last file is there."""
    if item.state != "claimed" or owner.is_outside(item.claimed_by):
        return False
    return (
        counts_ends
        or owner.is_alive(item.claimed_by)
        or not os.path.exists(load.wherever(home.packet(item.task_id)).task_done)
    )


def _is_claimed(engine: Engine, item: Item) -> bool:
    if item.state == "claimed" or engine.claim(_BY_PACKET, task_id=item.task_id) is not None:
        return True
    return any(found.state == "claimed" for found in engine.items(item.task_id))


def item_of(packet: Packet, *, has_run: bool) -> Item | None:
    """The item of a queued packet; None when it is not queued, or cannot be read. One that has run before goes first, and
    waits for nobody: what it is after was done then, whatever has become of it since."""
    try:
        task = load.fold(packet)
    except HoldfastError:
        return None
    if task.status != Status.QUEUED:
        return None
    item = item_for(task.spec, added_at=task.created_at, front=has_run, done=completed_before(packet))
    return item.evolve(after=()) if has_run else item


def completed_before(packet: Packet) -> frozenset[str]:
    """Tasks that it is after, and that were completed before they were removed."""
    try:
        return frozenset((atomic.read_json(packet.after) or {}).get("completed") or ())
    except (CorruptFile, TypeError):
        return frozenset()


def item_for(
    spec: TaskSpec, *, added_at: str = "", front: bool = False, done: frozenset[str] = frozenset()
) -> Item:
    """The item of a task as asked for; nobody has to wait for what is done."""
    asked = spec.queue
    if asked is None:
        return Item(task_id=spec.task_id, agent=spec.agent, added_at=added_at, front=front)
    return Item(
        task_id=spec.task_id,
        agent=spec.agent,
        priority=asked.priority,
        pool=asked.pool,
        after=tuple(on_id for on_id in asked.after if on_id not in done),
        not_before=asked.not_before,
        added_at=added_at,
        front=front,
    )


def is_known(home: Home, task_id: str) -> bool:
    """Whether there is a task of this id, archived or not."""
    return os.path.isdir(home.packet(task_id).path) or os.path.isdir(home.archived(task_id).path)


def status_of(home: Home, task_id: str) -> str | None:
    """What a task is doing, archived or not; None when there is none, UNREADABLE where nobody can tell."""
    for packet in (home.packet(task_id), home.archived(task_id)):
        if os.path.isdir(packet.path):
            try:
                return str(load.read_manifest(packet)["status"])
            except (HoldfastError, KeyError, ValueError):
                return UNREADABLE
    return None
