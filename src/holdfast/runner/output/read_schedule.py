"""When the logs of an open attempt are read: at once where a line may decide something, in gulps where it cannot.

What a plain command prints decides nothing. The first line after a silence is read at once; while more comes, the logs are left
alone for longer and longer, by a timer and without the kernel's telling us of each line. Whoever follows the readable log rings
the bell of the packet, and for a moment it is read at once (docs/decisions/0042-reading-output.md).
"""

from __future__ import annotations

from holdfast import clock
from holdfast.runner.loop.waiter import Waiter
from holdfast.watch.growth import GrowthWatch

#: Logs are read at most this often: a flood is taken in gulps.
GULP_S = 0.1
#: A plain command's logs are left alone for so long at most.
LONGEST_S = 5.0
#: What comes after so long comes rarely, and is read at once: a timer would cost more than it saves.
SILENCE_S = 2 * LONGEST_S
#: How long a ring holds; who follows rings twice in that time.
FOLLOWED_S = 1.0
#: A gulp should not be larger than that: more in one go may be called a flood, of which only the tail is copied.
_GULP_BYTES = 256 * 1024
#: What a program may print in a second, for the time in which it could reach a limit.
_FASTEST_BYTES = 256 * 1024 * 1024
#: How often we look where no inotify is to be had, and how long is for ever.
_POLL_S, _NEVER_S = 1.0, 3600.0


def pause_s(grown_bytes: int, since_s: float, *, room_bytes: int | None) -> float | None:
    """How long the logs of a plain command are left alone, when a look `since_s` after the last growth found so many new
    bytes; None: until they grow. `room_bytes` is what may still be printed."""
    if grown_bytes <= 0 or since_s >= SILENCE_S:
        return None
    longest_s = min(LONGEST_S, 2 * since_s, since_s * _GULP_BYTES / grown_bytes)
    if room_bytes is not None:
        longest_s = min(longest_s, room_bytes / _FASTEST_BYTES)
    return max(GULP_S, longest_s)


class ReadSchedule:
    """Wakes the runner for the logs of one attempt, and says when they are to be read."""

    def __init__(self, waiter: Waiter, name: str, paths: list[str], *, is_plain: bool) -> None:
        self._waiter = waiter
        self._name = name
        self._is_plain = is_plain
        self._watch = GrowthWatch(paths)
        #: Since when the kernel does not tell us of growth; None while it does.
        self._deaf_mono: float | None = clock.mono()
        # What was written before the watch began makes no more news of it: the first look is not asked for.
        self._due_mono = self._looked_mono = 0.0
        self._grew_mono = self._followed_until_mono = float("-inf")

    def left_s(self, ready: set[str], now_mono: float) -> float:
        """Time until the logs are to be read; 0 for now."""
        is_asked = self._name in ready
        if self._is_plain and "bell" in ready:
            self._followed_until_mono = now_mono + FOLLOWED_S
            is_asked = is_asked or self._deaf_mono is not None
        if is_asked:
            self._due_mono = min(self._due_mono, now_mono)
        left_s = max(self._due_mono, self._looked_mono + GULP_S) - now_mono
        if is_asked and left_s > 0:
            self._be_deaf(self._looked_mono)
        return max(0.0, left_s)

    def unseen_s(self, now_mono: float) -> float:
        """For how long the logs may have grown without our knowing: a moment where the kernel tells, since it may have told us
        when no core was free."""
        return GULP_S if self._deaf_mono is None else max(GULP_S, now_mono - self._deaf_mono)

    def begin(self, now_mono: float) -> None:
        """The logs are looked at now. What is written from here on is news again."""
        self._watch.drain()
        self._looked_mono = now_mono

    def end(self, grown_bytes: int, *, has_more: bool, room_bytes: int | None) -> float:
        """The look found so many new bytes, and `has_more` of them are left to be read. Returns the seconds until the next."""
        looked_mono = self._looked_mono
        if has_more:
            self._looked_mono = 0.0
            return self._look_again_in(0.0, looked_mono)
        since_s = looked_mono - self._grew_mono
        if grown_bytes > 0:
            self._grew_mono = looked_mono
        if self._is_plain and looked_mono >= self._followed_until_mono:
            left_alone_s = pause_s(grown_bytes, since_s, room_bytes=room_bytes)
            if left_alone_s is not None:
                return self._look_again_in(left_alone_s, looked_mono)
        if self._watch.descriptor < 0:
            return self._look_again_in(_POLL_S, looked_mono)
        if self._deaf_mono is not None:
            self._waiter.watch(self._watch.descriptor, self._name)
            self._deaf_mono = None
        self._due_mono = looked_mono + _NEVER_S
        return _NEVER_S

    def _look_again_in(self, seconds: float, now_mono: float) -> float:
        self._be_deaf(now_mono)
        # Whoever is deaf has looked just now: nothing from before is unseen.
        self._deaf_mono = now_mono
        self._due_mono = now_mono + seconds
        return seconds

    def _be_deaf(self, since_mono: float) -> None:
        if self._deaf_mono is None:
            self._waiter.unwatch(self._watch.descriptor)
            self._deaf_mono = since_mono

    def close(self) -> None:
        """Stop watching."""
        if self._watch.descriptor >= 0:
            self._waiter.unwatch(self._watch.descriptor)
            self._watch.close()
