"""Dispatch: take tasks from the queue, as many as there are slots, and start them.

A claim is a row in the queue, a start is a request in the task's inbox; both survive the keeper. Claims of a
dead keeper that were not started are released; started tasks continue with their runners.
"""

from __future__ import annotations

import os

from holdfast import clock, units
from holdfast.errors import HoldfastError
from holdfast.failpoints import failpoint
from holdfast.keeper import allowance, capacity, charges, ended_tasks, loop_state
from holdfast.keeper.archiver import Archiver
from holdfast.keeper.faults import Faults
from holdfast.keeper.log import log
from holdfast.keeper.schedules import Schedules
from holdfast.keeper.sources import Sources
from holdfast.model.request import Request
from holdfast.model.status import Status
from holdfast.packet import inbox, load
from holdfast.queue import claim_owner, sync
from holdfast.queue.engine import Item, requeue_lost
from holdfast.queue.local import LocalQueue
from holdfast.runner_process import start_runner_for_keeper
from holdfast.store import admitted, atomic, audit, home_records, layout
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.keeper.live_tasks import LiveTasks

#: How often the queue is compared with the packets if nothing happens.
SYNC_S = 15.0
#: A comparison reads every waiting packet, so in a long queue, several bells are answered with one
#: comparison: there is a pause for every item beyond these.
_SYNC_FREE_ITEMS, _SYNC_PAUSE_PER_ITEM_S = 100, 0.001
#: Pause while the machine is short of memory or disk, or a budget is spent.
_SHORT_S = 5.0
#: How long to wait for tasks to be interrupted when the loop ends.
_PARK_S = 60.0
#: Time for a runner to answer a start; then the claim is lost.
_ANSWER_S = 60.0


