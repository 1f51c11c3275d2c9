"""Dispatch: the keeper pulls tasks from the queue, up to its slots, and starts them.

A claim is a row of the queue, a start is a request in the task's inbox; both survive the keeper. What a dead keeper claimed
and did not start is given back; what it started lives on under its runner.
"""

from __future__ import annotations

import os

from holdfast import clock, units
from holdfast.errors import HoldfastError
from holdfast.failpoints import failpoint
from holdfast.keeper import ends, loop, room
from holdfast.keeper.log import log
from holdfast.keeper.sources import Sources
from holdfast.keeper.sweep import Sweep
from holdfast.model.request import Request
from holdfast.model.status import Status
from holdfast.packet import inbox, load
from holdfast.queue import owner, sync
from holdfast.queue.engine import Item, requeue_lost
from holdfast.queue.local import LocalQueue
from holdfast.runner_process import start_runner
from holdfast.store import atomic, audit
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.keeper.guard import Guard

#: How often the queue is compared with the packets when nothing happens.
SYNC_S = 15.0
#: Such a comparison reads every packet that waits: in a long queue, bells are answered together.
_FEW, _BREATH_S = 100, 0.001
#: Before another look at a machine that is short of something.
_SHORT_S = 5.0
#: How long a loop that is ended waits for its tasks to be parked.
_PARK_S = 60.0
#: How long a start may take until its claim is lost.
_ANSWER_S = 60.0


