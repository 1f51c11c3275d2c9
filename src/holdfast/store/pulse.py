"""The heartbeat of a keeper, and what is done about a keeper or seed that does nothing.

A process that was stopped by a signal (SIGSTOP) is alive and holds its lock, so its death watch says nothing.
Its watchers look at its state in /proc and send SIGCONT. The heartbeat is the modification time of the lock.
It is compared with itself, never with a clock: a time that was set, and a machine that slept, change nothing.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.store import audit, lock_holders, lock_owner, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

    from holdfast.model.process import ProcessIdentity
    from holdfast.store.layout import Home
    from holdfast.store.lock import Lock
else:
    # The C module, as in the recorder: no enum members in the memory of every forked process.
    import _signal as signal

#: A keeper that works shows it at most this often. (It wakes every 15 s, even if nothing happens.)
BEAT_S = 5.0
#: How often a watcher looks, if it is awake.
LOOK_S = 5.0
#: A keeper whose heartbeat has not changed for this long hangs.
HUNG_S = 120.0
#: After a longer pause between two looks, the watcher itself was stopped: the rest does not count.
LONGEST_LOOK_S = 60.0
#: Looks in a row that found it stopped, until it is killed.
_STOPPED_LOOKS = 3
#: The role of a keeper in the foreground. A person stops it with Ctrl-Z.
FOREGROUND = "loop"
#: What `ps` shows: T is stopped by a signal (t, by a debugger, is left alone).
_STOPPED, _BLOCKED = "T", ("D", "t")


class Heart:
    """The keeper's side."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._beat_mono = float("-inf")

    def beat(self) -> None:
        """Show that the process works. Cheap enough for every step of a loop."""
        now_mono = clock.mono()
        if now_mono - self._beat_mono < BEAT_S:
            return
        self._beat_mono = now_mono
        try:
            os.utime(self._lock.descriptor)
        except OSError:
            return  # a read-only disk: watchers see that, too


class Pulse:
    """A watcher's side: the owner of a lock."""

    def __init__(
        self,
        home: Home,
        lock: str,
        owner: ProcessIdentity,
        *,
        look_s: float = LOOK_S,
        hung_s: float = HUNG_S,
        longest_look_s: float = LONGEST_LOOK_S,
    ) -> None:
        self.home = home
        self.lock = lock
        self.owner = owner
        self._look_s, self._hung_s, self._longest_look_s = look_s, hung_s, longest_look_s
        self.looked_mono = clock.mono()
        self._beat = 0
        self._silent_s = 0.0
        self._stopped_looks = 0

    def check(self) -> None:
        """Wake the owner if a signal stopped it, end it if it hangs. Its death watch does the rest."""
        passed_s = clock.mono() - self.looked_mono
        if passed_s < self._look_s:
            return
        self.looked_mono += passed_s
        state = _state(self.owner)
        if state == _STOPPED:
            self._wake()
            return
        self._stopped_looks = 0
        beat = self._read_beat()
        if state is None or state in _BLOCKED or beat != self._beat:
            self._beat, self._silent_s = beat, 0.0
            return
        self._silent_s += min(passed_s, self._longest_look_s)
        if self._silent_s >= self._hung_s:
            self._silent_s = 0.0
            self._kill(f"no heartbeat for {clock.duration_text(self._hung_s)}")

    def _wake(self) -> None:
        self._silent_s = 0.0
        self._stopped_looks += 1
        if self._stopped_looks > _STOPPED_LOOKS:
            self._stopped_looks = 0
            self._kill("stopped by a signal, SIGCONT did not help")
        else:
            wake(self.lock, self.owner)

    def _read_beat(self) -> int:
        try:
            return os.stat(self.lock).st_mtime_ns
        except OSError:
            return 0

    def _kill(self, reason: str) -> None:
        """Only the process that really has the lock: the name in the file may be forged, or of a copied
        home. Not on a read-only disk, where no heartbeat can be shown, and not a person's loop."""
        if _is_foreground(self.lock) or not os.access(self.home.path, os.W_OK):
            return
        if not lock_holders.holds(self.lock, self.owner.pid) or not process.send(self.owner, signal.SIGKILL):
            return
        role = os.path.basename(self.lock).removesuffix(".lock")
        audit.append(
            self.home,
            {
                "operation": f"{role}.killed",
                "by": os.environ.get("HOLDFAST_ROLE", "holdfast"),
                "reason": f"process {self.owner.pid}: {reason}",
            },
        )


def is_stopped(owner: ProcessIdentity) -> bool:
    """Whether a signal stopped this process."""
    return _state(owner) == _STOPPED


def wake(lock: str, owner: ProcessIdentity | None = None) -> None:
    """Continue the owner of a held lock if a signal stopped it, unless a person has it in the foreground."""
    owner = owner or lock_owner.owner(lock)
    if (
        owner is not None
        and is_stopped(owner)
        and lock_holders.holds(lock, owner.pid)
        and not _is_foreground(lock)
    ):
        process.send(owner, signal.SIGCONT)


def _is_foreground(lock: str) -> bool:
    return lock_owner.role(lock) == FOREGROUND


def _state(owner: ProcessIdentity) -> str | None:
    found = process.glance(owner.pid)
    return found[0] if found is not None and found[1] == owner.start_time else None
