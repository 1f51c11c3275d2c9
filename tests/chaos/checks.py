"""Invariants that hold after the kills."""

from __future__ import annotations

import collections
import itertools
import os
import time

from holdfast.model import events as ev
from holdfast.packet import load
from holdfast.queue import sync
from holdfast.store import journal
from tests.chaos.world import ENDS, World
from tests.support import processes


def all_of(world: World, count: int) -> list[str]:
    """All violations."""
    faults = [] if len(load.task_ids(world.home)) == count else ["tasks were lost"]
    for task_id in load.task_ids(world.home):
        faults += [f"{task_id}: {fault}" for fault in _of_task(world, task_id)]
    # Synchronized with the packets, as the next keeper does: this one may have been asked to leave before
    # it could.
    with sync.open_queue(world.home) as queue:
        faults += [f"{item.task_id} is still in the queue: {item.state}" for item in queue.items()]
    return faults + _left(world)


def _of_task(world: World, task_id: str) -> list[str]:
    packet = world.home.packet(task_id)
    events = [event for _, event in journal.read(packet.journal)]
    ends = [event.new for event in events if isinstance(event, ev.TaskMoved) and event.new in ENDS]
    faults = [] if ends == ["completed"] else [f"its ends are {ends}"]
    if not os.path.exists(packet.task_done):
        faults.append("it has no _task.done")
    done = [event for event in events if isinstance(event, ev.StageDone)]
    if len(done) != 1:
        faults.append(f"its stage was done {len(done)} times")
    return faults + _overlaps(world, task_id)


def _overlaps(world: World, task_id: str) -> list[str]:
    """By the stamps of the agents themselves: each process from its first to its last one."""
    lives: dict[str, list[float]] = collections.defaultdict(list)
    path = os.path.join(world.project, "stamps", task_id)
    if not os.path.exists(path):
        return ["no attempt of it ever ran"]
    with open(path, encoding="utf-8") as file:
        for line in file:
            fields = line.split()
            if len(fields) == 3:
                lives[fields[1]].append(float(fields[2]))
    spans = sorted((min(times), max(times), pid) for pid, times in lives.items())
    return [
        f"{second[2]} began {first[1] - second[0]:.3f} s before {first[2]} had ended"
        for first, second in itertools.pairwise(spans)
        if second[0] < first[1]
    ]


def _left(world: World) -> list[str]:
    """Processes of the tasks. The last ones may be on their way out."""
    ends = time.monotonic() + 15.0
    while (left := processes.marked(world.home.path)) and time.monotonic() < ends:
        pass
    return [f"left behind: {each}" for each in left]
