"""Live tasks: each of them has a runner, or gets one.

The kernel reports the death of a runner (one pidfd per runner; runners for which no descriptor is left are
polled), and a new runner announces itself. A periodic scan finds the rest: tasks whose creator was killed
before it started a runner, requests for tasks without a runner, and runners that do not respond.
"""

from __future__ import annotations

import os
import signal

from holdfast import clock, files, spawn
from holdfast.errors import HoldfastError, StorageError
from holdfast.failpoints import failpoint
from holdfast.keeper import descriptors
from holdfast.keeper.log import log
from holdfast.model.fold import CRASH_LIMIT
from holdfast.model.status import ENDS, Status
from holdfast.packet import inbox, load, takeover
from holdfast.packet.load import is_unresponsive
from holdfast.runner_process import start_runner_for_keeper
from holdfast.store import admitted, index, process
from holdfast.store import lock as locks
from holdfast.store.directories import remove_tree
from holdfast.store.layout import GONE_PREFIX, NEW_PREFIX, Home, Packet
from holdfast.watch.death import PollWatch, watch_death

TYPE_CHECKING = False
if TYPE_CHECKING:
    import selectors
    from collections.abc import Callable
    from typing import Any

    from holdfast.model.process import ProcessIdentity
    from holdfast.watch.death import DeathWatch

#: How often all tasks are checked.
SCAN_S = 15.0
#: How often ended tasks are checked: only a request can revive them.
ENDED_SCAN_S = 300.0
#: Runners that may die while they park a task that killed others, before the keeper has it parked.
_PARKING_RUNNERS = 2
#: Time that a new runner has to take its lock.
_START_S = 2.0
#: Pause between two starts for a task: none, then doubling.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 300.0
#: A runner that lived longer than this resets the count of starts.
_LIVED_WELL_S = 60.0
#: How often runners without a descriptor are polled: at least this pause, and more if there are many.
_POLL_S, _POLL_EACH_S = 1.0, 0.002
#: Older staging directories were left by killed commands.
_STALE_STAGING_S = 3600.0


