"""holdfast down: no more keeper; running tasks finish under their runners."""

from __future__ import annotations

import signal
import sys

from holdfast import clock, paths
from holdfast.errors import HoldfastError, Unanswered
from holdfast.model.status import ENDS, Status
from holdfast.packet import load
from holdfast.store import atomic, process
from holdfast.store import lock as locks
from holdfast.store.layout import Home
from holdfast.views.ask import ask
from holdfast.views.cli import out
from holdfast.views.cli.spec import Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LEAVE_S = 10.0

COMMAND = Command(
    name="down",
    summary="Stop the keeper and start nothing new. Running tasks finish under their runners.",
    examples=("holdfast down", "holdfast down --now"),
    options=(
        Option(
            flags=("--now",),
            dest="now",
            kind="flag",
            help="Also interrupt every running task; 'resume' goes on.",
        ),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Write the flag durably, then send the keeper away."""
    home = Home(paths.ensure_home(paths.home()))
    atomic.write_json(home.down, {"schema": "holdfast.down/1", "at": clock.iso_now()}, durable=True)
    atomic.remove(home.up)
    _dismiss(home.keeper_lock, "keeper")
    _dismiss(home.seed_lock, "seed")
    if values["now"]:
        return _interrupt_all(home)
    going = [task_id for task_id in load.task_ids(home) if locks.is_held(home.packet(task_id).runner_lock)]
    on = f"; {len(going)} running go on without it" if going else ""
    out.talk(f"the keeper of {home.path} is stopped{on}. 'holdfast up', or the next 'run', starts it again")
    return 0


def _dismiss(lock: str, role: str) -> None:
    """SIGTERM to the owner, by its verified identity, and wait until the lock is free."""
    ends_mono = clock.mono() + _LEAVE_S
    while locks.is_held(lock):
        owner = locks.owner(lock)
        if owner is not None:
            process.send(owner, signal.SIGTERM)
            process.send(owner, signal.SIGCONT)
        if clock.mono() > ends_mono:
            raise Unanswered(
                f"the {role} did not leave within {_LEAVE_S:.0f}s", hint="it leaves when it wakes up"
            )
        clock.sleep(0.02)


def _interrupt_all(home: Home) -> int:
    """Ask every task that is at work; those that cannot be asked are named."""
    asked: list[str] = []
    status = 0
    for task_id in load.task_ids(home):
        packet = home.packet(task_id)
        try:
            state = Status(load.read_manifest(packet)["status"])
            if state in ENDS or state in (Status.QUEUED, Status.INTERRUPTED):
                continue
            ask(packet, "interrupt", {"reason": "holdfast down --now"})
            asked.append(task_id)
        except (HoldfastError, ValueError) as error:
            print(f"error: {task_id}: {error}", file=sys.stderr)
            status = 1
    for task_id in asked:
        print(f"interrupted {task_id}; 'holdfast resume {task_id}' goes on", file=sys.stderr)
    return status
