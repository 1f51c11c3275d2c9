"""The keeper: one per home, proven by its lock. Its death never ends a task."""

from __future__ import annotations

import os
import selectors
import signal
from functools import partial

from holdfast import clock, files, paths, recorder
from holdfast.errors import HoldfastError, LockHeld
from holdfast.keeper import descriptors
from holdfast.keeper.delivery import Deliveries
from holdfast.keeper.dispatch import Dispatch
from holdfast.keeper.faults import Faults
from holdfast.keeper.inhibitor import Inhibitor
from holdfast.keeper.live_tasks import LiveTasks
from holdfast.keeper.log import log
from holdfast.keeper.replies import Replies
from holdfast.keeper.restart_seed import SeedRestarter
from holdfast.packet import inbox
from holdfast.spawn import keeper_has_worked
from holdfast.store import atomic, audit, layout, lock_holders, lock_owner, process
from holdfast.store import lock as locks
from holdfast.store.layout import Home
from holdfast.store.pulse import FOREGROUND, Heart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from holdfast.store.lock import Lock

#: A keeper started on demand exits after this long without anything to do; HOLDFAST_KEEPER_IDLE sets it.
#: (Interrupted tasks count as something to do: they continue when their interrupt file is removed.)
IDLE_S = 60.0
#: A long sleep lasts this much longer: what is due a moment later shares the wake-up.
_SHARED_S, _LONG_S = 0.25, 5.0
#: A chore with a fault is done again after this time.
_FAULT_S = 15.0
#: How long a foreground loop waits for a background keeper to exit.
_TAKE_OVER_S = 10.0
#: Why it exits if home or lock were removed: another keeper may be at work, so nothing is written.
_LOST = "its lock is gone"


class Keeper:
    """Keeps a home until it is told to exit."""

    def __init__(self, home: Home, lock: Lock, *, idle_s: float | None, in_foreground: bool = False) -> None:
        self.home = home
        self._lock = lock
        self._in_foreground = in_foreground
        self.idle_s = idle_s
        self.selector = selectors.DefaultSelector()
        self.seed = SeedRestarter(home, self.selector)
        self._heart = Heart(lock)
        self.live_tasks = LiveTasks(home, self.selector, on_step=self._heart.beat)
        self.outbox = Deliveries(home)
        self.replies = Replies(home)
        self.faults = Faults(home)
        self.dispatch = Dispatch(home, self.live_tasks, self.faults)
        self.inhibitor = Inhibitor()
        self._left_by: str | None = None
        self._has_worked = False
        self._idle_since_mono = clock.mono()
        self._bell = inbox.open_bell(home.keeper_bell)
        self._woken, self._wake = os.pipe()
        for descriptor in (self._woken, self._wake):
            os.set_blocking(descriptor, False)
        self.selector.register(self._bell, selectors.EVENT_READ, ("bell", ""))
        self.selector.register(self._woken, selectors.EVENT_READ, ("signal", ""))
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._left_by = signal.Signals(number).name

    def serve(self) -> str:
        """Run until there is a reason to exit; returns the reason."""
        rung = True
        while self._left_by is None:
            if os.path.exists(self.home.down):
                return "down"
            if not self._lock.mend():
                self.live_tasks.end_removed()
                return _LOST
            self._heart.beat()
            guard = self.faults.guard
            is_sound = guard("live tasks", partial(self.live_tasks.step, rung=rung), None) is not None
            # A task that no longer needs a runner has ended, and its slot is free.
            has_news, self.live_tasks.has_news = self.live_tasks.has_news, False
            # After dispatch, which may start tasks.
            wait_s = min(
                guard("notices", self.outbox.step, _FAULT_S),
                guard("replies", self.replies.step, _FAULT_S),
                guard("queue", partial(self.dispatch.step, rung=rung, has_news=has_news), _FAULT_S),
                guard("seed", self.seed.step, _FAULT_S),
                self.live_tasks.left_s() if is_sound else _FAULT_S,
            )
            # Last: it must not delay a start.
            is_wanted = bool(self.live_tasks.by_id) and self.dispatch.spec.inhibit_sleep
            inhibit = partial(self.inhibitor.step, is_wanted=is_wanted)
            wait_s = min(wait_s, guard("the lock against sleep", inhibit, _FAULT_S))
            if not self._has_worked:
                self._has_worked = True
                _tell_that_it_works(self.home)
            if self._in_foreground and self.dispatch.is_over:
                return "--max-iterations reached"
            is_idle = self.live_tasks.is_idle and self.outbox.is_idle and self.dispatch.is_idle
            is_idle = is_idle and self.replies.is_idle
            if not is_idle or self.dispatch.schedules.has_any:
                self._idle_since_mono = clock.mono()
            elif self.idle_s is not None and not os.path.exists(self.home.up):
                left_s = self._idle_since_mono + self.idle_s - clock.mono()
                if left_s <= 0:
                    return "idle"
                wait_s = min(wait_s, left_s)
            rung = self._wait(wait_s + _SHARED_S if wait_s >= _LONG_S else wait_s)
        return self._left_by

    def _wait(self, wait_s: float) -> bool:
        rung = False
        for key, _ in self.selector.select(wait_s):
            kind, task_id = key.data
            if kind == "runner":
                self.live_tasks.on_runner_death(task_id)
            elif kind == "seed":
                self.seed.on_death()
            elif kind == "bell":
                was_rung, announced = inbox.read_keeper_bell(files.drain(key.fd))
                rung = rung or was_rung
                for announced_id, pid in announced.items():
                    self.live_tasks.on_runner_announced(announced_id, pid)
            else:
                rung = True
                files.drain(key.fd)
        self.inhibitor.note_ends(_reap())
        return rung


