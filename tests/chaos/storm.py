"""The storm: SIGKILL a random process, again and again, until all work is done."""

from __future__ import annotations

import collections
import os
import random
import signal
import time

from holdfast.errors import CorruptFile
from holdfast.model.process import ProcessIdentity
from holdfast.queue.local import LocalQueue
from holdfast.store import atomic, lock_owner, process
from holdfast.store import lock as locks
from tests.chaos.world import World

#: Pause between two kills, and the weight of each target.
PAUSE_S = (0.02, 0.25)
FULL = 6
TARGETS = {"agent": 6, "runner": 6, "recorder": 4, "keeper": 2, "seed": 1}


class Storm:
    """Strikes a world."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.dice = random.Random(seed)
        self.strikes: list[str] = []
        self.resumed = 0
        self.at_work = FULL

    def count(self) -> str:
        """How often each was hit."""
        counted = collections.Counter(self.strikes)
        return ", ".join(f"{name} {count}" for name, count in sorted(counted.items()))

    def rage(self, *, until: float) -> None:
        """Strike until every task has ended."""
        told = 0.0
        while open_tasks := self.world.open_tasks():
            if time.monotonic() > until:
                print(f"out of time with {len(open_tasks)} open: {open_tasks[:5]}", flush=True)
                return
            if time.monotonic() - told > 15:
                told = time.monotonic()
                print(f"  {len(open_tasks)} open, {len(self.strikes)} strikes", flush=True)
                self._be_a_person(open_tasks)
            self._strike(open_tasks)
            # The last tasks are not killed more often than the first ones.
            pause_s = self.dice.uniform(*PAUSE_S) * max(1.0, FULL / max(1, self.at_work))
            time.sleep(pause_s)  # noqa: TID251 -- the weather has no condition to wait for

    def _be_a_person(self, open_tasks: list[str]) -> None:
        """Resume tasks that are parked because their runners died too often, or poisoned; restart a keeper
        that was started too often."""
        for task_id in open_tasks:
            if self.world.status_of(task_id) == "interrupted":
                self.resumed += self.world.holdfast("resume", task_id).returncode == 0
        with LocalQueue(self.world.home) as queue:
            for item in queue.items():
                if item.state == "poison":
                    self.resumed += queue.retry(item.task_id)
        if not locks.is_held(self.world.home.keeper_lock):
            self.world.holdfast("up", "--slots", "8", "--iteration-delay", "0")

    def _strike(self, open_tasks: list[str]) -> None:
        target = self.dice.choices(list(TARGETS), list(TARGETS.values()))[0]
        victim = self._find(target, open_tasks)
        if victim is not None and process.send(victim, signal.SIGKILL):
            self.strikes.append(target)

    def _find(self, target: str, open_tasks: list[str]) -> ProcessIdentity | None:
        home = self.world.home
        if target == "keeper":
            return lock_owner.owner(home.keeper_lock)
        if target == "seed":
            return lock_owner.owner(home.seed_lock)
        at_work = [task_id for task_id in open_tasks if locks.is_held(home.packet(task_id).runner_lock)]
        self.at_work = len(at_work)
        if not at_work:
            return None
        packet = home.packet(self.dice.choice(at_work))
        if target == "runner":
            return lock_owner.owner(packet.runner_lock)
        names = sorted(os.listdir(packet.attempts))
        if not names:
            return None
        directory = packet.attempt(names[-1])
        if target == "recorder":
            return lock_owner.owner(directory.lock)
        try:
            born = atomic.read_json(directory.identity)
            return ProcessIdentity.from_json(born) if born is not None else None
        except (ValueError, CorruptFile):
            return None