class LiveTask:
    """A task that needs a runner, and the watch on the runner that it has."""

    def __init__(self, packet: Packet) -> None:
        self.packet = packet
        self.watch: DeathWatch | None = None
        #: The watch is on a process that was just started: whether it is the runner, only its lock proves.
        self.is_starting = False
        self.starts = 0
        #: Failed calls in a row: no runner could be started, or the task not be read.
        self.failures = 0
        #: Starts in a row after which the journal was no longer than before, and its length.
        self.unrecorded = 0
        self.journal_bytes = -1
        self.started_mono = 0.0
        self.due_mono = 0.0


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
        self.selector = selector
        self.by_id: dict[str, LiveTask] = {}
        #: A task no longer needs a runner. (Its last runner may have started and exited unnoticed.)
        self.has_news = False
        self._ended: set[str] = set()
        #: Tasks whose manifest was compared with the journal, with what both looked like then.
        self._believed: dict[str, object] = {}
        #: Tasks that need nothing, with the timestamps of their files: skipped until one of them changes.
        self._idle_stamps: dict[str, tuple[int, ...]] = {}
        #: Interrupted tasks that continue when their interrupt file is removed, so the keeper must keep
        #: checking.
        self._marked: set[str] = set()
        #: Packets that no command has made.
        self._unknown: set[str] = set()
        #: A queued task was seen, whether the queue has it or not.
        self.has_queued = False
        self._scanned_mono = self._scanned_ended_mono = float("-inf")
        self._polled_mono = float("-inf")
        #: Tasks whose runner is watched by a descriptor, and by polling.
        self._watched: set[str] = set()
        self._polled: set[str] = set()

    @property
    def is_idle(self) -> bool:
        """Whether no task needs the keeper."""
        return not self.by_id and not self._marked

    def step(self, *, rung: bool) -> float:
        """Handle everything that is due. Returns the seconds until the next step."""
        now_mono = clock.mono()
        if rung or now_mono - self._scanned_mono >= SCAN_S:
            self._scan(now_mono)
        if self._polled and now_mono >= self._poll_due_mono:
            self._poll(now_mono)
        for task in list(self.by_id.values()):
            self._on_step()
            if task.due_mono <= now_mono and (task.watch is None or task.is_starting):
                self._ensure_runner_safely(task, now_mono)
        return self.left_s()

    def left_s(self) -> float:
        """Seconds until something is due."""
        due = [task.due_mono for task in self.by_id.values() if task.watch is None or task.is_starting]
        if self._polled:
            due.append(self._poll_due_mono)
        return max(0.0, min([self._scanned_mono + SCAN_S, *due]) - clock.mono())

    @property
    def _poll_due_mono(self) -> float:
        return self._polled_mono + max(_POLL_S, _POLL_EACH_S * len(self._polled))

    def watch_started(self, task_id: str, pid: int) -> None:
        """Watch a task whose runner was just started, as process `pid`."""
        if task_id not in self.by_id:
            self.by_id[task_id] = task = LiveTask(self.home.packet(task_id))
            self._ended.discard(task_id)  # a `retry` may have revived it
            self._idle_stamps.pop(task_id, None)
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
                self._ended.discard(task_id)
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
            self._ended.clear()
            # Two changes within one clock tick look like one. This also drops removed tasks.
            self._idle_stamps.clear()
            self._remove_stale_staging()
            self._write_task_index()
        present = load.task_ids(self.home)
        self._marked.intersection_update(present)
        self._believed = {name: self._believed[name] for name in present if name in self._believed}
        for task_id in present:
            self._on_step()
            self._check_task_safely(task_id)
        if self.by_id:
            index.refresh(self.home)

    def _write_task_index(self) -> None:
        from holdfast.pipeline.results import task_index  # used every few minutes

        try:
            task_index.update(self.home)
        except (OSError, HoldfastError) as error:  # derived: 'holdfast pipeline index' rebuilds it
            log(f"cannot write {self.home.task_index}: {error!r}")

    def _check_task_safely(self, task_id: str) -> None:
        try:
            self._check_task(task_id)
        except Exception as error:  # logged; one bad packet must not affect the others
            log(f"cannot check {task_id}: {error!r}")

    def _check_task(self, task_id: str) -> None:
        if task_id in self.by_id:
            self._wake_if_unresponsive(self.by_id[task_id])
        elif task_id not in self._ended:
            task = LiveTask(self.home.packet(task_id))
            stamp = _stamp(task.packet)
            if self._idle_stamps.get(task_id) == stamp:
                return
            if self._is_live(task.packet):
                self.by_id[task_id] = task
                self._idle_stamps.pop(task_id, None)
            else:
                self._idle_stamps[task_id] = stamp

    def _ensure_runner_safely(self, task: LiveTask, now_mono: float) -> None:
        try:
            self._ensure_runner(task, now_mono)
            task.failures = 0
        except Exception as error:  # logged, as above; retry later
            log(f"cannot restart {task.packet.task_id}: {error!r}")
            task.failures += 1
            # What the machine refuses passes: a full disk, no more processes or descriptors.
            is_passing = isinstance(error, (OSError, StorageError))
            longest_s = SCAN_S if is_passing else _LONGEST_PAUSE_S
            task.due_mono = now_mono + min(2.0 ** min(task.failures, 10), longest_s)

    def _is_live(self, packet: Packet) -> bool:
        try:
            manifest = load.read_manifest(packet)
            live = load.is_live(packet, manifest["status"])
            # A runner that is leaving, or whose agent wrote this manifest: the keeper must notice its death.
            has_runner = not live and locks.is_held(packet.runner_lock)
            if (
                not live
                and not has_runner
                and self._believed.get(packet.task_id) != (stamp := _end_stamp(packet))
            ):
                # Its agent may have written the end.
                shown, manifest = manifest, load.believed(packet, manifest)
                live = load.is_live(packet, manifest["status"])
                if manifest is shown:
                    self._believed[packet.task_id] = stamp
        except (HoldfastError, ValueError):
            # Unreadable: a runner could not help. `status` reports it.
            return False
        self.has_queued = self.has_queued or manifest["status"] == Status.QUEUED
        if (live or has_runner) and not self._is_admitted(packet):
            return False
        interrupt: dict[str, Any] = manifest.get("interrupt") or {}
        (self._marked.add if interrupt.get("file") else self._marked.discard)(packet.task_id)
        if not live and not has_runner and Status(manifest["status"]) in ENDS:
            self._ended.add(packet.task_id)
        if not live and self._was_unmarked(packet, manifest) and self._is_admitted(packet):
            inbox.drop(packet, "resume", {}, by="file")
            live = True
        # A retried task of the queue waits again, but the index still has it as ended.
        is_queued_again = manifest["status"] == Status.QUEUED and bool(manifest.get("attempt"))
        if live or packet.task_id in self.by_id or is_queued_again:
            index.update(self.home, manifest)
        return live or has_runner

    def _is_admitted(self, packet: Packet) -> bool:
        """Whether a command made the packet. What an agent, a backup or a person has put there is not run."""
        if admitted.is_admitted(packet):
            self._unknown.discard(packet.task_id)
            return True
        if packet.task_id not in self._unknown:
            self._unknown.add(packet.task_id)
            log(
                f"{packet.task_id} was not created by a command in this home, so it is not run: "
                f"'holdfast resume {packet.task_id}' runs it"
            )
        return False

    def _was_unmarked(self, packet: Packet, manifest: dict[str, Any]) -> bool:
        """Whether an interrupted task should continue because its interrupt file was removed.

        (Not if it waits for approval.)
        """
        interrupt: dict[str, Any] = manifest.get("interrupt") or {}
        if manifest["status"] != Status.INTERRUPTED or not interrupt.get("file") or interrupt.get("approval"):
            return False
        if takeover.is_held(packet, manifest):
            return False  # a person works in its session
        return not os.path.lexists(packet.interrupt_request) and not os.path.lexists(packet.error_marker)

    def _wake_if_unresponsive(self, task: LiveTask) -> None:
        """Wake a runner that ignores requests or does not update its manifest: it may have been stopped by
        a signal.

        `status` checks the same signs.
        """
        if task.watch is not None and is_unresponsive(task.packet):
            owner = locks.true_owner(task.packet.runner_lock)
            if owner is not None:
                process.send(owner, signal.SIGCONT)
            inbox.ring(task.packet)

    # ── act ──

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

    def _ensure_runner(self, task: LiveTask, now_mono: float) -> None:
        """Handle a task whose runner is not watched: watch the live runner, start one, or drop the task."""
        packet = task.packet
        if task.watch is not None:
            self._unwatch(task)
        if locks.is_held(packet.runner_lock):
            owner = locks.owner(packet.runner_lock)
            watch = self._watch_death(owner) if owner is not None else None
            if watch is None or (watch.descriptor < 0 and watch.has_died()):
                # Just started, just dying, or its lock file was removed, which it puts back: check again.
                inbox.ring(packet)
                task.due_mono = now_mono + 0.1
                return
            self._watch(task, watch)
            return
        if not self._is_live(packet):
            if self._is_removed(packet):
                spawn.end_agents(packet)
            del self.by_id[packet.task_id]
            self.has_news = True
            return
        if task.starts and now_mono < task.started_mono + self._pause_s(task):
            task.due_mono = task.started_mono + self._pause_s(task)
            return
        failpoint("live_tasks.before_start")
        task.starts += 1
        task.started_mono = now_mono
        reason = self._park_reason(task)
        if reason:
            log(f"{packet.task_id}: {reason}; parking it")
        self._watch_start(
            task, spawn.park_task(packet, reason) if reason else start_runner_for_keeper(packet)
        )

    def _park_reason(self, task: LiveTask) -> str:
        """Why a person has to look at the task: its runners die again and again, and none of them could park
        it. Empty if a runner can."""
        length = _length(task.packet.journal)
        task.unrecorded = task.unrecorded + 1 if length == task.journal_bytes else 0
        task.journal_bytes = length
        if task.unrecorded >= CRASH_LIMIT:
            return f"{task.unrecorded} runners in a row died before they could record their start"
        if task.starts <= CRASH_LIMIT + _PARKING_RUNNERS:
            return ""
        # Seldom: fold the journal. Progress of the task resets the count.
        crashes = load.fold(task.packet).runner_crashes
        if crashes < CRASH_LIMIT + _PARKING_RUNNERS:
            return ""
        return f"{crashes} runners in a row died on this task without progress"

    def _pause_s(self, task: LiveTask) -> float:
        return 0.0 if task.starts < 2 else min(_FIRST_PAUSE_S * 2.0 ** (task.starts - 2), _LONGEST_PAUSE_S)

    def _watch_start(self, task: LiveTask, pid: int) -> None:
        """Watch a process that will take the lock of a task. If it dies before, another is started at once;
        nothing is started while it lives."""
        starting = process.identify(pid)
        watch = self._watch_death(starting) if starting is not None else None
        task.due_mono = 0.0
        if watch is not None and (watch.descriptor >= 0 or not watch.has_died()):
            self._watch(task, watch)
            task.is_starting = True
            task.due_mono = task.started_mono + _START_S

    def _watch(self, task: LiveTask, watch: DeathWatch) -> None:
        task.watch = watch
        if watch.descriptor < 0:
            self._polled.add(task.packet.task_id)
        else:
            self._watched.add(task.packet.task_id)
            self.selector.register(watch.descriptor, 1, ("runner", task.packet.task_id))

    def _watch_death(self, owner: ProcessIdentity) -> DeathWatch:
        """By a descriptor, unless the rest is needed for everything else."""
        may_open = len(self._watched) < descriptors.for_runners()
        return watch_death(owner) if may_open else PollWatch(owner)

    def _poll(self, now_mono: float) -> None:
        """Look for the death of runners without a descriptor. They get one as soon as others are gone."""
        self._polled_mono = now_mono
        room = descriptors.for_runners() - len(self._watched)
        for task_id in list(self._polled):
            self.on_runner_death(task_id)
            if task_id in self._polled and room > 0:
                room -= 1
                self._unwatch(self.by_id[task_id])

    def _unwatch(self, task: LiveTask) -> None:
        assert task.watch is not None
        if task.watch.descriptor >= 0:
            self.selector.unregister(task.watch.descriptor)
        self._watched.discard(task.packet.task_id)
        self._polled.discard(task.packet.task_id)
        task.watch.close()
        task.watch = None
        task.is_starting = False
        task.due_mono = 0.0

    def _remove_stale_staging(self) -> None:
        """Remove what commands left that were killed while they created or removed a packet."""
        for name in os.listdir(self.home.tasks):
            path = os.path.join(self.home.tasks, name)
            if not name.startswith((NEW_PREFIX, GONE_PREFIX)):
                continue
            try:
                age_s = clock.now() - os.lstat(path).st_mtime
            except FileNotFoundError:
                continue
            # A removal needs no grace period: it was final with the rename.
            if age_s > _STALE_STAGING_S or name.startswith(GONE_PREFIX):
                try:
                    remove_tree(path)
                except Exception as error:  # logged; one bad directory must not end the keeper
                    log(f"cannot remove {path}: {error!r}")


def _length(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _stamp(packet: Packet) -> tuple[int, ...]:
    """Modification times of the files that decide whether a task needs the keeper."""
    times: list[int] = []
    for path in (packet.manifest, packet.inbox, packet.state, packet.done, packet.admission):
        try:
            times.append(os.stat(path).st_mtime_ns)
        except OSError:
            times.append(0)
    return tuple(times)


def _end_stamp(packet: Packet) -> tuple[tuple[int, int, int], ...]:
    """What changes with the manifest or the journal."""
    found: list[tuple[int, int, int]] = []
    for path in (packet.manifest, packet.journal):
        try:
            stats = os.lstat(path)
            found.append((stats.st_ino, stats.st_size, stats.st_mtime_ns))
        except OSError:
            found.append((0, 0, 0))
    return tuple(found)