def _tell_that_it_works(home: Home) -> None:
    try:
        keeper_has_worked(home)
    except (OSError, HoldfastError) as error:  # then the next start waits a little
        log(f"cannot write {home.keeper_starts}: {error!r}")


def _reap() -> dict[int, int]:
    """Reap children: pid → status. How runners that the keeper executed itself ended is in their journals."""
    reaped: dict[int, int] = {}
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            reaped[ended[0]] = ended[1]
    except ChildProcessError:
        pass
    return reaped


def run(home: Home, *, idle_s: float | None, in_foreground: bool = False) -> int:
    """Run the keeper of a home.

    Returns 75 if it already has one. In the foreground, a signal also ends the loop.
    """
    try:
        lock = _take_over(home) if in_foreground else locks.acquire(home.keeper_lock, role="keeper")
    except LockHeld as error:
        log(str(error))
        return error.exit_status
    recorder.set_name("holdfast-keep")
    os.chdir("/")
    descriptors.raise_limit()
    log("started")
    _refresh_records(home)
    keeper = Keeper(home, lock, idle_s=idle_s, in_foreground=in_foreground)
    reason = keeper.serve()
    if in_foreground and reason not in ("down", _LOST):
        # First: otherwise a runner that finds no keeper would start another one, which continues the queue.
        atomic.write_json(home.down, {"schema": "holdfast.down/1", "at": clock.iso_now()}, durable=True)
        atomic.remove(home.up)
        audit.append(home, {"operation": "home.down", "by": "keeper", "reason": reason})
        keeper.dispatch.interrupt_all(f"the loop ended: {reason}")
        _dismiss_seed(home)
    if reason == "idle":
        atomic.forget(home.keeper_starts)  # it exited normally, so its start does not count as one too many
    log(f"exited: {reason}")
    lock.release()
    return 0


def _refresh_records(home: Home) -> None:
    """Note the device of the home, which a reboot may have changed."""
    if not os.path.isdir(layout.records_of(home.path)):
        return
    try:
        layout.make_records(home.path)
    except OSError as error:
        log(f"no task can be run: {error.strerror}")


def _dismiss_seed(home: Home) -> None:
    """End the seed: nothing will be started here any more."""
    owner = lock_holders.true_owner(home.seed_lock) if locks.is_held(home.seed_lock) else None
    if owner is not None:
        process.send(owner, signal.SIGTERM)
        process.send(owner, signal.SIGCONT)


def _take_over(home: Home) -> Lock:
    """Replace a background keeper (`submit` may have just started one).

    Raises LockHeld if another loop is in the foreground.
    """
    ends_mono = clock.mono() + _TAKE_OVER_S
    while True:
        try:
            return locks.acquire(home.keeper_lock, role=FOREGROUND)
        except LockHeld:
            if lock_owner.role(home.keeper_lock) == FOREGROUND or clock.mono() > ends_mono:
                raise
            owner = lock_holders.holder(home.keeper_lock)
            if owner is not None:
                process.send(owner, signal.SIGTERM)
                process.send(owner, signal.SIGCONT)


def main(argv: list[str]) -> int:
    """`python -m holdfast.keeper [--idle-exit|--foreground]`, with HOLDFAST_HOME set."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))  # the parent may have blocked it
        process.require_proc()
        if "--idle-exit" in argv and not os.path.isdir(paths.home()):
            return 0  # removed since a process of ours started this one
        home = Home(paths.ensure_home(paths.home()))
        return run(
            home,
            idle_s=_idle_s() if "--idle-exit" in argv else None,
            in_foreground="--foreground" in argv,
        )
    except HoldfastError as error:
        log(f"error: {error} ({error.hint})")
        return error.exit_status
    except KeyboardInterrupt:
        return 130  # before it could serve


def _idle_s() -> float:
    if not os.environ.get("HOLDFAST_KEEPER_IDLE"):
        return IDLE_S
    from holdfast.config import variables

    try:
        idle_s = variables.keeper_idle_s(os.environ)
    except HoldfastError as error:
        log(f"ignored: {error}")
        idle_s = None
    return IDLE_S if idle_s is None else idle_s
