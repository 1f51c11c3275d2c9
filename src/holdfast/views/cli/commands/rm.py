"""holdfast rm: remove tasks and their files."""

from __future__ import annotations

import os

from holdfast import clock, paths
from holdfast.errors import (
    AmbiguousId,
    CorruptFile,
    HoldfastError,
    NotFound,
    NotPossible,
    RequestRefused,
    Unanswered,
)
from holdfast.model.status import ENDS
from holdfast.packet import asker, inbox, load
from holdfast.packet.kill_runner import Patience
from holdfast.queue.dependents import Dependents
from holdfast.store import audit, process
from holdfast.store import lock as locks
from holdfast.store.directories import restore_modes
from holdfast.store.layout import Home, Packet
from holdfast.views.cli import targets
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.show import out
from holdfast.views.removal.task import remove_task
from holdfast.views.removal.worktree import remove_worktree
from holdfast.views.requests import Insistence, Posted, post_request
from holdfast.views.text import describe, leftovers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: An agent gets 30 s to stop by default, then it is killed.
_STOP_S = 90.0

COMMAND = Command(
    name="rm",
    summary="Remove ended tasks with all their files.",
    description="Needs the full id. A task that has not ended is refused; --force stops it first. The "
    "project is never touched. A task's worktree is removed with it; one with unmerged work is refused "
    "without --force, and its commits stay on the branch. A task that failed while others wait for it is "
    "refused without --force, too. Changes outside the scope that 'apply' left out are kept as a patch in "
    "the home.",
    examples=(
        "holdfast rm 20260131-fix",
        "holdfast rm --force 20260131-fix",
        "holdfast rm --state killed",
        "holdfast rm --items 20260131-port",
    ),
    arguments=(targets.TASKS,),
    options=(
        Option(
            flags=("--force",),
            dest="force",
            kind="flag",
            help="Stop tasks that have not ended; discard unmerged work.",
        ),
        Option(
            flags=("--items",),
            dest="items",
            kind="flag",
            help="With a fan-out, also remove the tasks of its items.",
        ),
        targets.everything("ended tasks; with --force, all tasks"),
        targets.STATE,
        targets.LABEL,
        JSON.evolve(help="Print what was removed and what was not."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Remove each task; a failure does not stop the others."""
    process.require_proc()
    home = Home(paths.home())
    status, dependents = 0, Dependents(home)
    removed: list[str] = []
    kept: list[dict[str, str]] = []
    names = _names(values)
    items = _items_of(home, names) if values["items"] else {}
    names = list(dict.fromkeys(each for name in names for each in (*items.get(name, ()), name)))
    who = asker.find()
    stopping = _stop_all(home, names, who) if values["force"] else {}
    for text in names:
        try:
            packet = _find(home, text)
            asker.check(who, packet, "rm")
            _check_packet(packet)
            _check_items(text, [name for name in items.get(text, ()) if name not in removed])
            _check_ended(packet, force=values["force"], stopping=stopping.get(text))
            if not values["force"]:
                anyway = f"; 'holdfast rm --force {packet.task_id}' removes it anyway"
                dependents.check_unneeded(packet.task_id, "remove", anyway=anyway)
            worktree_note = remove_worktree(packet, force=values["force"]).note
            dependents.note_removal(packet.task_id)
            daemons = leftovers.still_running(packet)  # read now: the journal is about to be removed
            left = [] if values["items"] else _items_left(home, packet)
            remove_task(packet)
            held = dependents.note_removed(packet.task_id)
            removed.append(packet.task_id)
            running = ", ".join(f"{pid} {command}" for pid, command in daemons.items())
            _audit(home, packet.task_id, f"still running: {running}" if running else "")
            out.talk(f"removed {packet.task_id}" + (f"; {worktree_note}" if worktree_note else ""))
            for item in held:
                if item.task_id not in names:
                    out.talk(f"{item.task_id} is held now: {item.reason}")
                    out.step(f"holdfast queue retry {item.task_id}", "run it anyway")
            if left := [name for name in left if name not in names]:
                out.talk(f"the tasks of its items stay: {', '.join(left)}")
                # A label chooses no archived task.
                is_archived = not set(left).isdisjoint(load.archived_ids(home))
                chosen = " ".join(left) if is_archived else f"--label fan-out={packet.task_id}"
                out.step(f"holdfast rm {chosen}", "remove them, too")
            if daemons:
                out.talk(f"processes it left are still running: {running}")
                out.step(f"kill {' '.join(map(str, daemons))}", "kill them")
        except HoldfastError as error:
            kept.append({"task": text, "code": error.code, "error": str(error), "hint": error.hint})
            out.complain(error)
            status = status or error.exit_status
    if values["json"]:
        out.data({"schema": "holdfast.removed/1", "removed": removed, "kept": kept})
    return status


def _names(values: dict[str, Any]) -> list[str]:
    """The ids as given: each is found when it is its turn. Or those that the filters choose."""
    if values["task"] and not (values["all"] or values["state"] or values["label"]):
        return list(dict.fromkeys(values["task"]))
    chosen = targets.choose(values, "rm", fits=lambda row: values["force"] or row["status"] in ENDS)
    return [packet.task_id for packet in chosen.packets]


def _items_of(home: Home, names: list[str]) -> dict[str, list[str]]:
    """The tasks of the items of each fan-out. They are removed before it: their work is on its branch."""
    found: dict[str, list[str]] = {}
    for name in names:
        try:
            if load.fold(_find(home, name)).spec.fan_out is None:
                continue
        except HoldfastError:
            continue  # said when it is its turn
        found[name] = _item_tasks(home, name)
    return found


def _items_left(home: Home, packet: Packet) -> list[str]:
    """The tasks of the items of a fan-out that is removed without them."""
    try:
        if not describe.is_fan_out(load.read_manifest(packet)):
            return []
    except HoldfastError:
        return []
    return _item_tasks(home, packet.task_id)


def _item_tasks(home: Home, parent: str) -> list[str]:
    """The tasks of the items of a fan-out, archived ones included."""
    names = sorted({*load.task_ids(home), *load.archived_ids(home)})
    return [name for name in names if _is_item(load.wherever(home.packet(name)), parent)]


def _is_item(packet: Packet, parent: str) -> bool:
    try:
        return packet.task_id.startswith(f"{parent}.") and load.fold(packet).spec.parent == parent
    except HoldfastError:
        return False


def _check_packet(packet: Packet) -> None:
    """Raises NotPossible for a directory that no command made: what is in it may be anything."""
    signs = (packet.journal, packet.admission, packet.seals)
    if packet.path.startswith(f"{packet.home.tasks}/") and not any(map(os.path.lexists, signs)):
        raise NotPossible(
            f"{packet.path} is no task: it has neither a journal nor a record", hint="remove it by hand"
        )


def _check_items(parent: str, kept: list[str]) -> None:
    """Raises NotPossible if a task of an item was not removed: its fan-out stays with it."""
    if kept:
        raise NotPossible(f"{parent} stays, because {', '.join(kept)} was not removed", hint="see above")


def _find(home: Home, text: str) -> Packet:
    """By its full id: a second 'rm job' must not match job-2."""
    try:
        packet = load.find(home, text, archived=True)
    except AmbiguousId as error:
        first = next(
            name for name in (*load.task_ids(home), *load.archived_ids(home)) if name.startswith(text)
        )
        raise AmbiguousId(str(error), hint=f"'rm' needs the full id: 'holdfast rm {first}'") from error
    if packet.task_id != text:
        raise NotFound(
            f"no task {text!r} in {home.path}",
            hint=f"'rm' needs the full id: 'holdfast rm {packet.task_id}'",
        )
    return packet


def _audit(home: Home, task_id: str, reason: str) -> None:
    entry = {"operation": "task.removed", "task_id": task_id, "by": audit.whoami()}
    audit.append(home, {**entry, "reason": reason} if reason else entry)


def _stop_all(home: Home, names: list[str], who: asker.Asker) -> dict[str, Posted | HoldfastError]:
    """Ask all tasks that have not ended to stop, before the first is awaited. Returns the request, or why
    there is none, of each."""
    stopping: dict[str, Posted | HoldfastError] = {}
    for text in names:
        try:
            packet = _find(home, text)
            asker.check(who, packet, "rm")
            _check_packet(packet)
            restore_modes(packet.path)
            if _is_readable(packet) and load.read_true(packet)["status"] not in ENDS:
                reason = {"reason": "removed with --force"}
                stopping[text] = post_request(packet, "stop", reason, wakes=True, kills=True)
        except HoldfastError as error:
            stopping[text] = error  # a full disk, for example
    return stopping


def _check_ended(packet: Packet, *, force: bool, stopping: Posted | HoldfastError | None) -> None:
    """Raises NotPossible if the task has not ended; with `force`, waits for its end."""
    if force and not _is_readable(packet):
        _await_no_runner(packet)
        _check_no_agent(packet)
        return
    try:
        state = load.read_true(packet)["status"]
    except HoldfastError:
        _check_no_agent(packet)
        return
    if state in ENDS and os.path.exists(packet.task_done):
        if force:
            _await_no_runner(packet)
        return
    if not force:
        raise NotPossible(
            f"{packet.task_id} has not ended: it is {state}",
            hint=f"'holdfast stop {packet.task_id}' stops it; --force stops and removes it",
        )
    if isinstance(stopping, HoldfastError):
        raise stopping  # nobody was asked to stop it
    insistence = Insistence(packet)
    ends_mono = clock.mono() + _STOP_S
    while not load.is_settled(packet, load.read_manifest(packet)):
        insistence.look()
        try:
            if stopping is not None:
                stopping.is_answered()
        except RequestRefused:
            stopping = None  # another request ended it first
        except CorruptFile:
            _check_no_agent(packet)  # no runner can ever stop it
            return
        if clock.mono() > ends_mono:
            raise Unanswered(f"{packet.task_id} is still being stopped", hint="try again when it has ended")
        clock.sleep(0.02)


def _is_readable(packet: Packet) -> bool:
    try:
        load.fold(packet)
    except HoldfastError:
        return False
    return True


def _await_no_runner(packet: Packet) -> None:
    """A runner whose journal was removed ends its agents and exits. One that does not is killed. Raises
    Unanswered."""
    inbox.ring(packet)
    patience = Patience(packet)
    ends_mono = clock.mono() + _STOP_S
    while locks.is_held(packet.runner_lock):
        patience.look()
        if clock.mono() > ends_mono:
            raise Unanswered(f"{packet.task_id} still has a runner", hint="try again in a moment")
        clock.sleep(0.02)


def _check_no_agent(packet: Packet) -> None:
    """Raises NotPossible if the agent of an unreadable task is alive."""
    if any(locks.is_held(packet.attempt(name).lock) for name in load.attempt_names(packet)):
        raise NotPossible(
            f"{packet.task_id} is unreadable, and its agent is alive", hint="kill the agent first"
        )
