"""Restart the keeper if it died. (The keeper does the same for runners.)"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.packet import inbox
from holdfast.runner.wake.waiter import Waiter
from holdfast.spawn import ensure_keeper, ensure_seed, keeper_allowed
from holdfast.store import lock as locks
from holdfast.store import lock_owner
from holdfast.store.layout import Home, Packet
from holdfast.store.pulse import Pulse
from holdfast.watch.death import watch_death

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.watch.death import DeathWatch


#: When a keeper is started. Not at once: a short task needs none.
FIRST_LOOK_S = 1.0
#: When a living keeper is told of this runner: its agent, which goes first, has started by then.
_ANNOUNCE_S = 0.02
#: How often a runner that sleeps looks at a keeper that it watches: the seed looks more often.
_WATCHED_S = 60.0
#: And how often one that is awake does.
_LOOK_S = 20.0


class KeeperRestarter:
    """Watches the keeper of the home, announces this runner to it, and starts it if it is missing."""

    def __init__(self, packet: Packet, waiter: Waiter, interval_s: float) -> None:
        self.packet = packet
        self.home = packet.home
        self.waiter = waiter
        self._interval_s = interval_s
        self._watch: DeathWatch | None = None
        self._pulse: Pulse | None = None
        self._child: int | None = None
        now_mono = clock.mono()
        self._may_start_mono = now_mono + min(FIRST_LOOK_S, interval_s)
        self._due_mono = min(now_mono + _ANNOUNCE_S, self._may_start_mono)

    def check(self, ready: set[str]) -> float:
        """Start a keeper if there is none. Returns the seconds until the next check."""
        now_mono = clock.mono()
        if self._pulse is not None:
            self._pulse.check()
        # A runner that is awake anyway, for its heartbeat, need not wake up once more soon.
        early_s = _WATCHED_S / 2 if self._watch is not None else 0.0
        if "keeper" in ready or now_mono >= self._due_mono - early_s:
            # A keeper that just started is checked again soon, by each runner at a different time.
            soon_s = FIRST_LOOK_S + os.getpid() % 100 / 100
            # The kernel reports the death of a watched keeper.
            if self._is_watched_safely():
                self._due_mono = now_mono + _WATCHED_S
            elif now_mono < self._may_start_mono:
                self._due_mono = self._may_start_mono
            elif not keeper_allowed(self.home):
                self._due_mono = now_mono + self._interval_s  # `up` starts one
            else:
                self._due_mono = now_mono + min(soon_s, self._interval_s)
        return self._due_mono - now_mono

    def _is_watched_safely(self) -> bool:
        try:
            return self._is_watched()
        except (OSError, HoldfastError):
            return False  # no descriptor or process available: the agent has priority

    def _is_watched(self) -> bool:
        if self._watch is not None:
            if not self._watch.has_died():
                return True
            self.close()
        self._reap()
        if not locks.is_held(self.home.keeper_lock):
            if clock.mono() < self._may_start_mono:
                return False
            self._child = ensure_keeper(self.home, by_person=False) or self._child
            return False
        owner = lock_owner.owner(self.home.keeper_lock)
        watch = watch_death(owner) if owner is not None else None
        if owner is not None and watch is not None and watch.descriptor >= 0:
            self._watch = watch
            self._pulse = Pulse(self.home, self.home.keeper_lock, owner, look_s=_LOOK_S)
            self.waiter.watch(watch.descriptor, "keeper")
            inbox.announce_runner(self.packet)
            return True
        return False

    def _reap(self) -> None:
        """Reap a keeper that we started and that exited."""
        if self._child:
            try:
                # Forget its pid once it is reaped: another child may get the same one.
                is_reaped = os.waitpid(self._child, os.WNOHANG)[0] != 0
            except ChildProcessError:
                is_reaped = True
            if is_reaped:
                self._child = None

    def close(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self.waiter.unwatch(self._watch.descriptor)
            self._watch.close()
            self._watch = self._pulse = None


def hand_over(home: Home) -> None:
    """Before the runner exits: if there is a queue and no keeper, start the seed, which starts a keeper.

    The seed also waits out restart pauses, for which a runner does not stay.
    """
    try:
        if keeper_allowed(home) and os.path.exists(home.queue) and not locks.is_held(home.keeper_lock):
            ensure_seed(home)
    except (OSError, HoldfastError):
        return  # the next runner or command tries again
