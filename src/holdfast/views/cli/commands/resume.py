"""holdfast resume: continue interrupted or waiting tasks."""

from __future__ import annotations

import array
import fcntl
import os
import stat
import sys
import termios

from holdfast.errors import HoldfastError, NotPossible, UsageError
from holdfast.model.status import ENDS, Status
from holdfast.packet import asker, load
from holdfast.store import admitted
from holdfast.store import lock as locks
from holdfast.store.layout import Packet
from holdfast.views import requests
from holdfast.views.cli import request, targets
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.show import out, prompt, terminal
from holdfast.views.text import amounts, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="resume",
    summary="Resume interrupted tasks, or wake waiting ones.",
    description="A task keeps its files and, if the agent supports it, its session. If its agent asked a "
    "question, -m is the answer; without it, you are asked for one on a terminal.",
    examples=("holdfast resume 20260131-fix -m 'use the test database'", "holdfast resume --all"),
    arguments=(targets.TASKS.evolve(completes="parked-task"),),
    options=(
        Option(
            flags=("-m", "--message"),
            dest="message",
            metavar="TEXT",
            help="Answer for the agent (- reads stdin).",
        ),
        Option(
            flags=("--adopt",),
            dest="adopt",
            kind="flag",
            help="Also one that no command here has created as it is now (from a backup, or changed), or "
            "whose project is behind a link that leads elsewhere now. With --all, show what they would run, "
            "and ask.",
        ),
        targets.GOING_NO_WAIT,
        targets.everything("interrupted tasks, without those that wait for approval"),
        targets.STATE,
        targets.LABEL,
        JSON.evolve(help=targets.JSON_LINES),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Send the requests."""
    if values["message"] == "-":
        values = {**values, "message": sys.stdin.read().strip()}
    if values["message"] is not None and not values["message"].strip():
        raise UsageError("-m: the message is empty", hint="give an answer, or leave out -m")
    if values["adopt"] and not values["task"]:
        return _adopt_all(values)
    chosen = targets.choose(
        values,
        "resume",
        fits=lambda row: row["status"] == Status.WAITING or _is_interrupted(row),
        by_all=_is_interrupted,
    )
    going = [packet for packet in chosen.packets if not (values["adopt"] and _is_adopted(packet))]
    questions = {packet.task_id: question for packet in going if (question := _question(packet))}
    message = values["message"]
    if message is None and len(going) == 1 and questions and _can_ask():
        message, stays = _answer(*questions.values())
        if stays:
            task_id = going[0].task_id
            out.talk(f"{task_id} stays interrupted; 'holdfast resume {task_id} -m ANSWER' answers it")
            return 0
    args = {"message": message} if message else {}
    sent = requests.send_all(going, "resume", lambda _: args)
    if message is None and not values["json"]:
        for packet in sent.accepted:
            if packet.task_id in questions:
                out.talk(f"{packet.task_id} gets no answer to: {questions[packet.task_id]}")
        if _is_piped():
            out.talk("the text on stdin was not read; '-m -' sends it to the agent")
    request.confirm_going(sent.accepted, "continues", values)
    return chosen.status or request.complain(sent)


def _question(packet: Packet) -> str:
    """What its agent asked; empty if it waits for something else."""
    try:
        manifest = load.read_manifest(packet)
    except HoldfastError:
        return ""  # the request tells why
    interrupt: dict[str, Any] = manifest.get("interrupt") or {}
    if manifest["status"] != Status.INTERRUPTED or interrupt.get("asked_by") != "agent":
        return ""
    return describe.one_line(str(interrupt.get("reason") or "").encode())


def _is_piped() -> bool:
    """Whether a pipe with text is connected to stdin. Nothing is read: it may be meant for another command,
    as in a loop of the shell."""
    try:
        fd = sys.stdin.fileno()
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            return False
        count = array.array("i", [0])
        fcntl.ioctl(fd, termios.FIONREAD, count)
        return count[0] > 0
    except (AttributeError, OSError, ValueError):
        return False  # it is closed


def _can_ask() -> bool:
    return sys.stdin.isatty() and terminal.is_terminal(sys.stderr)


def _answer(question: str) -> tuple[str | None, bool]:
    """The person's answer, and whether the task stays interrupted."""
    out.talk(question)
    return prompt.line("Answer (Enter: none, Ctrl-D: leave the task interrupted):")


def _adopt_all(values: dict[str, Any]) -> int:
    """Show what all tasks that no command here has created would run, and adopt them if a person agrees."""
    if values["message"] is not None:
        raise UsageError(
            "-m: which task gets the answer? Give its id", hint="holdfast resume --adopt ID -m …"
        )
    chosen = targets.choose(values, "resume", fits=lambda row: row["status"] not in ENDS, unknown=True)
    found = [packet for packet in chosen.packets if not locks.is_held(packet.runner_lock)]
    if not found:
        return 0
    asker.require_person("adopt tasks", home=found[0].home)
    stamps = [_stamp(packet) for packet in found]
    for packet in found:
        out.talk(f"{packet.task_id} would run {requests.runs(packet)}")
    if not _can_ask():
        names = " ".join(packet.task_id for packet in found)
        raise NotPossible("--adopt: nobody can be asked", hint=f"holdfast resume --adopt {names}")
    if not prompt.is_confirmed(f"Adopt {amounts.plural(len(found), 'task')}?"):
        return 0
    for packet, stamp in zip(found, stamps, strict=True):
        if _stamp(packet) != stamp:
            out.talk(f"left out {packet.task_id}: it was changed meanwhile")
            continue
        requests.adopt(packet)
        out.talk(f"{packet.task_id} is now a task of this home")
    _wake_keeper(found[0])
    return 0


def _stamp(packet: Packet) -> tuple[int, ...]:
    """Changes with each change of the journal: no program can set the last time."""
    try:
        state = os.stat(packet.journal)
    except OSError:
        return ()
    return state.st_dev, state.st_ino, state.st_size, state.st_ctime_ns


def _wake_keeper(packet: Packet) -> None:
    from holdfast.views.create import enqueue  # loads a database; rarely needed

    enqueue.wake_keeper(packet.home, talk=out.talk)


def _is_adopted(packet: Packet) -> bool:
    """Make it a task of this home, if it is none, and accept where its project is now. Returns whether it is
    now left to the keeper."""
    try:
        status = load.read_manifest(packet)["status"]
    except HoldfastError:
        return False  # the request tells why
    if admitted.is_admitted(packet):
        if place := requests.accept_project(packet):
            out.talk(f"{packet.task_id} goes on in {place}")
        return False
    if locks.is_held(packet.runner_lock):
        raise NotPossible(
            f"cannot adopt {packet.task_id}: a runner with another XDG_CONFIG_HOME writes its journal",
            hint="wait until the task has ended or is interrupted, or use the same XDG_CONFIG_HOME",
        )
    asker.require_person("adopt a task", home=packet.home)
    requests.adopt(packet)
    requests.accept_project(packet)
    if status in (Status.INTERRUPTED, Status.WAITING) or status in ENDS:
        return False
    _wake_keeper(packet)
    what = requests.runs(packet)
    out.talk(f"{packet.task_id} was not created here; it is now a task of this home, and runs {what}")
    return True


def _is_interrupted(row: dict[str, Any]) -> bool:
    interrupt: dict[str, Any] = row.get("interrupt") or {}
    return row["status"] == Status.INTERRUPTED and not interrupt.get("approval")
