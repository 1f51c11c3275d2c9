"""Live tasks: each of them has a runner, or gets one.

The death of a runner is noticed at once (`runner_watches.py`), and a new runner announces itself. A periodic
scan finds the rest: tasks whose creator was killed before it started a runner, requests for tasks without a
runner, and runners that do not respond.
"""

from __future__ import annotations

import os
import signal

from holdfast import clock, files, spawn
from holdfast.errors import StorageError
from holdfast.failpoints import failpoint
from holdfast.keeper import upkeep
from holdfast.keeper.log import log
from holdfast.keeper.runner_needs import RunnerNeeds
from holdfast.keeper.runner_watches import RunnerWatches
from holdfast.model.fold import CRASH_LIMIT
from holdfast.packet import inbox, load
from holdfast.packet.load import is_unresponsive
from holdfast.runner_process import start_runner_for_keeper
from holdfast.store import index, lock_holders, lock_owner, process
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    import selectors
    from collections.abc import Callable

    from holdfast.watch.death import DeathWatch

#: How often all tasks are checked.
SCAN_S = 15.0
#: How often ended tasks are checked: only a request can revive them.
ENDED_SCAN_S = 300.0
#: Runners that may die while they try to park a task that killed others; then the keeper has it parked.
_PARKING_RUNNERS = 2
#: Time that a new runner has to take its lock.
_START_S = 2.0
#: Pause between two starts for a task: none, then doubling.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 300.0
#: A runner that lived longer than this resets the count of starts.
_LIVED_WELL_S = 60.0


class LiveTask:
    """A task that needs a runner, and the watch on the runner that it has."""

    def __init__(self, packet: Packet) -> None:
        self.packet = packet
        self.watch: DeathWatch | None = None
        #: The watch is on a process that was just started: whether it is the runner, only its lock proves.
        self.is_starting = False
        #: When it has to be looked at, if its runner is not watched.
        self.due_mono = 0.0
        #: Starts of a runner, since one of them lived well.
        self.starts = 0
        self.started_mono = 0.0
        #: Failed calls in a row: no runner could be started, or the task not be read.
        self.failures = 0
        #: Starts in a row after which the journal was no longer than before, and its length.
        self.unrecorded = 0
        self.journal_bytes = -1

    @property
    def next_start_mono(self) -> float:
        """The earliest time of the next start: at once after the first, then after pauses that double."""
        if self.starts < 2:
            return float("-inf")
        return self.started_mono + min(_FIRST_PAUSE_S * 2.0 ** (self.starts - 2), _LONGEST_PAUSE_S)

    def park_reason(self) -> str:
        """Why a person has to look at the task: its runners die again and again, and none of them could park
        it. Empty if a runner can. To be called once per start."""
        length = _length(self.packet.journal)
        self.unrecorded = self.unrecorded + 1 if length == self.journal_bytes else 0
        self.journal_bytes = length
        if self.unrecorded >= CRASH_LIMIT:
            return f"{self.unrecorded} runners in a row died before they could record their start"
        if self.starts <= CRASH_LIMIT + _PARKING_RUNNERS:
            return ""
        # Seldom: fold the journal. Progress of the task resets the count.
        crashes = load.fold(self.packet).runner_crashes
        if crashes < CRASH_LIMIT + _PARKING_RUNNERS:
            return ""
        return f"{crashes} runners in a row died on this task without progress"


