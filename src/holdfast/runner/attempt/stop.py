"""Stop an agent: signal its process group, in the adapter's order and pauses, by its verified identity.

Before the KILL, all processes of the attempt are stopped (sweep.py): no tool in another session
continues when the agent dies.

The intent is journalled before the first signal. If the runner is killed, the next one starts over with the
first signal.
"""

from __future__ import annotations

import signal

from holdfast import clock
from holdfast.agents.base import StopStep
from holdfast.failpoints import failpoint
from holdfast.model.process import ProcessIdentity
from holdfast.store import process

_AFTER_LAST_S = 5.0


class Stop:
    """One stop, signal by signal; it never blocks."""

    def __init__(self, agent: ProcessIdentity, steps: tuple[StopStep, ...], pause_s: float | None) -> None:
        self._agent = agent
        self._steps = steps
        self._pause_s = pause_s
        self._next = 0
        self._due_mono = 0.0
        self._is_hurried = False

    def due_in_s(self, now_mono: float) -> float:
        """Time until the next signal."""
        return self._due_mono - now_mono

    @property
    def is_kill_next(self) -> bool:
        """Whether the next signal is one that the agent cannot handle."""
        return self._step.signal == "KILL"

    @property
    def _step(self) -> StopStep:
        return self._steps[min(self._next, len(self._steps) - 1)]

    def hurry(self) -> None:
        """Send the last signal now. Once: it may be sent already, and has its own pause."""
        if not self._is_hurried and self._next < len(self._steps):
            self._next, self._due_mono = len(self._steps) - 1, 0.0
        self._is_hurried = True

    def send(self) -> None:
        """Send the next signal of the adapter's list; the last one is repeated."""
        now_mono = clock.mono()
        step = self._step
        failpoint("stop.before_signal")
        signal_group(self._agent, signal.Signals[f"SIG{step.signal}"])
        failpoint("stop.after_signal")
        is_last = self._next >= len(self._steps) - 1
        pause_s = _AFTER_LAST_S if is_last else step.pause_s if self._pause_s is None else self._pause_s
        self._due_mono = now_mono + pause_s
        self._next += 1


def signal_group(agent: ProcessIdentity, number: signal.Signals) -> None:
    """Signal the agent's process group, and wake it if it is stopped.

    It called setsid: its pid is the group's id.
    """
    if process.send_to_group(agent, number) and number is not signal.SIGKILL:
        process.send_to_group(agent, signal.SIGCONT)
