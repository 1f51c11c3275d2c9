"""Stopping an agent: signals to its own group, in the adapter's order and pauses, by its verified identity.

The intent is in the journal before the first signal. A runner that is killed on the way leaves it there, and the next one
starts over with the first signal: the stop stands.
"""

from __future__ import annotations

import os
import signal

from holdfast import clock
from holdfast.agents.base import StopStep
from holdfast.failpoints import failpoint
from holdfast.model.process import ProcessIdentity
from holdfast.store.process import is_alive

_AFTER_LAST_S = 5.0


class Stop:
    """One stop, in steps that never block."""

    def __init__(self, agent: ProcessIdentity, steps: tuple[StopStep, ...], pause_s: float | None) -> None:
        self.agent = agent
        self.steps = steps
        self.pause_s = pause_s
        self._next = 0
        self._due_mono = 0.0

    def step(self) -> float:
        """Send the signal that is due. Returns the seconds until the next one is."""
        now_mono = clock.mono()
        if now_mono >= self._due_mono:
            step = self.steps[min(self._next, len(self.steps) - 1)]
            failpoint("stop.before_signal")
            signal_group(self.agent, signal.Signals[f"SIG{step.signal}"])
            failpoint("stop.after_signal")
            is_last = self._next >= len(self.steps) - 1
            pause_s = _AFTER_LAST_S if is_last else step.pause_s if self.pause_s is None else self.pause_s
            self._due_mono = now_mono + pause_s
            self._next += 1
        return self._due_mono - now_mono


def signal_group(agent: ProcessIdentity, number: signal.Signals) -> None:
    """Signal the agent's process group. It called setsid, so its pid is the group's; a frozen one is woken."""
    if not is_alive(agent):
        return
    try:
        os.killpg(agent.pid, number)
        if number is not signal.SIGKILL:
            os.killpg(agent.pid, signal.SIGCONT)
    except (ProcessLookupError, PermissionError):
        return
