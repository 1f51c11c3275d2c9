"""Lives in which a person takes the agent's session over: handed back, and lost."""

from __future__ import annotations

import os

from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.packet import inbox
from holdfast.store import lock as locks
from tests.crash.drive import Case, deadline
from tests.support import processes
from tests.support.terminal import Terminal

#: Whoever is killed on the way types the command again, a few times.
_TRIES = 4
_TRY_S = 25.0


def hand_back(case: Case) -> None:
    """Take the session over, and hand it back with a message."""
    for _ in range(_TRIES):
        if case.status in (Status.RUNNING, Status.INTERRUPTED) and _takes_over(case, "!true\nexit\n") == 0:
            return
        _settle(case)
    case.fail("it was not taken over and handed back")


def lose(case: Case) -> None:
    """Take the session over, and kill the command."""
    for _ in range(_TRIES):
        _takes_over(case, "!kill -9 $(ps -o ppid= -p $(ps -o ppid= -p $PPID))\n")
        _settle(case)
        if case.manifest.get("takeover") and case.status is Status.INTERRUPTED:
            return
    case.fail("it was not taken over and lost")


def _takes_over(case: Case, typed: str) -> int:
    terminal = Terminal("takeover", "task", "-m", "go on", env=case.env)
    is_over = deadline(_TRY_S)
    try:
        terminal.press(typed)
        while terminal.poll(0.02):
            case.tend()
            if is_over():
                case.fail(f"the takeover did not end:\n{terminal.text}")
        return terminal.finish()
    finally:
        terminal.kill()


def _settle(case: Case) -> None:
    """Wait until the task is at rest, or its agent works."""
    is_over = deadline(_TRY_S)
    while inbox.names(case.packet) or not (
        (case.status is Status.INTERRUPTED and not locks.is_held(case.packet.runner_lock))
        or (case.status is Status.RUNNING and case.runner is not None)
    ):
        case.tend()
        case.pause()
        if is_over():
            case.fail("it does not come to rest after the takeover")


def check(case: Case, task: Task) -> None:
    """Its end is journalled, and nothing of it runs."""
    assert task.takeover is not None
    assert task.open_takeover is None
    folder = os.path.join(case.packet.path, "attempts")
    assert processes.marked(folder) == []
    with open(case.packet.journal, "rb") as file:
        lines = file.read().splitlines()
    begun = sum(b'"type":"takeover.started"' in line for line in lines)
    ended = sum(b'"type":"takeover.ended"' in line for line in lines)
    assert begun == ended, (begun, ended)


def is_lost(case: Case) -> bool:
    """Whether the task rests after a lost takeover."""
    return case.status is Status.INTERRUPTED and not inbox.names(case.packet)
