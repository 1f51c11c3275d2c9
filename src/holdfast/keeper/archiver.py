"""Archive tasks that ended a while ago, if the settings say so (`archive_after`).

`holdfast archive` does the work in a separate process, so that a slow disk does not block the keeper.
"""

from __future__ import annotations

import subprocess

from holdfast import clock, own_python
from holdfast.keeper.loop_state import LoopSpec

#: How often all tasks are checked.
EVERY_S = 300.0
#: After a task's end, its runner needs a moment to exit.
_MOMENT_S = 0.5


class Archiver:
    """Starts `holdfast archive` when it is due."""

    def __init__(self) -> None:
        self._due_mono = clock.mono()
        self._running: subprocess.Popen[bytes] | None = None

    def note_end(self, spec: LoopSpec) -> None:
        """A task of the queue has ended."""
        if spec.archive_after_s is not None:
            self._due_mono = min(self._due_mono, clock.mono() + spec.archive_after_s + _MOMENT_S)

    def step(self, spec: LoopSpec) -> float:
        """Archive what is due. Returns the seconds until the next check."""
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
            own_python.command("holdfast", *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return EVERY_S
