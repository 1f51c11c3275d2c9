"""A person's takeover: the agent's own program in this terminal, in the agent's session.

    python -m holdfast.runner.takeover PACKET STAGE NUMBER ATTEMPT_ID REPORT CONTROL LOCK LOCK

The command `holdfast takeover` executes it, and talks to it through two pipes. REPORT: one JSON line when
everything is ready, or why it is not, and one at the end. CONTROL: a byte starts the program; end of file
ends it, because the command is gone. The two descriptors LOCK are the lock of the takeover, which both hold:
while either lives, the task is not resumed. Session and workspace are locked by this process alone.

It adopts what the program detaches, and ends it. If this process is killed, the kernel kills the program, and
the next runner of the task ends the rest.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys

from holdfast import recorder, spawn
from holdfast.errors import HoldfastError, NotPossible
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.execution import dirname
from holdfast.packet import sealed
from holdfast.runner.attempt import end_agents
from holdfast.runner.attempt.kinship import Kinship
from holdfast.runner.attempt.sweep import Sweep, as_list
from holdfast.runner.stage.interactive import Interactive
from holdfast.store.layout import AttemptDir, Packet
from holdfast.workspace.since import Since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

#: For the program in the foreground. Ctrl-Z is not here: it stops this process too.
_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTTOU)
_RESET = (*_IGNORED, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ)


def main(argv: list[str]) -> int:
    """Hold the session for a person. Returns the exit status."""
    path, stage, number, attempt_id, *descriptors = argv
    report, control, *held = map(int, descriptors)
    for descriptor in (report, control, *held):
        os.set_inheritable(descriptor, False)
    for each in _IGNORED:
        signal.signal(each, signal.SIG_IGN)
    packet = Packet(path)
    directory = packet.attempt(dirname(int(number), stage, "takeover"))
    recorder.become_subreaper()
    recorder.set_name("holdfast-take")
    try:
        opened = ev.AttemptOpened(
            attempt=int(number),
            attempt_id=attempt_id,
            stage=stage,
            agent="",
            mode="resume",
            session_id=None,
            resume_count=0,
        )
        task = sealed.fold_to_run(packet)
        spec = task.stage_spec(stage)
        if spec is None:
            raise NotPossible(f"{packet.task_id} has no stage {stage}")
        program = Interactive(packet, task, spec, opened)
        command, env = program.command(directory)
        since = Since(packet, task, stage)
    except (HoldfastError, OSError) as error:
        _tell(report, {"refused": str(error), "hint": getattr(error, "hint", "")})
        return 1
    _tell(
        report, {"agent": program.opened.agent, "session_id": program.opened.session_id, "cwd": program.cwd}
    )
    failpoint("takeover.ready")
    if os.read(control, 1) == b"":
        return 0
    ended = _run(program, command, env, control)
    killed = _sweep(directory, attempt_id)
    failpoint("takeover.swept")
    files, diff = since.changed()
    program.release()
    _tell(
        report,
        {**_words(ended), "killed": as_list(killed, program.ledger.redact), "files": files, "diff": diff},
    )
    if ended is None:
        _leave_to_runner(packet, control, held)
    return 0


def _run(program: Interactive, command: list[str], env: dict[str, str], control: int) -> int | None:
    """Run the program in the foreground to its end. Returns its wait status; None if the command is gone."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    told_to_end: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told_to_end.append(number))
    signal.signal(signal.SIGCHLD, _wake)
    parent, limits = os.getpid(), program.limits
    child = os.fork()
    if child == 0:
        recorder.die_with(parent)
        _become(command, env, program, limits)
    failpoint("takeover.running")
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        pid, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            # Ctrl-Z: the whole job stops, so that the shell comes back; `fg` continues all of it.
            os.kill(0, signal.SIGTSTP)
            os.kill(child, signal.SIGCONT)
            continue
        if pid:
            return status
        if told_to_end or any(descriptor == control for descriptor, _ in poll.poll()):
            return None
        try:
            os.read(woken, 4096)
        except BlockingIOError:
            continue


def _wake(_number: int, _frame: object) -> None:
    """The wake-up descriptor tells it."""


def _become(
    command: list[str], env: dict[str, str], program: Interactive, limits: dict[str, list[int]]
) -> NoReturn:
    """In the child: become the program."""
    try:
        signal.set_wakeup_fd(-1)
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        os.umask(program.env.get("umask", 0o077))
        for name, (soft, hard) in limits.items():
            recorder.set_limit(name, soft, hard)
        os.chdir(program.cwd)
        os.execvpe(command[0], command, env)
    except OSError as error:
        os.write(2, f"holdfast: cannot execute {command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _sweep(directory: AttemptDir, attempt_id: str) -> dict[int, str]:
    """End what the program left running, and the program itself if it still runs."""
    sweep = Sweep(Kinship(directory, attempt_id=attempt_id), None, tree_known=True)
    end_agents.finish(sweep)
    return sweep.killed


def _words(ended: int | None) -> dict[str, Any]:
    if ended is None:
        return {"is_lost": True}
    code = os.waitstatus_to_exitcode(ended)
    return (
        {"exit_code": code} if code >= 0 else {"exit_signal": signal.Signals(-code).name.removeprefix("SIG")}
    )


def _leave_to_runner(packet: Packet, control: int, held: list[int]) -> None:
    """If the command was killed, let a runner record the end."""
    if not select.select([control], [], [], 0)[0] or os.read(control, 1):
        return  # this process was told to end, and the command lives
    for descriptor in held:
        os.close(descriptor)
    spawn.execute_runner(packet)


def _tell(report: int, facts: dict[str, Any]) -> None:
    try:
        with os.fdopen(report, "wb", closefd=False) as file:
            file.write(json.dumps(facts).encode() + b"\n")
    except BrokenPipeError:
        return  # the command is gone


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
