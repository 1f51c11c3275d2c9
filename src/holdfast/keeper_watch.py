"""The keeper of a home, as its seed sees it. Keeper and seed guard each other, so that a home with queued work and no
runner does not end with one SIGKILL (docs/decisions/0044-restarting-the-keeper.md)."""

from __future__ import annotations

import os

from holdfast import clock, spawn
from holdfast.errors import HoldfastError
from holdfast.store import lock as locks
from holdfast.store.layout import Home
from holdfast.watch.death import watch_death

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.watch.death import DeathWatch

#: A keeper may just be starting, or another taking over: not at once.
FIRST_LOOK_S = 0.5
#: Without a keeper, and without a need for one.
LOOK_S = 5.0
#: A keeper that is watched tells us of its death, and a fork what it found.
_WATCHED_S = 60.0
_NEEDED, _NOT_NEEDED = b"1", b"0"


class KeeperWatch:
    """Watches the keeper, and has another one started where the home needs it.

    Whether it does is found out in a fork: SQLite would stay in the memory of every runner, and a service manager that is
    slow to answer would hold up whoever wants one.
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        #: What the last fork found; until it has answered, yes.
        self.is_needed = True
        self._watch: DeathWatch | None = None
        self._answer = -1
        self._due_mono = clock.mono() + FIRST_LOOK_S

    @property
    def descriptors(self) -> list[int]:
        """What becomes readable when there is something to look at."""
        found = [self._answer] if self._answer >= 0 else []
        return found if self._watch is None else [*found, self._watch.descriptor]

    def look(self) -> float:
        """See to it that there is a keeper. Returns the seconds until the next look."""
        self._read_answer()
        if self._watch is not None and self._watch.has_died():
            self._unwatch()
            self.is_needed = True
            self._due_mono = clock.mono() + FIRST_LOOK_S
        now_mono = clock.mono()
        if now_mono >= self._due_mono and self._watch is None and self._answer < 0:
            self._due_mono = now_mono + LOOK_S
            self._find_keeper() if locks.is_held(self.home.keeper_lock) else self._ask()
        # A fork that has not answered yet wakes us by its pipe, as a keeper that is watched does by its death.
        is_told = self._watch is not None or self._answer >= 0
        return _WATCHED_S if is_told else max(0.0, self._due_mono - now_mono)

    def _find_keeper(self) -> None:
        owner = locks.owner(self.home.keeper_lock)
        watch = watch_death(owner) if owner is not None else None
        if watch is not None and watch.descriptor >= 0:
            self._watch = watch
        elif watch is None:
            self._due_mono = clock.mono() + FIRST_LOOK_S  # just born

    def _unwatch(self) -> None:
        assert self._watch is not None
        self._watch.close()
        self._watch = None

    # ── the fork ──

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
        # One that died has told us nothing; the next may die as well, so not at once.
        self.is_needed = said != _NOT_NEEDED
        pause_s = max(1.0, spawn.keeper_pause_s(self.home)) if said == _NEEDED else LOOK_S
        self._due_mono = clock.mono() + pause_s

    def _close_answer(self) -> None:
        if self._answer >= 0:
            os.close(self._answer)
            self._answer = -1


def _bring_keeper(home: Home, answering: int) -> None:
    """In the fork: start a keeper where the home needs one, and say whether it does."""
    try:
        spawn.become_detached(log=home.keeper_log, keep=answering)
        from holdfast.queue.keeper_needed import is_keeper_needed

        try:
            is_needed = is_keeper_needed(home)
        except (OSError, HoldfastError):
            is_needed = True  # nobody can tell: a keeper that is not needed leaves by itself
        if is_needed:
            spawn.ensure_keeper(home, by_person=False)
        os.write(answering, _NEEDED if is_needed else _NOT_NEEDED)
    except Exception:  # our bug: keeper.log says so, and we look again
        import traceback

        traceback.print_exc()
    finally:
        os._exit(0)
