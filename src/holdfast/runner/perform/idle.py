"""Steps in which nothing is done: the loop sleeps or leaves afterwards."""

from __future__ import annotations

from holdfast import clock
from holdfast.failpoints import failpoint
from holdfast.runner.perform.context import Context
from holdfast.runner.plan.facts import Now
from holdfast.runner.plan.step import Leave, Watch


def watch(context: Context, step: Watch) -> None:
    """Show what the task waits for. No agent has to be stopped: note when to judge each execution again."""
    ledger = context.ledger
    if ledger.observed.waiting_for != step.waiting_for:
        ledger.observed.waiting_for = step.waiting_for
        ledger.show_later()
    if ledger.task.open_executions:
        from holdfast.runner.plan import running

        now = Now(wall=clock.now(), mono=clock.mono())
        for execution, judging in context.observers.undecided():
            assert judging.pending is not None
            judging.follow(running.judge_again_s(ledger.task, execution, judging.pending.judgement, now))
    failpoint("step.watch")


def leave(context: Context, step: Leave) -> None:
    """Nothing is left to do."""
    failpoint("step.leave")
