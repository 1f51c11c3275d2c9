"""Watch the keeper of a home, from its seed.

Keeper and seed watch each other, so that one SIGKILL does not stop a home with queued tasks and no runner
(docs/decisions/0044-restarting-the-keeper.md).
"""

from __future__ import annotations

import os

from holdfast import clock, files, spawn
from holdfast.errors import HoldfastError
from holdfast.store import lock as locks
from holdfast.store import lock_owner
from holdfast.store.layout import Home
from holdfast.store.pulse import Pulse
from holdfast.watch.death import watch_death

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.watch.death import DeathWatch

#: The keeper may be starting, or another one taking over: wait a moment.
FIRST_LOOK_S = 0.5
#: How often a keeper is looked at: nothing reports that it was stopped or hangs.
_PULSE_S = 15.0
#: Pause if there is no keeper and none is needed.
LOOK_S = 5.0
#: Pause while a fork is running: it wakes us.
_ASKED_S = 60.0
_NEEDED, _NOT_NEEDED = b"1", b"0"


class KeeperWatch:
    """Watches the keeper, and starts another one if the home needs it.

    Whether it does is checked in a fork: otherwise SQLite would stay in the memory of every runner, and a
    slow service manager would delay clients.
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        #: The answer of the last fork; true until it has answered.
        self.is_needed = True
        self._watch: DeathWatch | None = None
        self._pulse: Pulse | None = None
        self._answer = -1
        self._due_mono = clock.mono() + FIRST_LOOK_S

    @property
    def descriptors(self) -> list[int]:
        """Descriptors that become readable when there is something to do."""
        found = [self._answer] if self._answer >= 0 else []
        return found if self._watch is None else [*found, self._watch.descriptor]

    def look(self) -> float:
        """Make sure that there is a keeper. Returns the seconds until the next check."""
        self._read_answer()
        if self._watch is not None and self._watch.has_died():
            self._unwatch()
            self.is_needed = True
            self._due_mono = clock.mono() + FIRST_LOOK_S
        if self._pulse is not None:
            self._pulse.check()
        now_mono = clock.mono()
        if now_mono >= self._due_mono and self._watch is None and self._answer < 0:
            self._due_mono = now_mono + LOOK_S
            self._find_keeper() if locks.is_held(self.home.keeper_lock) else self._ask()
        # A running fork wakes us through its pipe, a watched keeper by its death.
        if self._watch is not None:
            return _PULSE_S
        return _ASKED_S if self._answer >= 0 else max(0.0, self._due_mono - now_mono)

    def _find_keeper(self) -> None:
        owner = lock_owner.owner(self.home.keeper_lock)
        watch = watch_death(owner) if owner is not None else None
        if owner is not None and watch is not None and watch.descriptor >= 0:
            self._watch = watch
            self._pulse = Pulse(self.home, self.home.keeper_lock, owner, look_s=_PULSE_S)
        elif watch is None:
            self._due_mono = clock.mono() + FIRST_LOOK_S  # just started

    def _unwatch(self) -> None:
        assert self._watch is not None
        self._watch.close()
        self._watch = self._pulse = None

    # ── fork ──

    def _ask(self) -> None:
        answer, answering = os.pipe()
        os.set_blocking(answer, False)
        try:
            pid = os.fork()
        except OSError:
            os.close(answer)
            os.close(answering)
            return
        if not pid:
            _bring_keeper(self.home, answering)
        os.close(answering)
        self._answer = answer

    def _read_answer(self) -> None:
        if self._answer < 0:
            return
        try:
            said = os.read(self._answer, 1)
        except BlockingIOError:
            return
        self._close_answer()
        # The fork died without an answer; the next may die, too, so wait.
        self.is_needed = said != _NOT_NEEDED
        pause_s = max(1.0, spawn.keeper_pause_s(self.home)) if said == _NEEDED else LOOK_S
        self._due_mono = clock.mono() + pause_s

    def _close_answer(self) -> None:
        if self._answer >= 0:
            os.close(self._answer)
            self._answer = -1


def _bring_keeper(home: Home, answering: int) -> None:
    """In the fork: start a keeper if the home needs one, and report whether it does."""
    try:
        spawn.become_detached(log=home.keeper_log, keep=answering)
        from holdfast.queue.keeper_needed import is_keeper_needed

        try:
            is_needed = is_keeper_needed(home)
        except (OSError, HoldfastError):
            is_needed = True  # unknown: a keeper that is not needed exits by itself
        if is_needed:
            try:
                spawn.ensure_keeper(home, by_person=False)
            except (OSError, HoldfastError) as error:  # a full disk, for example: tried again later
                files.log(f"{clock.iso_now()} seed: cannot start the keeper: {error}")
        os.write(answering, _NEEDED if is_needed else _NOT_NEEDED)
    except Exception:  # a bug in holdfast: logged, and checked again later
        import traceback

        traceback.print_exc()
    finally:
        os._exit(0)
