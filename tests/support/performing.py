"""A runner's context in the test process, and its loop without the sleep."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast import clock
from holdfast.errors import DiskFull
from holdfast.runner.gather import Gatherer
from holdfast.runner.ledger import Ledger
from holdfast.runner.perform.context import Context
from holdfast.runner.perform.performer import perform
from holdfast.runner.plan.facts import Now
from holdfast.runner.plan.planner import plan
from holdfast.runner.plan.step import Step
from holdfast.runner.wake.waiter import DETACH, Waiter


@contextmanager
def context_of(ledger: Ledger) -> Iterator[Context]:
    """A runner's context; afterwards the signals of the test process are as before."""
    before = {each: signal.getsignal(each) for each in DETACH}
    waiter = Waiter(ledger.packet)
    context = Context(ledger, waiter)
    try:
        yield context
    finally:
        context.close()
        waiter.close()
        for each, handler in before.items():
            signal.signal(each, handler)


class Driver:
    """Takes steps as the loop does."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._gatherer = Gatherer(context)

    def plan(self) -> Step:
        """The next step."""
        facts = self._gatherer.gather(set())
        return plan(self.context.ledger.task, facts, Now(wall=clock.now(), mono=clock.mono()))

    def take_step(self) -> Step:
        """Plan and perform one step."""
        step = self.plan()
        perform(self.context, step)
        return step

    def drive(self, until: Callable[[], bool]) -> list[str]:
        """Take steps until the condition holds; returns their names, with `full` where the disk was full."""
        taken: list[str] = []
        while not until():
            step = self.plan()
            taken.append(type(step).__name__)
            try:
                perform(self.context, step)
            except DiskFull:
                self.context.forget()
                taken.append("full")
        return taken
