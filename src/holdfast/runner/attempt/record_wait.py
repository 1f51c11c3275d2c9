"""Wait for a record that the recorder owes: the identity of the agent, or how it ended."""

from __future__ import annotations

import signal

from holdfast import clock
from holdfast.runner.plan.facts import ExecutionFacts
from holdfast.store import lock_holders, process

#: A recorder that owes a record for longer than this is woken with SIGCONT, and again after this time.
OVERDUE_S = 2.0


def is_overdue(awaited_s: float, since_woken_s: float) -> bool:
    """Whether the recorder has to be woken."""
    return awaited_s > OVERDUE_S and since_woken_s > OVERDUE_S


class RecordWait:
    """Since when a record is awaited, and when its writer was last woken."""

    def __init__(self) -> None:
        self._since_mono = clock.mono()
        self._woken_mono = float("-inf")

    @property
    def awaited_s(self) -> float:
        """How long it is awaited."""
        return clock.mono() - self._since_mono

    def facts(self, *, is_watched: bool) -> ExecutionFacts:
        """The wait, for the planner."""
        now_mono = clock.mono()
        awaited_s = now_mono - self._since_mono
        return ExecutionFacts(
            is_watched=is_watched,
            awaited_s=awaited_s,
            is_overdue=is_overdue(awaited_s, now_mono - self._woken_mono),
        )

    def wake(self, lock: str) -> float:
        """SIGCONT to every process that holds the lock; returns how long the record has been awaited."""
        self._woken_mono = clock.mono()
        # Found by the lock, not by its text: a stopped process may not have signed it yet.
        for pid in lock_holders.holders(lock):
            holder = process.identify(pid)
            if holder is not None:
                process.send(holder, signal.SIGCONT)
        return self._woken_mono - self._since_mono
