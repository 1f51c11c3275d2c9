"""When the logs of an attempt are read: at once if a line can affect a decision, else at growing intervals.

Output of a plain command affects no decision. The first line after a silence is read at once. While more
comes, notifications are off and a timer with growing intervals triggers the reads; a runner that is awake for
something else in the second half of an interval reads then. A program that follows
output.log rings the packet's bell; then the logs are read at once for a moment
(docs/decisions/0042-reading-output.md). Where the kernel reports no writes, the logs are polled, less often
the longer they are silent.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.runner.wake.waiter import Waiter
from holdfast.watch.growth import GrowthWatch

#: Minimum time between two reads.
READ_INTERVAL_S = 0.1
#: Maximum time between two reads while a plain command prints.
LONGEST_S = 10.0
#: Output after a silence this long is rare and is read at once; a timer would cost more than it saves.
SILENCE_S = 2 * LONGEST_S
#: How long a ring of the bell is valid; followers ring twice in that time.
FOLLOWED_S = 1.0
#: Maximum bytes per read. A larger backlog may count as a flood, of which only the end is copied.
_READ_BYTES = 256 * 1024
#: Maximum output rate per second that is assumed when an output limit is near.
_FASTEST_BYTES = 256 * 1024 * 1024
#: Poll intervals without notifications, and the timeout that means "never".
_POLL_S, _LONGEST_POLL_S, _UNTIL_WOKEN_S = 1.0, 10.0, 3600.0
#: The poll interval as a share of the silence so far.
_POLL_SHARE = 0.1
#: Reads in a row that were triggered by a notification and found nothing (another program writes files beside
#: the logs), before reads become less frequent.
_FALSE_ALARMS = 3


def pause_s(grown_bytes: int, since_s: float, *, room_bytes: int | None) -> float | None:
    """Seconds until the next read of a plain command's logs; None: when they grow.

    The last read was `since_s` after the growth before it and found `grown_bytes` new bytes. `room_bytes` is
    how much may still be printed before a limit is reached.
    """
    if grown_bytes <= 0 or since_s >= SILENCE_S:
        return None
    longest_s = min(LONGEST_S, 2 * since_s, since_s * _READ_BYTES / grown_bytes)
    if room_bytes is not None:
        longest_s = min(longest_s, room_bytes / _FASTEST_BYTES)
    return max(READ_INTERVAL_S, longest_s)


def poll_s(silent_s: float) -> float:
    """Seconds until the next poll of logs that have been silent for `silent_s`."""
    return min(_LONGEST_POLL_S, max(_POLL_S, silent_s * _POLL_SHARE))


class ReadSchedule:
    """Wakes the runner when the logs of one attempt are due to be read."""

    def __init__(self, waiter: Waiter, name: str, paths: list[str], *, is_plain: bool) -> None:
        self._waiter = waiter
        self._name = name
        self._is_plain = is_plain
        self._watch = GrowthWatch(paths)
        #: Since when notifications are off; None while they are on.
        self._unwatched_mono: float | None = clock.mono()
        self._began_mono = self._unwatched_mono
        # What was written before is not reported: the first read is due now.
        self._due_mono = self._read_mono = 0.0
        #: How long before that time a runner that is awake reads: it need not wake up once more soon.
        self._early_s = 0.0
        self._grew_mono = self._followed_until_mono = float("-inf")
        #: Whether a notification triggered the next read, and how many did although nothing was written.
        self._was_told, self._false_alarms = False, 0

    def left_s(self, ready: set[str], now_mono: float) -> float:
        """Seconds until the logs are due to be read; 0 means now."""
        has_news = self._name in ready
        self._was_told = self._was_told or has_news
        if "bell" in ready and (self._is_plain or not self._watch.is_told):
            self._followed_until_mono = now_mono + FOLLOWED_S
            has_news = has_news or self._unwatched_mono is not None
        if has_news:
            self._due_mono = min(self._due_mono, now_mono)
        left_s = max(self._due_mono, self._read_mono + READ_INTERVAL_S) - now_mono
        if has_news and left_s > 0:
            self._unwatch(self._read_mono)
        is_early = left_s <= self._early_s and now_mono >= self._read_mono + READ_INTERVAL_S
        return 0.0 if is_early else max(0.0, left_s)

    def unseen_s(self, now_mono: float) -> float:
        """How long the logs may have grown without notice.

        Never 0: a notification can be late on a busy machine.
        """
        if self._unwatched_mono is None:
            return READ_INTERVAL_S
        return max(READ_INTERVAL_S, now_mono - self._unwatched_mono)

    def begin(self, now_mono: float) -> None:
        """A read begins. Output from now on is reported again."""
        self._watch.arm()
        self._read_mono = now_mono

    def end(self, grown_bytes: int, *, has_more: bool, room_bytes: int | None) -> float:
        """A read ends: it found `grown_bytes` new bytes, and some are unread if `has_more`.

        Returns the seconds until the next read.
        """
        read_mono = self._read_mono
        self._early_s = 0.0
        if has_more:
            self._read_mono = 0.0
            return self._read_again_in(0.0, read_mono)
        since_s = read_mono - self._grew_mono
        was_told, self._was_told = self._was_told, False
        self._false_alarms += was_told
        if grown_bytes > 0:
            self._grew_mono, self._false_alarms = read_mono, 0
        if self._is_plain and read_mono >= self._followed_until_mono:
            interval_s = pause_s(grown_bytes, since_s, room_bytes=room_bytes)
            if interval_s is not None:
                self._early_s = interval_s / 2
                return self._read_again_in(interval_s, read_mono)
        if not self._watch.is_told:
            silent_s = read_mono - max(self._grew_mono, self._began_mono)
            return self._read_again_in(poll_s(silent_s), read_mono)
        if was_told and self._false_alarms >= _FALSE_ALARMS:
            return self._read_again_in(_POLL_S, read_mono)
        if self._unwatched_mono is not None:
            if self._watch.descriptor >= 0:
                self._waiter.watch(self._watch.descriptor, self._name)
            else:
                self._waiter.watch_writes(self._name)
            self._unwatched_mono = None
        self._due_mono = read_mono + _UNTIL_WOKEN_S
        return _UNTIL_WOKEN_S

    def _read_again_in(self, seconds: float, now_mono: float) -> float:
        self._unwatch(now_mono)
        self._watch.disarm()
        # The logs were read just now, so everything written before is known.
        self._unwatched_mono = now_mono
        self._due_mono = now_mono + seconds
        return seconds

    def _unwatch(self, since_mono: float) -> None:
        if self._unwatched_mono is None:
            self._stop_listening()
            self._unwatched_mono = since_mono

    def _stop_listening(self) -> None:
        self._waiter.unwatch_writes(self._name)
        if self._watch.descriptor >= 0:
            self._waiter.unwatch(self._watch.descriptor)

    def close(self) -> None:
        """Stop watching."""
        self._stop_listening()
        self._watch.close()
