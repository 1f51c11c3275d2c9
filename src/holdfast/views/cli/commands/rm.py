"""holdfast rm: remove tasks and their files."""

from __future__ import annotations

import os

from holdfast import clock, paths
from holdfast.errors import CorruptFile, HoldfastError, NotFound, NotPossible, Unanswered
from holdfast.model.status import ENDS
from holdfast.packet import load
from holdfast.packet.remove import remove
from holdfast.queue.waiters import Waiters
from holdfast.store import audit, index
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet
from holdfast.views import retention, traces
from holdfast.views.ask import ask
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import leftovers, out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: An agent may take its time to stop: 30 s by default, then it is killed.
_STOP_S = 90.0

COMMAND = Command(
    name="rm",
    summary="Remove tasks that have ended, with all their files.",
    description="By the whole id. A task that has not ended is refused; --force stops it first. Files outside the task's directory, such as "
    "the project, are never touched. A worktree goes with its task; one with work that is not merged is refused without --force, and "
    "commits stay on its branch. What apply left out, being outside the scope, is kept as a patch in the home.",
    examples=(
        "holdfast rm 20260131-fix",
        "holdfast rm --force 20260131-fix",
        "holdfast rm $(holdfast ls -q --state killed)",
    ),
    arguments=(Argument(dest="task", metavar="TASK…", many=True, completes="task"),),
    options=(
        Option(
            flags=("--force",),
            dest="force",
            kind="flag",
            help="Stop a task that has not ended, then remove it; and give up unmerged work.",
        ),
        JSON.evolve(help="Print what was removed and what was not."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Remove each; one that cannot be removed does not stop the others."""
    home = Home(paths.home())
    status, waiters = 0, Waiters(home)
    removed: list[str] = []
    kept: list[dict[str, str]] = []
    for text in dict.fromkeys(values["task"]):
        try:
            packet = _named(home, text)
            _check(packet, force=values["force"])
            left = retention.remove_worktree(packet, force=values["force"]).words
            waiters.note_removal(packet.task_id)
            daemons = leftovers.still_running(packet)  # nothing knows of them behind this

            left_in_home = traces.of(packet)
            remove(packet)
            traces.clear(home, left_in_home)
            # Now, and not when somebody lists: a new task may take the id, and even the inode, before.
            index.forget(packet.home, packet.task_id)
            removed.append(packet.task_id)
            running = ", ".join(f"{pid} {command}" for pid, command in daemons.items())
            _note(home, packet.task_id, f"still running: {running}" if running else "")
            out.talk(f"removed {packet.task_id}" + (f"; {left}" if left else ""))
            if daemons:
                out.talk(f"what it left runs on: {running}")
                out.step(f"kill {' '.join(map(str, daemons))}", "end that")
        except HoldfastError as error:
            kept.append({"task": text, "code": error.code, "error": str(error), "hint": error.hint})
            out.complain(error)
            status = status or error.exit_status
    if values["json"]:
        out.data({"schema": "holdfast.removed/1", "removed": removed, "kept": kept})
    return status


def _named(home: Home, text: str) -> Packet:
    """By its whole id: a second 'rm job' must not take job-2 for it."""
    packet = load.find(home, text, archived=True)
    if packet.task_id != text:
        raise NotFound(
            f"there is no task {text!r} in {home.path}",
            hint=f"'holdfast rm {packet.task_id}', if that is meant: here an id is not shortened",
        )
    return packet


def _note(home: Home, task_id: str, reason: str) -> None:
    entry = {"operation": "task.removed", "task_id": task_id, "by": audit.whoami()}
    audit.append(home, {**entry, "reason": reason} if reason else entry)


def _check(packet: Packet, *, force: bool) -> None:
    """It has ended, or is stopped now."""
    try:
        state = load.read_manifest(packet)["status"]
    except HoldfastError:
        _check_agents(packet)
        return
    if state in ENDS and os.path.exists(packet.task_done):
        return
    if not force:
        raise NotPossible(
            f"{packet.task_id} has not ended: it is {state}",
            hint=f"'holdfast stop {packet.task_id}' ends it; --force stops and removes it",
        )
    if state not in ENDS:
        try:
            ask(packet, "stop", {"reason": "removed with --force"})
        except CorruptFile:
            _check_agents(packet)  # no runner can ever end it
            return
    ends_mono = clock.mono() + _STOP_S
    while not os.path.exists(packet.task_done):
        if clock.mono() > ends_mono:
            raise Unanswered(
                f"{packet.task_id} was told to stop and has not ended yet", hint="remove it when it has"
            )
        clock.sleep(0.02)


def _check_agents(packet: Packet) -> None:
    """Nobody can read the task any more. Its agent may live all the same."""
    if any(locks.is_held(packet.attempt(name).lock) for name in load.attempt_names(packet)):
        raise NotPossible(
            f"{packet.task_id} cannot be read, and its agent is alive", hint="end its agent by hand first"
        )
