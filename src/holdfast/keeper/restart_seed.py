"""Makes sure that the home has a seed. The kernel reports its death."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.keeper.log import log
from holdfast.spawn import ensure_seed
from holdfast.store import lock as locks
from holdfast.store import lock_owner
from holdfast.store.layout import Home
from holdfast.store.pulse import Pulse
from holdfast.watch.death import watch_death

TYPE_CHECKING = False
if TYPE_CHECKING:
    import selectors

    from holdfast.model.process import ProcessIdentity
    from holdfast.watch.death import DeathWatch

#: A new seed needs about this long to take its lock; until then it is looked for often.
_START_S, _LOOK_S = 2.0, 0.1
#: How often a seed is looked for that the kernel cannot watch.
_POLL_S = 15.0
#: Pause between two starts: none, then doubling; a seed that lived longer than this resets it.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_LIVED_WELL_S = 10.0


class SeedRestarter:
    """Starts the seed of a home whenever there is none."""

    def __init__(self, home: Home, selector: selectors.BaseSelector) -> None:
        self.home = home
        self.selector = selector
        self._watch: DeathWatch | None = None
        self._pulse: Pulse | None = None
        #: The owner in the lock before the last start. Another owner means that the new seed has run.
        self._owner_before: ProcessIdentity | None = None
        self._starts = 0
        self._started_mono = self._due_mono = 0.0
        #: A seed that was started has until then to take its lock.
        self._starting_until_mono = 0.0

    def step(self) -> float:
        """Watch the seed, or start one. Returns the seconds until the next step."""
        now_mono = clock.mono()
        if self._pulse is not None:
            self._pulse.check()
        if self._watch is None and now_mono >= self._due_mono:
            try:
                self._due_mono = now_mono + self._ensure_seed(now_mono)
            except (OSError, HoldfastError) as error:  # runners are then executed, which is slower
                log(f"cannot start the seed: {error!r}")
                self._due_mono = now_mono + _POLL_S
        return _POLL_S if self._watch is not None else max(0.0, self._due_mono - now_mono)

    def on_death(self) -> None:
        """The seed died: check immediately."""
        if self._watch is not None and self._watch.has_died():
            self.selector.unregister(self._watch.descriptor)
            self._watch.close()
            self._watch = self._pulse = None
            self._due_mono = self._starting_until_mono = 0.0
            if clock.mono() - self._started_mono > _LIVED_WELL_S:
                self._starts = 0

    def _ensure_seed(self, now_mono: float) -> float:
        """Returns the seconds until the next look."""
        if locks.is_held(self.home.seed_lock):
            owner = lock_owner.owner(self.home.seed_lock)
            watch = watch_death(owner) if owner is not None else None
            if owner is None or watch is None or (watch.descriptor < 0 and watch.has_died()):
                return _LOOK_S  # just started, or just dying
            if watch.descriptor >= 0:
                self._watch = watch
                # It has no heartbeat: clients do not wait for one that hangs.
                self._pulse = Pulse(self.home, self.home.seed_lock, owner, hung_s=float("inf"))
                self.selector.register(watch.descriptor, 1, ("seed", ""))
            return _POLL_S
        if (
            now_mono < self._starting_until_mono
            and lock_owner.owner(self.home.seed_lock) == self._owner_before
        ):
            return _LOOK_S
        if now_mono < self._started_mono + self._pause_s():
            return self._started_mono + self._pause_s() - now_mono
        self._starts += 1
        self._started_mono, self._starting_until_mono = now_mono, now_mono + _START_S
        self._owner_before = lock_owner.owner(self.home.seed_lock)
        ensure_seed(self.home)
        return _LOOK_S

    def _pause_s(self) -> float:
        return 0.0 if self._starts < 2 else min(_FIRST_PAUSE_S * 2.0 ** (self._starts - 2), _LONGEST_PAUSE_S)