class LiveTasks:
    """The live tasks of a home: finds them, watches their runners, and starts those that are missing."""

    def __init__(
        self, home: Home, selector: selectors.BaseSelector, *, on_step: Callable[[], None] = lambda: None
    ) -> None:
        self.home = home
        #: Stays the same directory if the home is renamed.
        self._tasks = files.open_folder(home.tasks)
        #: Called between two tasks: with many, or a seed that does not answer, a step takes long.
        self._on_step = on_step
        self._watches = RunnerWatches(selector)
        self.by_id: dict[str, LiveTask] = {}
        #: A task no longer needs a runner. (Its last runner may have started and exited unnoticed.)
        self.has_news = False
        self.needs = RunnerNeeds(home)
        self._scanned_mono = self._scanned_ended_mono = float("-inf")

    @property
    def is_idle(self) -> bool:
        """Whether no task needs the keeper."""
        return not self.by_id and not self.needs.awaits_removal

    def step(self, *, rung: bool) -> float:
        """Handle everything that is due. Returns the seconds until the next step."""
        now_mono = clock.mono()
        if rung or now_mono - self._scanned_mono >= SCAN_S:
            self._scan(now_mono)
        self._poll(now_mono)
        for task in list(self.by_id.values()):
            self._on_step()
            if task.due_mono <= now_mono and (task.watch is None or task.is_starting):
                self._ensure_runner_safely(task, now_mono)
        return self.left_s()

    def left_s(self) -> float:
        """Seconds until something is due."""
        due = [task.due_mono for task in self.by_id.values() if task.watch is None or task.is_starting]
        return max(0.0, min([self._scanned_mono + SCAN_S, self._watches.poll_due_mono, *due]) - clock.mono())

    def watch_started(self, task_id: str, pid: int) -> None:
        """Watch a task whose runner was just started, as process `pid`."""
        if task_id not in self.by_id:
            self.by_id[task_id] = task = LiveTask(self.home.packet(task_id))
            self.needs.forget(task_id)
            task.starts, task.started_mono = 1, clock.mono()
            self._watch_start(task, pid)

    def on_runner_announced(self, task_id: str, pid: int = 0) -> None:
        """A runner was announced, by the process that started it (with its pid) or by itself: look at its
        task alone, as a scan would."""
        if task_id in self.by_id:
            if self.by_id[task_id].is_starting and not pid:
                self.by_id[task_id].due_mono = 0.0  # it has its lock
        elif os.path.isdir(self.home.packet(task_id).path):
            if pid:
                self.watch_started(task_id, pid)
            else:
                self.needs.forget(task_id)
                self._check_task_safely(task_id)

    def on_runner_death(self, task_id: str) -> None:
        """A runner died: check its task immediately."""
        task = self.by_id.get(task_id)
        if task is not None and task.watch is not None and task.watch.has_died():
            self._unwatch(task)
            if clock.mono() - task.started_mono > _LIVED_WELL_S:
                task.starts = 0

    # ── scan ──

    def _scan(self, now_mono: float) -> None:
        self._scanned_mono = now_mono
        with_ended = now_mono - self._scanned_ended_mono >= ENDED_SCAN_S
        if with_ended:
            self._scanned_ended_mono = now_mono
            self.needs.forget_unchanged()
            upkeep.remove_stale_staging(self.home)
            upkeep.write_task_index(self.home)
        present = load.task_ids(self.home)
        self.needs.keep_only(present)
        for task_id in present:
            self._on_step()
            self._check_task_safely(task_id)
        if self.by_id:
            index.refresh(self.home)

    def _check_task_safely(self, task_id: str) -> None:
        try:
            self._check_task(task_id)
        except Exception as error:  # logged; one bad packet must not affect the others
            log(f"cannot check {task_id}: {error!r}")

    def _check_task(self, task_id: str) -> None:
        if task_id in self.by_id:
            self._wake_if_unresponsive(self.by_id[task_id])
        elif self.needs.arises(packet := self.home.packet(task_id)):
            self.by_id[task_id] = LiveTask(packet)

    def _wake_if_unresponsive(self, task: LiveTask) -> None:
        """Wake a runner that ignores requests or does not update its manifest: it may have been stopped by
        a signal.

        `status` checks the same signs.
        """
        if task.watch is not None and is_unresponsive(task.packet):
            owner = lock_holders.true_owner(task.packet.runner_lock)
            if owner is not None:
                process.send(owner, signal.SIGCONT)
            inbox.ring(task.packet)

    # ── start what is missing ──

    def _ensure_runner_safely(self, task: LiveTask, now_mono: float) -> None:
        try:
            self._ensure_runner(task, now_mono)
            task.failures = 0
        except Exception as error:  # logged; one bad packet must not affect the others
            log(f"cannot restart {task.packet.task_id}: {error!r}")
            task.failures += 1
            # Refusals of the machine are temporary: a full disk, no more processes or descriptors.
            is_passing = isinstance(error, (OSError, StorageError))
            longest_s = SCAN_S if is_passing else _LONGEST_PAUSE_S
            task.due_mono = now_mono + min(2.0 ** min(task.failures, 10), longest_s)

    def _ensure_runner(self, task: LiveTask, now_mono: float) -> None:
        """Handle a task whose runner is not watched: watch the live runner, start one, or drop the task."""
        packet = task.packet
        if task.watch is not None:
            self._unwatch(task)
        if locks.is_held(packet.runner_lock):
            owner = lock_owner.owner(packet.runner_lock)
            watch = self._watches.open(owner) if owner is not None else None
            if watch is None or (watch.descriptor < 0 and watch.has_died()):
                # Just started, just dying, or its lock file was removed, which it puts back: check again.
                inbox.ring(packet)
                task.due_mono = now_mono + 0.1
                return
            self._watch(task, watch)
            return
        if not self.needs.exists(packet, is_watched=True):
            if self._is_removed(packet):
                spawn.end_agents(packet)
            del self.by_id[packet.task_id]
            self.has_news = True
            return
        if now_mono < task.next_start_mono:
            task.due_mono = task.next_start_mono
            return
        failpoint("live_tasks.before_start")
        task.starts += 1
        task.started_mono = now_mono
        reason = task.park_reason()
        if reason:
            log(f"{packet.task_id}: {reason}; parking it")
        self._watch_start(
            task, spawn.park_task(packet, reason) if reason else start_runner_for_keeper(packet)
        )

    def end_removed(self) -> None:
        """End the agents of tasks that were removed and have no runner, which would do that."""
        for task in self.by_id.values():
            if (task.watch is None or task.watch.has_died()) and self._is_removed(task.packet):
                spawn.end_agents(task.packet)

    def _is_removed(self, packet: Packet) -> bool:
        """Whether a packet is neither at its path nor in the directory where it was. (A home may be renamed
        or unmounted: then its agents go on.)"""
        try:
            os.lstat(packet.task_id, dir_fd=self._tasks)
        except FileNotFoundError:
            return not os.path.lexists(packet.path)
        return False

    # ── watch ──

    def _watch_start(self, task: LiveTask, pid: int) -> None:
        """Watch a process that will take the lock of a task. If it dies before, another is started at once;
        nothing is started while it lives."""
        starting = process.identify(pid)
        watch = self._watches.open(starting) if starting is not None else None
        task.due_mono = 0.0
        if watch is not None and (watch.descriptor >= 0 or not watch.has_died()):
            self._watch(task, watch)
            task.is_starting = True
            task.due_mono = task.started_mono + _START_S

    def _watch(self, task: LiveTask, watch: DeathWatch) -> None:
        task.watch = watch
        self._watches.add(task.packet.task_id, watch)

    def _unwatch(self, task: LiveTask) -> None:
        assert task.watch is not None
        self._watches.close(task.packet.task_id, task.watch)
        task.watch = None
        task.is_starting = False
        task.due_mono = 0.0

    def _poll(self, now_mono: float) -> None:
        """Look for the death of runners without a descriptor. They get one as soon as others are gone."""
        due = self._watches.take_due(now_mono)
        room = self._watches.room if due else 0
        for task_id in due:
            self.on_runner_death(task_id)
            if self._watches.is_polled(task_id) and room > 0:
                room -= 1
                self._unwatch(self.by_id[task_id])


def _length(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1