class Dispatch:
    """Feeds the queue's tasks to runners."""

    def __init__(self, home: Home, guard: Guard) -> None:
        self.home = home
        self.guard = guard
        self._me = owner.me()
        self._synced_mono = float("-inf")
        self._queue: LocalQueue | None = None
        self._ends_mono: list[float] = []
        #: The bell was rung since the last comparison; and how long the next one waits then.
        self._rung, self._breath_s = False, 0.0
        #: Why nothing, or not everything, is started, in words; empty where nothing is in the way.
        self._short = ""
        self._sources = Sources(home)
        #: Task → the number of its start, of those that we started.
        self._iterations: dict[str, int] = {}
        self._sweep = Sweep()
        #: Whether anything waits or runs for the queue: a keeper with such work is not idle.
        self.is_idle = True
        #: As many were started as `up` asked for, and all of them have ended or wait for a person.
        self.is_over = False

    def step(self, *, rung: bool, has_news: bool = False) -> float:
        """Start what can be started; a bell says that something may have come, news that some task needs no runner any more.
        Returns the seconds until the next look."""
        now_mono = clock.mono()
        spec = loop.read_spec(self.home)
        wait_s = min(SYNC_S, self._sources.step(spec), self._sweep.step(spec))
        if not os.path.exists(self.home.queue) and not self.guard.has_queued:
            return wait_s
        try:
            if self._queue is not None and not self._queue.is_current:
                self.close()  # somebody put it aside: it could not be used
            if self._queue is None:
                self._queue = LocalQueue(self.home)
                self._synced_mono = float("-inf")
            return min(wait_s, self._pull(self._queue, spec, now_mono, rung=rung, has_news=has_news))
        except (OSError, HoldfastError) as error:
            log(f"the queue cannot be worked: {error}")
            self.close()
            return wait_s

    def close(self) -> None:
        """Close the queue."""
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def _pull(
        self, queue: LocalQueue, spec: loop.LoopSpec, now_mono: float, *, rung: bool, has_news: bool
    ) -> float:
        for task_id in ends.take_out(self.home, queue, spec, started=self._iterations):
            self._iterations.pop(task_id, None)
            self._ends_mono.append(clock.mono())
            self._sweep.note_end(spec)
        self._compare(queue, now_mono, rung=rung, has_news=has_news)
        is_empty = not queue.outlook(clock.now()).count
        if self.is_idle != is_empty:
            self.is_idle = is_empty
            audit.append(
                self.home, {"operation": "loop.empty" if self.is_idle else "loop.filled", "by": "keeper"}
            )
        state = loop.read_state(self.home)
        has_claims = any(not owner.is_outside(item.claimed_by) for item in queue.claims())
        self.is_over = 0 < spec.max_iterations <= state.since_up and not has_claims
        self._short = ""
        wait_s = SYNC_S if is_empty else self._hold_back(spec, state)
        while wait_s is None:
            wait_s = self._start_next(queue, spec)
        self._tell_shortage()
        return min(wait_s, self._synced_mono + (self._breath_s if self._rung else SYNC_S) - now_mono)

    def _compare(self, queue: LocalQueue, now_mono: float, *, rung: bool, has_news: bool) -> None:
        """Bring queue and packets in line: all of them when the bell was rung or after a while, otherwise what news can change."""
        self._rung = self._rung or rung
        is_due = now_mono - self._synced_mono >= (self._breath_s if self._rung else SYNC_S)
        if is_due or has_news:
            for item in requeue_lost(queue, self._stands):
                self._forget_start(item)
        if is_due:
            self._synced_mono, self._rung = now_mono, False
            sync.sync(self.home, queue, counts_ends=True)
            self._breath_s = max(0, queue.outlook(clock.now()).count - _FEW) * _BREATH_S
        elif has_news:
            sync.settle_strangers(self.home, queue)

    def _stands(self, item: Item) -> bool:
        """Whether a claim is still good: its task has begun, is about to, or belongs to somebody outside."""
        if owner.is_outside(item.claimed_by):
            return True
        packet = self.home.packet(item.task_id)
        if sync.status_of(self.home, item.task_id) != Status.QUEUED:
            return True
        return locks.is_held(packet.runner_lock) or _is_asked(packet)

    def _forget_start(self, item: Item) -> None:
        """Its runners cannot even read the request: the next claim makes another one."""
        packet = self.home.packet(item.task_id)
        for name in inbox.names(packet):
            request = inbox.read(packet, name)
            if isinstance(request, Request) and request.verb == "start":
                atomic.forget(os.path.join(packet.inbox, name))

    # ── what may start ──

    def _hold_back(self, spec: loop.LoopSpec, state: loop.LoopState) -> float | None:
        """Why nothing may start now: the seconds until the next look. None when something may."""
        if os.path.lexists(self.home.interrupt_request) or os.path.exists(self.home.down):
            return SYNC_S
        if spec.max_iterations and state.since_up >= spec.max_iterations:
            self._short = (
                f"no task of the queue is started: {state.since_up} were, which is --max-iterations;"
                " 'holdfast up' begins a new count"
            )
            return SYNC_S
        left_s = loop.left_s(state, now=clock.now())
        if left_s > 0:
            self._short = (
                f"no task of the queue is started before {state.not_before}: {state.failures} failed in a row"
            )
            return min(left_s, SYNC_S)
        if room.free_disk_bytes(self.home.path) < spec.min_free_disk_bytes:
            least = units.words(spec.min_free_disk_bytes)
            self._short = f"no task of the queue is started: less than {least} of disk is free"
            return _SHORT_S
        return None

    def _tell_shortage(self) -> None:
        """In keeper.log, and in loop.json, where `status` finds it; each reason once."""
        state = loop.read_state(self.home)
        if state.short_of != self._short:
            log(self._short or "tasks of the queue are started again")
            loop.write_state(self.home, state.evolve(short_of=self._short))

    def _start_next(self, queue: LocalQueue, spec: loop.LoopSpec) -> float | None:
        """Claim and start one task. None when another one may follow."""
        now_mono, now = clock.mono(), clock.now()
        outlook = queue.outlook(now)
        self._ends_mono = [at for at in self._ends_mono if now_mono - at < spec.iteration_delay_s]
        free, too_big = room.measure(
            self.home, queue.claims(), spec, cooling=len(self._ends_mono), agents=outlook.agents
        )
        self._short = too_big or self._short
        item = queue.claim(self._me, free)
        if item is None:
            left = [spec.iteration_delay_s - (now_mono - at) for at in self._ends_mono]
            longest_s = _SHORT_S if self._short else SYNC_S
            due = [] if outlook.due_at is None else [outlook.due_at - now]
            return max(0.01, min([longest_s, *left, *due]))
        failpoint("dispatch.claimed")
        return self._start(queue, item, spec)

    def _start(self, queue: LocalQueue, item: Item, spec: loop.LoopSpec) -> float | None:
        """Ask for the start of a claimed task, and see to its runner. None when another one may follow."""
        packet = self.home.packet(item.task_id)
        try:
            load.fold(packet)
        except HoldfastError as error:
            # Its manifest is only derived: where the journal cannot be read, every runner would die of it.
            log(f"{item.task_id} is not started: {error}")
            queue.condemn(item.task_id, f"its journal cannot be read: {error}")
            return None
        state = loop.read_state(self.home)
        state = state.evolve(iteration=state.iteration + 1, since_up=state.since_up + 1)
        self._iterations[item.task_id] = state.iteration
        try:
            inbox.drop(packet, "start", {"iteration": state.iteration}, by="keeper")
        except (OSError, HoldfastError):
            # No fault of the task: the disk is full, or read-only.
            queue.release(item.task_id, owner=self._me)
            raise
        failpoint("dispatch.asked")
        loop.write_state(self.home, state)
        log(f"iteration {state.iteration}: {item.task_id}")
        audit.append(
            self.home,
            {
                "operation": "loop.dispatched",
                "by": "keeper",
                "task_id": item.task_id,
                "iteration": state.iteration,
            },
        )
        start_runner(packet, may_fork=False)
        self.guard.tend(item.task_id)
        if spec.max_iterations and state.since_up >= spec.max_iterations:
            return SYNC_S
        return None

    # ── the end of a loop in the foreground ──

    def interrupt_all(self, reason: str) -> None:
        """Park every dispatched task with its context kept, and wait until each has been."""
        queue, asked = LocalQueue(self.home), list[Packet]()
        for item in queue.claims():
            if not owner.is_outside(item.claimed_by):
                packet = self.home.packet(item.task_id)
                inbox.drop(packet, "interrupt", {"reason": reason}, by="keeper")
                if not inbox.ring(packet):
                    start_runner(packet, may_fork=False)
                asked.append(packet)
        queue.close()
        ends_mono = clock.mono() + _PARK_S
        while clock.mono() < ends_mono and any(_is_at_work(packet) for packet in asked):
            clock.sleep(0.05)


def _is_asked(packet: Packet) -> bool:
    """Whether a request lies in its inbox that a runner may still answer."""
    for name in inbox.names(packet)[:1]:
        try:
            return clock.now() - os.stat(os.path.join(packet.inbox, name)).st_mtime < _ANSWER_S
        except FileNotFoundError:
            return True
    return False


def _is_at_work(packet: Packet) -> bool:
    return bool(inbox.names(packet)) or locks.is_held(packet.runner_lock)
