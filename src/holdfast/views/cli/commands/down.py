"""holdfast down: stop the keeper; running tasks finish under their runners."""

from __future__ import annotations

import os
import signal

from holdfast import clock, paths
from holdfast.errors import DiskFull, HoldfastError, NotFound, RequestRefused, Unanswered
from holdfast.model.status import DOWN_COMMAND, ENDS, PARKED, Cause, Status
from holdfast.packet import load
from holdfast.store import atomic, audit, lock_holders, process
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.show import out
from holdfast.views.requests import Posted, post_request
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.process import ProcessIdentity

_LEAVE_S = 10.0
#: How long `--now` waits: an agent that ignores the first signal is killed after half a minute.
_INTERRUPT_S = 60.0
#: After this time, print which tasks it waits for, and how many by name.
_PRINT_S, _NAMED = 1.0, 10

COMMAND = Command(
    name="down",
    summary="Stop the keeper. Running tasks keep running.",
    description="Nothing new is started until 'holdfast up' or the next 'run'.",
    examples=("holdfast down", "holdfast down --now"),
    options=(
        Option(
            flags=("--now",),
            dest="now",
            kind="flag",
            help="Also interrupt running tasks and wait; 'resume' continues them.",
        ),
        JSON.evolve(help="Print what 'status --json' prints."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Write the flag durably, then stop the keeper."""
    process.require_proc()
    home = Home(paths.ensure_home(paths.home()))
    try:
        atomic.write_json(home.down, {"schema": "holdfast.down/1", "at": clock.iso_now()}, durable=True)
    except DiskFull as error:
        from holdfast.views import disk_full

        packets = [home.packet(task_id) for task_id in load.task_ids(home)] if values["now"] else []
        raise disk_full.with_kill_hint(error, packets) from error
    atomic.remove(home.up)
    audit.append(home, {"operation": "home.down", "by": audit.whoami()})
    _stop_processes({"keeper": home.keeper_lock, "seed": home.seed_lock})
    exit_status = interrupt_all(home, within_s=_INTERRUPT_S) if values["now"] else 0
    if values["now"]:
        _close_windows(home)
    if values["json"]:
        from holdfast.views.facts import home_status

        out.data(home_status.gather(home))
    else:
        # With --now, each task was reported already.
        _print_stopped(home, [] if values["now"] else _running(home))
    return exit_status


def _close_windows(home: Home) -> None:
    """Close all tmux windows: no task is running."""
    from holdfast.views import tmux

    try:
        tmux.Server(home).shut()
    except tmux.TmuxError as error:
        out.talk(f"warning: {error}")


def _running(home: Home) -> list[str]:
    return [task_id for task_id in load.task_ids(home) if locks.is_held(home.packet(task_id).runner_lock)]


def _print_stopped(home: Home, running: list[str]) -> None:
    verb = "keeps" if len(running) == 1 else "keep"
    tasks = f"; {amounts.plural(len(running), 'task')} {verb} running" if running else ""
    out.talk(
        f"the keeper of {home.path} is stopped{tasks}. 'holdfast up', or the next 'run', starts it again"
    )


def _stop_processes(by_role: dict[str, str]) -> None:
    """Send SIGTERM to the owners of locks, and wait until all locks are free and their owners have exited."""
    ends_mono = clock.mono() + _LEAVE_S
    told: dict[str, ProcessIdentity] = {}
    while left := [
        role
        for role, lock in by_role.items()
        if locks.is_held(lock) or (role in told and process.is_alive(told[role]))
    ]:
        for role in left:
            if not locks.is_held(by_role[role]):
                continue  # it is exiting
            lock = by_role[role]
            # The name in the file may be forged; the kernel knows who holds it.
            owner = lock_holders.holder(lock)
            if owner is not None:
                told[role] = owner
                process.send(owner, signal.SIGTERM)
                process.send(owner, signal.SIGCONT)
        if clock.mono() > ends_mono:
            raise Unanswered(
                f"the {left[0]} did not exit within {_LEAVE_S:.0f}s", hint="it will when it gets the signal"
            )
        clock.sleep(0.02)


def _true_state(packet: Packet) -> Status:
    """The state of a task; that of its journal if a runner is there, and the manifest says that none is
    needed: an agent can write it."""
    state = Status(load.read_true(packet)["status"])
    is_asleep = state in ENDS or state in PARKED
    return load.fold(packet).status if is_asleep and locks.is_held(packet.runner_lock) else state


def interrupt_all(home: Home, *, within_s: float) -> int:
    """Interrupt all running tasks at once and wait. Prints failures and timeouts; returns the exit status."""
    requested: list[Posted] = []
    exit_status = 0
    for task_id in load.task_ids(home):
        packet = home.packet(task_id)
        try:
            state = _true_state(packet)
            if state in ENDS or state in PARKED:
                continue
            arguments = {"reason": DOWN_COMMAND, "cause": Cause.DOWN}
            requested.append(post_request(packet, "interrupt", arguments, wakes=True))
        except (HoldfastError, ValueError) as error:
            out.talk(f"error: {task_id}: {error}")
            exit_status = 1
    return max(exit_status, _await(requested, within_s))


def _await(requested: list[Posted], within_s: float) -> int:
    """Report each task when its runner has exited; returns the exit status."""
    began_mono = clock.mono()
    left, has_printed, exit_status = list(requested), False, 0
    while left:
        pass_mono = clock.mono()
        for posted in list(left):
            packet = posted.packet
            try:
                status = _final_status(packet) if _is_answered(posted) else None
            except NotFound:
                status = Status.KILLED  # it was removed meanwhile
            except HoldfastError as error:
                left.remove(posted)
                out.talk(f"error: {packet.task_id}: {error}")
                exit_status = 1
                continue
            if status is not None:
                left.remove(posted)
                _print_status(packet, status)
        waited_s = clock.mono() - began_mono
        if waited_s > within_s:
            break
        if left and waited_s > _PRINT_S and not has_printed:
            has_printed = True
            out.talk(f"waiting for {_names(left)} to stop (Ctrl-C stops waiting, not the interrupt)")
        # With hundreds of tasks, the runners need the processor more than we do.
        clock.sleep(max(0.02, clock.mono() - pass_mono))
    for posted in left:
        task_id = posted.packet.task_id
        out.talk(f"still interrupting {task_id}; 'holdfast wait {task_id}' waits for it")
    return Unanswered.exit_status if left else exit_status


def _is_answered(posted: Posted) -> bool:
    """Whether its runner has answered. A task that ended before it was asked needs no interrupt."""
    try:
        return posted.is_answered()
    except RequestRefused:
        if not load.fold(posted.packet).has_ended:
            raise
        return True


def _names(requested: list[Posted]) -> str:
    names = ", ".join(posted.packet.task_id for posted in requested[:_NAMED])
    more = len(requested) - _NAMED
    return f"{names} and {more} more" if more > 0 else names


def _final_status(packet: Packet) -> Status | None:
    """The task's status once its runner has exited, else None. A task removed meanwhile counts as killed."""
    try:
        if locks.is_held(packet.runner_lock):
            return None
        status = Status(load.read_manifest(packet)["status"])
    except (HoldfastError, ValueError):
        return None if os.path.isdir(packet.path) else Status.KILLED
    return status if status in ENDS or status in PARKED else None


def _print_status(packet: Packet, status: Status) -> None:
    if status is Status.INTERRUPTED:
        out.talk(f"interrupted {packet.task_id}; 'holdfast resume {packet.task_id}' continues it")
    else:
        out.talk(f"{packet.task_id} is {status}")
