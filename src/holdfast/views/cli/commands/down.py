"""holdfast down: no more keeper; running tasks finish under their runners."""

from __future__ import annotations

import os
import signal

from holdfast import clock, paths
from holdfast.errors import DiskFull, HoldfastError, Unanswered
from holdfast.model.status import BY_DOWN, ENDS, PARKED, Status
from holdfast.packet import load
from holdfast.store import atomic, audit, process
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet
from holdfast.views.ask import ask
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.show import amounts, out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LEAVE_S = 10.0
#: How long `--now` waits for what it asked for: an agent that does not care for the polite signal gets half a minute.
_PARK_S = 60.0
#: After this long it says for whom it waits.
_TELL_S = 1.0

COMMAND = Command(
    name="down",
    summary="Stop the keeper and start nothing new. Running tasks finish under their runners.",
    examples=("holdfast down", "holdfast down --now"),
    options=(
        Option(
            flags=("--now",),
            dest="now",
            kind="flag",
            help="Also interrupt every running task and wait until it is; 'resume' goes on.",
        ),
        JSON.evolve(help="Print the status of the home, as 'status' does."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Write the flag durably, then send the keeper away."""
    home = Home(paths.ensure_home(paths.home()))
    try:
        atomic.write_json(home.down, {"schema": "holdfast.down/1", "at": clock.iso_now()}, durable=True)
    except DiskFull as error:
        from holdfast.views import full_disk

        packets = [home.packet(task_id) for task_id in load.task_ids(home)] if values["now"] else []
        raise full_disk.with_advice(error, packets) from error
    atomic.remove(home.up)
    audit.append(home, {"operation": "home.down", "by": audit.whoami()})
    _dismiss(home.keeper_lock, "keeper")
    _dismiss(home.seed_lock, "seed")
    exit_status = interrupt_all(home, within_s=_PARK_S) if values["now"] else 0
    if values["now"]:
        _close_windows(home)
    if values["json"]:
        from holdfast.views.cli.commands import status

        out.data(status.look(home))
    else:
        # Those that --now has asked were told of one by one.
        _say_goodbye(home, [] if values["now"] else _going(home))
    return exit_status


def _close_windows(home: Home) -> None:
    """Nothing is at work any more, so there is nothing to look at."""
    from holdfast.views import tmux

    try:
        tmux.Server(home).shut()
    except tmux.TmuxError as error:
        out.talk(f"warning: {error}")


def _going(home: Home) -> list[str]:
    return [task_id for task_id in load.task_ids(home) if locks.is_held(home.packet(task_id).runner_lock)]


def _say_goodbye(home: Home, going: list[str]) -> None:
    count = len(going)
    on = f"; {amounts.plural(count, 'task')} {'goes' if count == 1 else 'go'} on without it" if going else ""
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


def interrupt_all(home: Home, *, within_s: float) -> int:
    """Interrupt every task that is at work, and wait until it is so. Those that cannot be asked, or take longer, are named.
    Returns the exit status."""
    asked: list[Packet] = []
    exit_status = 0
    for task_id in load.task_ids(home):
        packet = home.packet(task_id)
        try:
            state = Status(load.read_manifest(packet)["status"])
            if state in ENDS or state in PARKED:
                continue
            asked.append(packet)
            ask(packet, "interrupt", {"reason": BY_DOWN})
        except Unanswered:
            continue  # the request stands, so there is something to wait for
        except (HoldfastError, ValueError) as error:
            if asked and asked[-1] is packet:
                asked.pop()
            out.talk(f"error: {task_id}: {error}")
            exit_status = 1
    return max(exit_status, _await(asked, within_s))


def _await(asked: list[Packet], within_s: float) -> int:
    """Tell of each task once it is parked and nobody drives it any more."""
    began_mono = clock.mono()
    left, has_told = list(asked), False
    while left:
        for packet in list(left):
            status = _settled(packet)
            if status is not None:
                left.remove(packet)
                _tell(packet, status)
        waited_s = clock.mono() - began_mono
        if waited_s > within_s:
            break
        if left and waited_s > _TELL_S and not has_told:
            has_told = True
            names = ", ".join(packet.task_id for packet in left)
            out.talk(f"waiting for {names}: an agent gets time to leave (Ctrl-C leaves it to its runner)")
        clock.sleep(0.02)
    for packet in left:
        out.talk(
            f"{packet.task_id} is still being interrupted; 'holdfast wait {packet.task_id}' returns when it is"
        )
    return Unanswered.exit_status if left else 0


def _settled(packet: Packet) -> Status | None:
    """What it came to, once its runner has left; None before. One that was removed meanwhile is as good as killed."""
    try:
        if locks.is_held(packet.runner_lock):
            return None
        status = Status(load.read_manifest(packet)["status"])
    except (HoldfastError, ValueError):
        return None if os.path.isdir(packet.path) else Status.KILLED
    return status if status in ENDS or status in PARKED else None


def _tell(packet: Packet, status: Status) -> None:
    if status is Status.INTERRUPTED:
        out.talk(f"interrupted {packet.task_id}; 'holdfast resume {packet.task_id}' goes on")
    else:
        out.talk(f"{packet.task_id} is {status}")
