"""Keep the machine awake while tasks run.

One child per keeper holds the lock: `systemd-inhibit … cat`, on macOS `caffeinate -i cat`. `cat` reads a pipe
whose other end only the keeper has, so the lock ends with the keeper, even if that is killed. Where there is
no such program, or it fails, the machine may sleep: that ends no task.
"""

from __future__ import annotations

import os

from holdfast import clock, program_search
from holdfast.keeper.log import log
from holdfast.spawn import awake_command

#: How long the lock is kept after the last task: there is a pause between two tasks of the queue.
KEPT_S = 10.0
#: When the lock is tried again after it failed.
RETRY_S = 600.0


class Inhibitor:
    """The lock against sleep of one keeper."""

    def __init__(self) -> None:
        self._pid = 0
        self._pipe = -1
        self._wanted_mono = self._due_mono = float("-inf")
        self._has_failed = False

    def step(self, *, is_wanted: bool) -> float:
        """Take or release the lock. Returns the seconds until the next step."""
        now_mono = clock.mono()
        if is_wanted:
            self._wanted_mono = now_mono
            if not self._pid and now_mono >= self._due_mono:
                self._take(now_mono)
        elif self._pid:
            left_s = self._wanted_mono + KEPT_S - now_mono
            if left_s > 0:
                return left_s
            self.release()
        return float("inf")

    def note_ends(self, reaped: dict[int, int]) -> None:
        """Children ended, with these statuses. If the lock is among them, it is tried again later."""
        if self._pid in reaped:
            self._fail(f"exit status {os.waitstatus_to_exitcode(reaped[self._pid])}", clock.mono())
            self.release()

    def release(self) -> None:
        """Let the machine sleep. The process ends by itself, and the keeper reaps it."""
        if self._pipe >= 0:
            os.close(self._pipe)
        self._pid, self._pipe = 0, -1

    def _take(self, now_mono: float) -> None:
        words = awake_command()
        if words is None:
            self._due_mono = now_mono + RETRY_S
            return
        read, self._pipe = os.pipe()
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            actions = [(os.POSIX_SPAWN_DUP2, *pair) for pair in ((read, 0), (null, 1), (null, 2))]
            # In its own group: Ctrl-C ends a keeper in the foreground only after its tasks.
            env = program_search.environment()
            self._pid = os.posix_spawn(words[0], words, env, file_actions=actions, setpgroup=0)
        except OSError as error:
            self._fail(str(error), now_mono)
            self.release()
        finally:
            os.close(read)
            os.close(null)

    def _fail(self, why: str, now_mono: float) -> None:
        self._due_mono = now_mono + RETRY_S
        if not self._has_failed:
            log(f"the machine may sleep while tasks run: it cannot be inhibited ({why})")
        self._has_failed = True
