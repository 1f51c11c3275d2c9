"""One step of a task: from the facts alone, whoever was here before.

`Steps.step` is called again and again. Each call looks at the journal's task and at the attempts' directories, does one
thing, and says how long the runner may sleep. Nothing that decides is kept in memory, so a killed runner's successor
takes the same next step.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.model.status import Status
from holdfast.runner.ledger import Ledger
from holdfast.runner.loop.waiter import Waiter
from holdfast.runner.settling import Settling
from holdfast.runner.stage import finish
from holdfast.runner.stages import Stages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.runner.watching import Watching

_AT_ONCE = 0.0
#: A task of the queue that waited for longer goes on through the queue.
_LONG_S = 60.0


class Steps:
    """Takes a task forward."""

    def __init__(self, ledger: Ledger, waiter: Waiter, env: dict[str, Any]) -> None:
        self.ledger = ledger
        self._waiter = waiter
        self._watching: Watching | None = None
        self.settling = Settling(ledger)
        self.stages = _stages(ledger)(ledger, self.watching, self.settling, env)
        #: When the present wait is over on the clock that nobody sets, and which wait that is.
        self._wake_mono = 0.0
        self._wake_of: tuple[str, str | None] | None = None

    def watching(self) -> Watching:
        """What watches the open attempts. Loaded when there is one: without a seed its agent is being started meanwhile."""
        if self._watching is None:
            from holdfast.runner.watching import Watching

            self._watching = Watching(self.ledger, self._waiter)
        return self._watching

    def step(self, ready: set[str]) -> float | None:
        """Do what is next. Returns the seconds until the next step, or None when a runner has nothing more to do."""
        task = self.ledger.task
        if task.open_attempts:
            return self.watching().step(ready)
        self.stages.reap_recorders()
        if task.chore is not None:
            return self.stages.take_chore(task.chore)
        if task.is_unsettled:
            return self.settling.step()
        match task.status:
            case Status.SPAWNING | Status.RUNNING:
                return self.stages.start()
            case Status.WAITING:
                return self._sleep()
            case Status.CRASHED | Status.HUNG:
                return self.settling.plan_again()
            case Status.COMPLETING:
                return self.stages.complete()
            case Status.TIMEOUT:
                self.ledger.move(Status.ABANDONED, task.reason)
                return _AT_ONCE
            case Status.QUEUED:
                return None
            case Status.INTERRUPTED:
                finish.report(self.ledger)
                return None
            case Status.COMPLETED | Status.FAILED | Status.ABANDONED | Status.KILLED:
                finish.end_task(self.ledger)
                return None

    def use(self, env: dict[str, Any]) -> None:
        """A retry brought another environment."""
        self.stages.env = env

    def close(self) -> None:
        """Let go of the agents; they live on."""
        if self._watching is not None:
            self._watching.close()

    def leave(self) -> None:
        """For good: whoever comes next has to find everything free."""
        self.close()
        self.stages.close()

    def _sleep(self) -> float:
        task = self.ledger.task
        wake = clock.parse_iso(task.wake_at) if task.wake_at else 0.0
        left_s, now_mono = wake - clock.now(), clock.mono()
        if self._wake_of != (task.moved_at, task.wake_at):
            # A clock that was set back since must not make the wait longer than it was meant to be.
            self._wake_of = (task.moved_at, task.wake_at)
            self._wake_mono = now_mono + min(left_s, wake - clock.parse_iso(task.moved_at))
        left_s = min(left_s, self._wake_mono - now_mono)
        if left_s > 0:
            if self.stages.heeds_mark():
                return _AT_ONCE
            # Wall time can jump: never sleep on one look at it for longer than a minute; nor on one at the marks.
            return min(left_s, task.spec.limits.base_interval_s, 60.0)
        if task.spec.queue is not None and wake - clock.parse_iso(task.moved_at) >= _LONG_S:
            # Others have its slot by now: it takes its turn again, before those that have not begun.
            self.ledger.move(Status.QUEUED, "the wait is over")
        else:
            self.ledger.move(Status.SPAWNING, "the wait is over")
        return _AT_ONCE


def _stages(ledger: Ledger) -> type[Stages]:
    spec = ledger.task.spec
    if spec.pipeline is None and spec.workspace == "in_place" and spec.quality is None:
        return Stages
    from holdfast.runner.packet_stages import PacketStages  # only these pay for the import

    return PacketStages
