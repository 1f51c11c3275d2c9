"""Take over the session of a task's agent: a person goes on in the agent's own program, in this terminal.

The program is run by `holdfast.runner.takeover`, which holds the locks of session and workspace. This process
waits for it, and tells the task's runner how it began and ended. While either of the two lives, the lock in
the takeover's directory is held, and the task is not resumed. What happens if one of them dies is in
docs/decisions/0083-takeover.md.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import termios

from holdfast import ids, own_python
from holdfast.agents import registry
from holdfast.errors import HoldfastError, NotPossible
from holdfast.failpoints import failpoint
from holdfast.model.execution import dirname
from holdfast.model.record import Record
from holdfast.model.status import ENDS, Status
from holdfast.packet import load
from holdfast.packet import takeover as holders
from holdfast.runner_process import start_runner
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.directories import remove_tree
from holdfast.views import requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.spec import StageSpec
    from holdfast.model.task import Task
    from holdfast.store.layout import Packet

#: What a program that was killed may have left on: the other screen, mouse, paste and key modes, no cursor.
_TO_NORMAL = b"\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[<u\x1b[?25h\x1b[0m\r\n"


class ProgramEnd(Record):
    """How the person's program ended."""

    #: The terminal, or the process that held it, is gone.
    is_lost: bool = False
    exit_code: int | None = None
    exit_signal: str | None = None
    files: int = 0
    diff: str = ""
    killed: tuple[dict[str, Any], ...] = ()


def check(packet: Packet, manifest: dict[str, Any]) -> None:
    """Raises NotPossible if the task cannot be taken over, with what would work."""
    status, task_id = manifest["status"], packet.task_id
    if status in ENDS:
        stage = " --from STAGE" if len(manifest.get("stages") or ()) > 1 else ""
        again = f"'holdfast retry {task_id}{stage}' opens it again, then it can be taken over"
        raise NotPossible(f"{task_id} has ended: {status}", hint=again)
    if status == Status.QUEUED:
        raise NotPossible(
            f"{task_id} is queued and has not started", hint=f"'holdfast stop {task_id}' removes it"
        )
    if (holder := holders.holder(packet, manifest)) is not None:
        raise NotPossible(f"{task_id} is taken over already, by {holder}", hint="end the program there first")
    task = load.fold(packet)
    stage = choose_stage(task)
    adapter = registry.adapter(task.stage_state(stage.name).agent)
    if not adapter.capabilities.can_resume or getattr(adapter, "takeover", None) is None:
        raise NotPossible(
            f"{adapter.name} has no session that a person could take over",
            hint=f"'holdfast attach {task_id}' follows it, 'holdfast interrupt {task_id}' stops it",
        )


def choose_stage(task: Task) -> StageSpec:
    """The stage that is at work: of several, the one that writes. Raises NotPossible."""
    due = [stage for stage in task.due if task.stage_state(stage.name).attempt is not None]
    if not due:
        waits = f"{task.due[0].name} has not started" if task.due else "no stage is left"
        raise NotPossible(
            f"no agent of {task.spec.task_id} has a session: {waits}",
            hint=f"'holdfast show {task.spec.task_id}' says what it waits for",
        )
    return next((stage for stage in due if stage.writes), due[0])


class Takeover:
    """One takeover of an interrupted task, from its lock to the hand-back."""

    def __init__(self, packet: Packet) -> None:
        """Lock everything, and journal the takeover. Raises HoldfastError; nothing is left behind then."""
        self.packet = packet
        task = load.fold(packet)
        self._stage, self._id = choose_stage(task), ids.new_attempt_id()
        self.number = max(task.last_number, load.last_number(packet)) + 1
        self.directory = packet.attempt(dirname(self.number, self._stage.name, "takeover"))
        atomic.make_directory(packet.attempts)
        try:
            atomic.make_new_directory(self.directory.path)
        except OSError as error:
            atomic.storage_failed(error, f"cannot create {self.directory.path}")
        try:
            self._lock = locks.acquire(self.directory.lock, role="takeover")
            failpoint("takeover.made")
            self._start()
        except BaseException:
            remove_tree(self.directory.path)
            raise
        failpoint("takeover.started")

    def _start(self) -> None:
        reading, report = os.pipe()
        control, self._control = os.pipe()
        words = [self.packet.path, self._stage.name, str(self.number), self._id]
        passed = (report, control, *self._lock.descriptors)
        self._process = subprocess.Popen(
            own_python.command("holdfast.runner.takeover", *words, *map(str, passed)),
            pass_fds=passed,
        )
        os.close(report)
        os.close(control)
        self._report = os.fdopen(reading, "rb")
        try:
            ready = self._read()
            if ready is None or "refused" in ready:
                reason = ready["refused"] if ready else "the process that holds its session died"
                raise NotPossible(reason, hint=ready["hint"] if ready else "")
            self.agent, self.session_id, self.cwd = ready["agent"], ready["session_id"], ready["cwd"]
            args = {
                "attempt": self.number,
                "attempt_id": self._id,
                "stage": self._stage.name,
                "agent": self.agent,
                "session_id": self.session_id,
            }
            requests.send_request(self.packet, "takeover", args)
        except BaseException:
            self._close()
            self._process.wait()
            self._lock.release()
            raise

    def run(self) -> ProgramEnd:
        """Let the person work, until the program has ended and what it left was swept.

        From then on, Ctrl-C is ignored: some programs end after the third one, and a fourth must not keep the
        task from being handed back.
        """
        saved = termios.tcgetattr(0)
        before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)}
        lost: list[int] = []

        def lose(number: int, _: object) -> None:
            lost.append(number)
            self._close()  # ends the program

        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, lose)
        try:
            try:
                os.write(self._control, b"g")
            except BrokenPipeError:
                pass  # it died, which the next line finds out
            facts = self._read()
            self._process.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        ended = ProgramEnd.from_json(facts) if facts is not None else ProgramEnd(is_lost=True)
        is_lost = bool(lost) or ended.is_lost
        _restore(saved, was_killed=is_lost or ended.exit_signal is not None)
        failpoint("takeover.returned")
        return ended.evolve(is_lost=is_lost)

    def hand_back(self, ended: ProgramEnd, *, message: str | None, keep: bool) -> None:
        """Let the agent go on, or leave the task interrupted. Raises HoldfastError."""
        args: dict[str, Any] = {
            "attempt": self.number,
            "keep": keep,
            "exit_code": ended.exit_code,
            "exit_signal": ended.exit_signal,
            "files": ended.files,
            "diff": ended.diff,
            "killed": list(ended.killed),
            **({"message": message} if message else {}),
        }
        try:
            requests.send_request(self.packet, "handback", args)
        finally:
            self._lock.release()

    def give_up(self) -> None:
        """The terminal is gone: the task stays interrupted, and its runner records why."""
        self._lock.release()
        try:
            start_runner(self.packet)
        except (HoldfastError, OSError):
            return  # the next runner records it

    def _read(self) -> dict[str, Any] | None:
        try:
            line = self._report.readline()
            return json.loads(line) if line.endswith(b"\n") else None
        except ValueError:
            return None

    def _close(self) -> None:
        if self._control >= 0:
            os.close(self._control)
            self._control = -1


def _restore(saved: list[Any], *, was_killed: bool) -> None:
    try:
        termios.tcsetattr(0, termios.TCSAFLUSH, saved)
        if was_killed:
            os.write(1, _TO_NORMAL)
    except (OSError, termios.error):
        return  # it is gone
