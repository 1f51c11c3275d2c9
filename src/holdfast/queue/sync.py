"""Update the queue from the packets, which are the source of truth.

A submit may have died halfway, a task may have ended unnoticed, or the database may be new.
"""

from __future__ import annotations

import os

from holdfast import clock, ids
from holdfast.errors import CorruptFile, HoldfastError
from holdfast.model import status
from holdfast.model.soundness import UNREADABLE
from holdfast.model.status import ENDS, PARKED, Status
from holdfast.packet import load
from holdfast.queue import claim_owner, dependency_order
from holdfast.queue.engine import Item
from holdfast.queue.local import LocalQueue
from holdfast.store import admitted
from holdfast.store.index import Index
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import TaskSpec
    from holdfast.model.task import Task
    from holdfast.queue.engine import Dependencies, Engine

#: The owner of a claim that is unknown, although the task is running.
_BY_PACKET = "packet"


def open_queue(home: Home, *, reads_only: bool = False) -> LocalQueue:
    """Open the queue of a home and update it from the packets. Raises StorageError."""
    try:
        queue = LocalQueue(home, reads_only=reads_only)
        sync(home, queue)
    except CorruptFile:
        queue = LocalQueue(home, reads_only=reads_only)  # the corrupt one was renamed; this one is new
        sync(home, queue)
    return queue


def sync(home: Home, engine: Engine, *, counts_ends: bool = False) -> None:
    """Add missing queued packets, remove ended and missing ones, update dependencies.

    With `counts_ends` (the keeper), rows of tasks that ended while claimed stay: the keeper counts them
    first.
    """
    # Read the packets first: a row is claimed before its packet leaves `queued`, so rows that are read later
    # are newer.
    index = Index(home)
    try:
        live = {row["task_id"]: row for row in index.live()}
    finally:
        index.close()
    items, has_new = {item.task_id: item for item in engine.items()}, False
    for task_id, row in sorted(live.items(), key=lambda pair: (pair[1]["started_at"] or "", pair[0])):
        if task_id not in items and row["status"] == Status.QUEUED:
            # It may have started and stopped before any attempt, because the preflight check failed.
            has_run = bool(row["attempt"] or row["begun_at"])
            item = item_of(home.packet(task_id), has_run=has_run)
            if item is not None:
                has_new = engine.add(item) or has_new
    if has_new:
        items = {item.task_id: item for item in engine.items()}
    for task_id, item in items.items():
        status = live[task_id]["status"] if task_id in live else None
        _update_row(home, engine, item, status, counts_ends=counts_ends)
    _update_waits(home, engine, [item for item in items.values() if item.waits_for])


def _update_waits(home: Home, engine: Dependencies, waiting: list[Item]) -> None:
    """Update dependencies: ended or missing ones, ones that came (back) after all, and cycles."""
    _, cycles = dependency_order.dependencies_first({item.task_id: item.waits_for for item in waiting})
    closed = {(cycle[0], cycle[1 % len(cycle)]): dependency_order.cycle_text(cycle) for cycle in cycles}
    status = {on_id: status_of(home, on_id) for item in waiting for on_id in item.waits_for}
    for on_id, ended in status.items():
        if ended is None or ended in ENDS:
            engine.task_ended(on_id, ended or "gone")
    for item in waiting:
        for on_id in item.waits_for:
            if (item.task_id, on_id) in closed and item.state == "queued":
                engine.hold(item.task_id, on_id, closed[item.task_id, on_id])
            elif (
                item.state == "held"
                and status[on_id] not in (None, *ENDS)
                and (item.task_id, on_id) not in closed
            ):
                engine.unhold(item.task_id, on_id)


def check_outside_dependencies(home: Home, engine: Dependencies) -> None:
    """Update dependencies that are not in the queue and have ended."""
    for on_id in engine.outside_dependencies():
        status = status_of(home, on_id)
        if status is None or status in ENDS:
            engine.task_ended(on_id, status or "gone")


def _update_row(home: Home, engine: Engine, item: Item, status: str | None, *, counts_ends: bool) -> None:
    """Update the row of one task from its packet."""
    if status not in (Status.QUEUED, UNREADABLE):
        # Read again after the row: in between, it may have been resumed and claimed again.
        status = status_of(home, item.task_id)
    if status in (Status.QUEUED, UNREADABLE):
        return  # its row is queued as well, or claimed because a runner is about to start
    if status is None:
        engine.ack(item.task_id, owner=item.claimed_by, status="gone")
    elif status in ENDS:
        if not _is_counted_by_keeper(home, item, counts_ends=counts_ends):
            engine.ack(item.task_id, owner=item.claimed_by, status=status)
    elif status in PARKED or not _ensure_claim(engine, item):
        engine.ack(item.task_id, owner=item.claimed_by)  # interrupted: it needs no slot