class Dispatch:
    """Starts the tasks of the queue."""

    def __init__(self, home: Home, live_tasks: LiveTasks, faults: Faults | None = None) -> None:
        self.home = home
        self._faults = faults or Faults(home)
        self.live_tasks = live_tasks
        self._me = claim_owner.this_process()
        self._synced_mono = float("-inf")
        self._queue: LocalQueue | None = None
        self._ends_mono: list[float] = []
        #: The bell was rung since the last comparison; and the pause before the next one.
        self._rung, self._sync_pause_s = False, 0.0
        #: Why nothing is started; empty if nothing prevents it. And why nothing of an agent or pool is.
        self._hold_reason = ""
        self._held_agents: dict[str, str] = {}
        self._held_pools: dict[str, str] = {}
        #: What has no room for another task.
        self._full = capacity.Full()
        self.spec = loop_state.LoopSpec()
        self._sources = Sources(home)
        self.schedules = Schedules(home, self._faults)
        #: Task → iteration, for tasks that this keeper started.
        self._iterations: dict[str, int] = {}
        #: Stamps of manifests whose cost is counted.
        self._charged: dict[str, str] = {}
        self._archiver = Archiver()
        #: Whether the queue is empty: a keeper with waiting or running tasks is not idle.
        self.is_idle = True
        #: `--max-iterations` tasks were started, and all of them have ended or wait for a person.
        self.is_over = False

    def step(self, *, rung: bool, has_news: bool = False) -> float:
        """Start the tasks that can be started. Returns the seconds until the next step.

        `rung`: the bell was rung, so there may be new tasks. `has_news`: a task no longer needs a runner.
        """
        now_mono = clock.mono()
        self.spec = spec = loop_state.read_spec(self.home)
        guard = self._faults.guard
        wait_s = min(
            SYNC_S,
            guard("sources", lambda: self._sources.step(spec), SYNC_S),
            guard("archiving", lambda: self._archiver.step(spec), SYNC_S),
            guard("schedules", self.schedules.step, SYNC_S),
        )
        rung = rung or self.schedules.has_added
        if not os.path.exists(self.home.queue) and not self.live_tasks.needs.has_queued and not rung:
            return wait_s
        try:
            if self._queue is not None and not self._queue.is_current:
                self.close()  # another process replaced the database because it was unusable
            if self._queue is None:
                self._queue = LocalQueue(self.home)
                self._synced_mono = float("-inf")
            return min(wait_s, self._dispatch(self._queue, spec, now_mono, rung=rung, has_news=has_news))
        except (OSError, HoldfastError) as error:
            log(f"cannot process the queue: {error}")
            self.close()
            return wait_s
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Close the queue."""
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def _dispatch(
        self, queue: LocalQueue, spec: loop_state.LoopSpec, now_mono: float, *, rung: bool, has_news: bool
    ) -> float:
        for task_id in ended_tasks.take_out(self.home, queue, spec, started=self._iterations):
            self._iterations.pop(task_id, None)
            self._ends_mono.append(clock.mono())
            self._archiver.note_end(spec)
        self._charge(queue)
        self._compare(queue, now_mono, rung=rung, has_news=has_news)
        is_empty = not queue.summary(clock.now()).count
        if self.is_idle != is_empty:
            self.is_idle = is_empty
            if is_empty:
                ended_tasks.notify(self.home, "queue_empty", _ended_words(loop_state.read_state(self.home)))
            audit.append(
                self.home, {"operation": "loop.empty" if self.is_idle else "loop.filled", "by": "keeper"}
            )
        state = self._note_answer(loop_state.read_state(self.home))
        has_claims = any(not claim_owner.is_external(item.claimed_by) for item in queue.claims())
        self.is_over = 0 < spec.max_iterations <= state.since_up and not has_claims
        self._hold_reason, self._held_agents, self._held_pools = "", {}, {}
        self._full = capacity.Full()
        wait_s = SYNC_S if is_empty else self._hold_back(spec, state)
        while wait_s is None:
            wait_s = self._start_next(queue, spec)
        self._publish_hold_reason()
        if (spec.budget_usd is not None or spec.pool_budgets) and queue.summary(clock.now()).agents:
            self._announce_spent(spec)
        return min(wait_s, self._synced_mono + (self._sync_pause_s if self._rung else SYNC_S) - now_mono)

    def _charge(self, queue: LocalQueue) -> None:
        """Count what started tasks have cost since the last step."""
        state = loop_state.read_state(self.home)
        if not state.charged:
            return
        claimed = {item.task_id for item in queue.claims()}
        if (after := charges.update(self.home, state, claimed=claimed, seen=self._charged)) != state:
            loop_state.write_state(self.home, after)

    def _compare(self, queue: LocalQueue, now_mono: float, *, rung: bool, has_news: bool) -> None:
        """Compare the queue with the packets: fully after a bell or a while, otherwise only what the news
        may change."""
        self._rung = self._rung or rung
        is_due = now_mono - self._synced_mono >= (self._sync_pause_s if self._rung else SYNC_S)
        if is_due or has_news:
            for item in requeue_lost(queue, self._is_claim_valid):
                self._forget_start(item)
        if is_due:
            self._synced_mono, self._rung = now_mono, False
            sync.sync(self.home, queue, counts_ends=True)
            self._sync_pause_s = (
                max(0, queue.summary(clock.now()).count - _SYNC_FREE_ITEMS) * _SYNC_PAUSE_PER_ITEM_S
            )
        elif has_news:
            sync.check_outside_dependencies(self.home, queue)

    def _is_claim_valid(self, item: Item) -> bool:
        """Whether a claim is still valid: its task has started, is about to, or belongs to an external
        worker."""
        if claim_owner.is_external(item.claimed_by):
            return True
        if sync.status_of(self.home, item.task_id) != Status.QUEUED:
            return True
        packet = self.home.packet(item.task_id)
        return locks.is_held(packet.runner_lock) or _is_asked(packet)

    def _forget_start(self, item: Item) -> None:
        """Remove a start request that its runners cannot read; the next claim writes another one."""
        packet = self.home.packet(item.task_id)
        for name in inbox.names(packet):
            request = inbox.read(packet, name)
            if isinstance(request, Request) and request.verb == "start":
                atomic.forget(os.path.join(packet.inbox, name))

    # ── what may start ──

    def _hold_back(self, spec: loop_state.LoopSpec, state: loop_state.LoopState) -> float | None:
        """Seconds to wait if nothing may be started now; None if something may."""
        if os.path.lexists(self.home.interrupt_request) or os.path.exists(self.home.down):
            return SYNC_S
        if spec.max_iterations and state.since_up >= spec.max_iterations:
            self._hold_reason = (
                f"--max-iterations ({spec.max_iterations}) reached; 'holdfast up' resets the count"
            )
            return SYNC_S
        if why := home_records.write_problem(layout.records_of(self.home.path)):
            self._hold_reason = f"no task is started: {why}"
            return _SHORT_S
        left_s = loop_state.left_s(state, now=clock.now())
        if left_s > 0:
            self._hold_reason = (
                f"no task is started before {_local(state.not_before)}, a pause after failures: "
                f"{state.failures} failed in a row"
            )
            return min(left_s, SYNC_S)
        now = clock.now()
        spent = allowance.spent_today(state.spent, state.spent_day, now=now)
        unknown = allowance.unknown_today(state.unpriced, now=now)
        if why := allowance.over_budget(spent, spec.budget_usd, unknown):
            self._hold_reason = why
            return _SHORT_S  # it may be raised at any time
        if capacity.free_disk_bytes(self.home.path) < spec.min_free_disk_bytes:
            least = units.size_text(spec.min_free_disk_bytes)
            self._hold_reason = f"no task is started: less than {least} of disk space is free"
            return _SHORT_S
        return None

    def _note_answer(self, state: loop_state.LoopState) -> loop_state.LoopState:
        """Note an interrupt file, and that a person removed it: then the failures are forgotten."""
        is_asked = os.path.lexists(self.home.interrupt_request)
        if is_asked == state.asked:
            return state
        state = state.evolve(asked=True) if is_asked else loop_state.after_answer(state)
        loop_state.write_state(self.home, state)
        return state

    def _closed_pools(self, queue: LocalQueue, spec: loop_state.LoopSpec, now: float) -> dict[str, str]:
        """Pools with queued tasks that may not start now, each with the reason."""
        if not spec.windows and not spec.pool_budgets:
            return {}
        state = loop_state.read_state(self.home)
        spent = allowance.spent_today(state.spent, state.spent_day, now=now)
        unknown = allowance.unknown_today(state.unpriced, now=now)
        closed = allowance.closed_pools(spec.windows, spec.pool_budgets, spent, unknown, now=now)
        used = {item.pool for item in queue.items() if item.state == "queued"} if closed else set[str]()
        return {pool: why for pool, why in closed.items() if pool in used}

    def _publish_hold_reason(self) -> None:
        """Write the reasons to keeper.log and to loop.json (for `status`), once per change. What
        is merely full is no news for the log."""
        state = loop_state.read_state(self.home)
        held = state.evolve(
            short_of=self._hold_reason, held_agents=self._held_agents, held_pools=self._held_pools
        )
        if held != state:
            reasons = [held.short_of, *held.held_agents.values(), *held.held_pools.values()]
            log("; ".join(filter(None, reasons)) or "tasks are started again")
        full = self._full
        held = held.evolve(full_agents=full.agents, full_pools=full.pools, full_slots=full.slots)
        if held != state:
            loop_state.write_state(self.home, held)

    def _announce_spent(self, spec: loop_state.LoopSpec) -> None:
        """Post a notice about each budget that holds queued tasks, once a day, and again after it was raised.

        The state is written afterwards: if the keeper is killed in between, the notice is posted twice.
        """
        now, state = clock.now(), loop_state.read_state(self.home)
        spent = allowance.spent_today(state.spent, state.spent_day, now=now)
        unknown = allowance.unknown_today(state.unpriced, now=now)
        found: dict[str, tuple[float, str]] = {}
        if spec.budget_usd is not None and (why := allowance.over_budget(spent, spec.budget_usd, unknown)):
            found[allowance.HOME] = spec.budget_usd, why
        for pool, why in allowance.spent_pools(spec.pool_budgets, spent, unknown).items():
            if pool in self._held_pools:
                found[pool] = spec.pool_budgets[pool], why
        told = {name: f"{clock.local_day(now)} {limit_usd}" for name, (limit_usd, _) in found.items()}
        for name, (_, why) in found.items():
            if state.budgets_told.get(name) != told[name]:
                ended_tasks.notify(self.home, "budget_spent", why)
        if not told.items() <= state.budgets_told.items():
            loop_state.write_state(self.home, state.evolve(budgets_told={**state.budgets_told, **told}))

    def _start_next(self, queue: LocalQueue, spec: loop_state.LoopSpec) -> float | None:
        """Claim and start one task. Returns None if another one may follow."""
        now_mono, now = clock.mono(), clock.now()
        outlook = queue.summary(now)
        self._ends_mono = [at for at in self._ends_mono if now_mono - at < spec.iteration_delay_s]
        self._held_pools = self._closed_pools(queue, spec, now)
        claims, cooling = queue.claims(), len(self._ends_mono)
        free, self._held_agents = capacity.measure(
            self.home,
            claims,
            spec,
            cooling=cooling,
            agents=outlook.agents,
            closed=self._held_pools,
        )
        item = queue.claim(self._me, free)
        if item is None:
            self._full = capacity.full(claims, spec, free, cooling=cooling)
            left = [spec.iteration_delay_s - (now_mono - at) for at in self._ends_mono]
            longest_s = _SHORT_S if self._held_agents or self._held_pools else SYNC_S
            due = [] if outlook.due_at is None else [outlook.due_at - now]
            return max(0.01, min([longest_s, *left, *due]))
        failpoint("dispatch.claimed")
        try:
            return self._start(queue, item, spec)
        except (OSError, HoldfastError):
            raise
        except Exception as error:  # it is set aside; `queue` and `status` name it
            log(f"{item.task_id} is not started: {error!r}")
            queue.poison(item.task_id, f"the keeper cannot start it: {error!r}")
            return None

    def _start(self, queue: LocalQueue, item: Item, spec: loop_state.LoopSpec) -> float | None:
        """Write the start request of a claimed task and start its runner.

        Returns None if another task may follow.
        """
        packet = self.home.packet(item.task_id)
        try:
            task = load.fold(packet)
        except HoldfastError as error:
            # The manifest is only derived. If the journal is unreadable, every runner would fail.
            log(f"{item.task_id} is not started: {error}")
            queue.poison(item.task_id, f"its journal cannot be read: {error}")
            return None
        if not admitted.is_admitted(packet):
            # Its record was removed. It comes back after `resume --adopt`; `status` says so.
            log(admitted.objection(packet))
            queue.ack(item.task_id, owner=self._me)
            return None
        if why := sync.too_early(self.home, task):
            # Its row was wrong; the next comparison makes another one.
            log(f"{item.task_id} is not started: {why}")
            queue.ack(item.task_id, owner=self._me)
            return None
        state = loop_state.read_state(self.home)
        state = charges.begin(state, task)
        state = state.evolve(iteration=state.iteration + 1, since_up=state.since_up + 1)
        self._iterations[item.task_id] = state.iteration
        try:
            inbox.drop(packet, "start", {"iteration": state.iteration}, by="keeper")
        except (OSError, HoldfastError):
            # Not the task's fault: the disk is full or read-only.
            queue.release(item.task_id, owner=self._me)
            raise
        failpoint("dispatch.asked")
        loop_state.write_state(self.home, state)
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
        self.live_tasks.watch_started(item.task_id, start_runner_for_keeper(packet))
        if spec.max_iterations and state.since_up >= spec.max_iterations:
            return SYNC_S
        return None

    # ── the end of a loop in the foreground ──

    def interrupt_all(self, reason: str) -> None:
        """Interrupt every dispatched task, and wait until all are interrupted."""
        queue, interrupted = LocalQueue(self.home), list[Packet]()
        for item in queue.claims():
            if not claim_owner.is_external(item.claimed_by):
                packet = self.home.packet(item.task_id)
                inbox.drop(packet, "interrupt", {"reason": reason}, by="keeper")
                if not inbox.ring(packet):
                    start_runner_for_keeper(packet)
                interrupted.append(packet)
        queue.close()
        ends_mono = clock.mono() + _PARK_S
        while clock.mono() < ends_mono and any(_is_at_work(packet) for packet in interrupted):
            clock.sleep(0.05)


def _local(at: str | None) -> str:
    return clock.local(at or "", "%Y-%m-%d %H:%M:%S %Z")


def _ended_words(state: loop_state.LoopState) -> str:
    """`3 completed, 1 failed so far`."""
    return ", ".join(f"{count} {status}" for status, count in state.ended.items()) + " so far"


def _is_asked(packet: Packet) -> bool:
    """Whether its inbox contains a request that a runner may still answer."""
    for name in inbox.names(packet)[:1]:
        try:
            return clock.now() - os.stat(os.path.join(packet.inbox, name)).st_mtime < _ANSWER_S
        except FileNotFoundError:
            return True
    return False


def _is_at_work(packet: Packet) -> bool:
    return bool(inbox.names(packet)) or locks.is_held(packet.runner_lock)
