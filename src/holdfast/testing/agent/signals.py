"""Reactions to TERM, INT, HUP and other signals named by the scenario.

Every disposition is set, because inherited ones (nohup, a shell's background job) would make a scenario
behave differently depending on its starter.
"""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from holdfast.testing.agent.play import Play

ALWAYS = ("INT", "TERM", "HUP")


def install(play: Play, chosen: dict[str, Any]) -> None:
    """Set the action of each signal: from the scenario, or else that of the imitated CLI."""
    for name in dict.fromkeys([*ALWAYS, *chosen]):
        action = chosen.get(name, "agent")
        if action == "agent":
            action = play.dialect.signal_actions.get(name, "default")
        if action == "default":
            signal.signal(number(name), signal.SIG_DFL)
        elif action == "ignore":
            ignore([name])
        elif action == "interrupt":
            signal.signal(number(name), _Interrupt(play))
        else:
            signal.signal(number(name), _Leave(play, action["exit"], action.get("after_s", 0)))


def ignore(names: list[str]) -> None:
    """Ignore these signals."""
    for name in names:
        # An empty handler instead of SIG_IGN, which children would inherit.
        signal.signal(number(name), _nothing)


def number(name: str) -> signal.Signals:
    """The signal with this name, without SIG."""
    return signal.Signals["SIG" + name]


def die_of(name: str) -> None:
    """End this process with a signal, whatever handler was installed."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    which = number(name)
    if name not in ("KILL", "STOP"):
        signal.signal(which, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [which])
    os.kill(os.getpid(), which)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    pass


class _Leave:
    """Exits with a status, immediately or after a delay; the first signal counts."""

    def __init__(self, play: Play, code: int, after_s: float) -> None:
        self.play = play
        self.code = code
        self.after_s = after_s
        self.is_leaving = False

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if self.is_leaving:
            return
        self.is_leaving = True
        time.sleep(self.after_s)
        self.play.leave(self.code, signal=signal.Signals(number).name)


class _Interrupt:
    """Ends as the CLI does when its user interrupts it: with a result that says so."""

    def __init__(self, play: Play) -> None:
        self.play = play

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if self.play.out.is_writing or self.play.is_starting_tool:
            # In the middle of a line, or with a tool that cannot be killed yet: check again later. A timer
            # instead of a flag, so that the code that writes or starts need not know about signals.
            signal.signal(signal.SIGALRM, self)
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            return
        self.play.kill_tool()
        self.play.leave(self.play.dialect.interrupted(), signal="SIGINT")