def _is_counted_by_keeper(home: Home, item: Item, *, counts_ends: bool) -> bool:
    """Whether the keeper must remove the row of an ended task, because it counts the end first.

    Others leave the row of a dead keeper only until the task's last file is written.
    """
    if item.state != "claimed" or claim_owner.is_external(item.claimed_by):
        return False
    return (
        counts_ends
        or claim_owner.is_alive(item.claimed_by)
        or not os.path.exists(load.wherever(home.packet(item.task_id)).task_done)
    )


def _ensure_claim(engine: Engine, item: Item) -> bool:
    """Claim the row of a running task unless it is claimed. Returns whether it is claimed now."""
    if item.state == "claimed" or engine.claim(_BY_PACKET, task_id=item.task_id) is not None:
        return True
    return any(claimed.state == "claimed" for claimed in engine.items(item.task_id))


def item_of(packet: Packet, *, has_run: bool) -> Item | None:
    """The item of a queued packet; None if it is not queued or not readable.

    A task that has run before goes first and has no dependencies: they were met then.
    """
    try:
        task = load.fold(packet)
    except HoldfastError:
        return None
    if not admitted.is_admitted(packet):
        return None  # `status` tells
    if task.status != Status.QUEUED:
        return None
    item = item_for(task.spec, added_at=task.created_at, front=has_run, done=_met(packet, task.spec))
    return item.evolve(after=()) if has_run else item


def note_met(packet: Packet, on_id: str) -> None:
    """A dependency needs no more attention: it is about to be removed and had completed, or a person lets the
    task run without it. Raises StorageError."""
    admitted.note(packet, admitted.Kind.DEPENDENCY_MET, on_id)


def _met(packet: Packet, spec: TaskSpec) -> frozenset[str]:
    after = () if spec.queue is None else spec.queue.after
    return frozenset(
        on_id for on_id in after if admitted.is_noted(packet, admitted.Kind.DEPENDENCY_MET, on_id)
    )


def too_early(home: Home, task: Task) -> str:
    """Why a queued task may not start yet, by the journals: an agent can write in the database. Empty if it
    may, or has run before."""
    spec = task.spec
    if spec.queue is None or task.begun_at is not None:
        return ""
    if spec.queue.not_before is not None and clock.parse_iso(spec.queue.not_before) > clock.now():
        return f"it may not start before {spec.queue.not_before}"
    met = _met(home.packet(spec.task_id), spec) if spec.queue.after else ()
    left = (on_id for on_id in spec.queue.after if on_id not in met)
    return next((f"{on_id} has not completed" for on_id in left if status_of(home, on_id) != "completed"), "")


def item_for(
    spec: TaskSpec, *, added_at: str = "", front: bool = False, done: frozenset[str] = frozenset()
) -> Item:
    """The item of a new task, without dependencies that are done."""
    queue = spec.queue
    if queue is None:
        return Item(task_id=spec.task_id, agent=spec.agent, added_at=added_at, front=front)
    return Item(
        task_id=spec.task_id,
        agent=spec.agent,
        priority=queue.priority,
        pool=queue.pool,
        after=tuple(on_id for on_id in queue.after if on_id not in done),
        not_before=queue.not_before,
        added_at=added_at,
        front=front,
    )


def is_known(home: Home, task_id: str) -> bool:
    """Whether a task with this id exists, archived or not."""
    return os.path.isdir(home.packet(task_id).path) or os.path.isdir(home.archived(task_id).path)


def uses_slot(home: Home, task_id: str) -> bool:
    """Whether a claimed task uses its slot. One that cannot be read may work."""
    if status_of(home, task_id) not in (Status.WAITING, Status.INTERRUPTED):
        return True
    try:
        return status.uses_slot(load.read_manifest(home.packet(task_id)))
    except HoldfastError:
        return True


def status_of(home: Home, task_id: str) -> str | None:
    """The status of a task, archived or not; None if there is none.

    UNREADABLE if it cannot be read, or shows an end that the journal does not have: nothing is concluded from
    that.
    """
    if not ids.is_safe_name(task_id, 64):
        return None  # no command wrote this row
    for packet in (home.packet(task_id), home.archived(task_id)):
        if os.path.isdir(packet.path):
            try:
                status = str(load.read_manifest(packet)["status"])
            except (HoldfastError, KeyError, ValueError):
                return UNREADABLE
            return status if status not in ENDS or load.has_ended_as(packet, status) else UNREADABLE
    return None
