"""holdfast down: no more keeper; running tasks finish under their runners."""

from __future__ import annotations

import signal

from holdfast import clock, paths
from holdfast.errors import HoldfastError, Unanswered
from holdfast.model.status import ENDS, Status
from holdfast.packet import load
from holdfast.store import atomic, process
from holdfast.store import lock as locks
from holdfast.store.layout import Home
from holdfast.views.ask import ask
from holdfast.views.cli import out, words
from holdfast.views.cli.spec import JSON, Command, Option

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
        JSON.evolve(help="Print the status of the home, as 'status' does."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Write the flag durably, then send the keeper away."""
    home = Home(paths.ensure_home(paths.home()))
    atomic.write_json(home.down, {"schema": "holdfast.down/1", "at": clock.iso_now()}, durable=True)
    atomic.remove(home.up)
    _dismiss(home.keeper_lock, "keeper")
    _dismiss(home.seed_lock, "seed")
    exit_status = _interrupt_all(home) if values["now"] else 0
    if values["now"]:
        _close_windows(home)
    if values["json"]:
        from holdfast.views.cli.commands import status

        out.data(status.look(home))
    elif not values["now"]:
        _say_goodbye(home)
    return exit_status


def _close_windows(home: Home) -> None:
    """Nothing is at work any more, so there is nothing to look at."""
    from holdfast.views import tmux

    try:
        tmux.Server(home).shut()
    except tmux.TmuxError as error:
        out.talk(f"warning: {error}")


def _say_goodbye(home: Home) -> None:
    going = [task_id for task_id in load.task_ids(home) if locks.is_held(home.packet(task_id).runner_lock)]
    count = len(going)
    on = f"; {words.plural(count, 'task')} {'goes' if count == 1 else 'go'} on without it" if going else ""
    out.talk(f"the keeper of {home.path} is stopped{on}. 'holdfast up', or the next 'run', starts it again")


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
            out.talk(f"error: {task_id}: {error}")
            status = 1
    for task_id in asked:
        out.talk(f"interrupted {task_id}; 'holdfast resume {task_id}' goes on")
    return status
