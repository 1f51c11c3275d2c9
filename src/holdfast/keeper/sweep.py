"""The sweep: tasks that ended a while ago are put into the archive, where the settings ask for it (`archive_after`).

The work is done by `holdfast archive` in a process of its own, so that a slow disk holds nobody up.
"""

from __future__ import annotations

import subprocess
import sys

from holdfast import clock
from holdfast.keeper.loop import LoopSpec

#: A look at all tasks, whoever ended them.
EVERY_S = 300.0
#: After a task's end, its runner needs a moment to leave.
_MOMENT_S = 0.5


class Sweep:
    """Puts away what is done."""

    def __init__(self) -> None:
        self._due_mono = clock.mono()
        self._running: subprocess.Popen[bytes] | None = None

    def note_end(self, spec: LoopSpec) -> None:
        """A task of the queue has ended."""
        if spec.archive_after_s is not None:
            self._due_mono = min(self._due_mono, clock.mono() + spec.archive_after_s + _MOMENT_S)

    def step(self, spec: LoopSpec) -> float:
        """Archive what is due. Returns the seconds until the next look."""
        if spec.archive_after_s is None:
            return EVERY_S
        left_s = self._due_mono - clock.mono()
        if left_s > 0:
            return left_s
        if self._running is not None and self._running.poll() is None:
            return 1.0
        self._due_mono = clock.mono() + EVERY_S
        words = ["archive", "--all-ended", "--older-than", f"{spec.archive_after_s}s"]
        self._running = subprocess.Popen(
            [sys.executable, "-P", "-m", "holdfast", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return EVERY_S
