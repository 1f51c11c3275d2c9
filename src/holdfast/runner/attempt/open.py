"""Open an execution: directory, event, lock, recorder, in the order that the attempt table expects."""

from __future__ import annotations

import os

from holdfast import idle_recorder, paths, recorder
from holdfast.agents.base import Launch
from holdfast.errors import HoldfastError
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.execution import dirname
from holdfast.packet import load
from holdfast.runner.ledger import Ledger
from holdfast.store import atomic, lock_owner
from holdfast.store import lock as locks
from holdfast.store.directories import remove_tree
from holdfast.store.layout import AttemptDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: The kernel accepts at most 128 KiB in one variable.
_ANSWER_CHARS = 30_000


class Opened:
    """A recorder that was started."""

    def __init__(self, attempt: int, recorder_pid: int, started_fd: int) -> None:
        self.attempt = attempt
        self.recorder_pid = recorder_pid
        #: End of file once exec of the agent succeeded or failed.
        self.started_fd = started_fd


def start(
    ledger: Ledger,
    opened: ev.AttemptOpened,
    env: dict[str, Any],
    *,
    prepare: Callable[[AttemptDir], Launch],
    keep: tuple[int, ...],
) -> Opened:
    """Make the attempt's directory, journal it, and fork its recorder."""
    directory = ledger.packet.attempt(dirname(opened.attempt, opened.stage, opened.kind))
    for folder in (ledger.packet.attempts, ledger.packet.scratch):
        atomic.make_directory(folder)  # an agent may have removed it
    atomic.make_new_directory(directory.path)
    failpoint("attempt.made")
    try:
        launch = prepare(directory)
        atomic.write_json(
            directory.argv,
            argv_record(ledger, launch, ledger.task.workspace_of(opened.stage)),
            durable=False,
        )
    except (OSError, HoldfastError):
        remove_tree(directory.path)  # otherwise each retry on a full disk leaves a directory
        raise
    ledger.record(opened, shown=False)
    failpoint("attempt.opened")
    return _fork(ledger, directory, launch, opened, env=env, keep=keep)


def _fork(
    ledger: Ledger,
    directory: AttemptDir,
    launch: Launch,
    opened: ev.AttemptOpened,
    *,
    env: dict[str, Any],
    keep: tuple[int, ...],
) -> Opened:
    argv, variables = command_of(ledger, directory, launch, opened, env=env)
    order = recorder.Order(
        directory=directory.path,
        argv=argv,
        env=variables,
        cwd=ledger.task.workspace_of(opened.stage),
        stdin=launch.stdin or os.devnull,
        umask=env.get("umask", 0o077),
        limits=resource_limits(ledger, opened, env),
    )
    lock = locks.acquire(directory.lock, role="runner")
    try:
        failpoint("attempt.locked")
        read_end, write_end = os.pipe()
        try:
            pid = idle_recorder.send_order(
                order,
                lock.descriptors,
                write_end,
                keep=keep,
                sign=lambda pid: lock_owner.signature("recorder", pid),
            )
        except OSError:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
    finally:
        lock.release()
    failpoint("attempt.forked")
    return Opened(opened.attempt, pid, read_end)


def command_of(
    ledger: Ledger, directory: AttemptDir, launch: Launch, opened: ev.AttemptOpened, *, env: dict[str, Any]
) -> tuple[list[str], dict[str, str]]:
    """The whole command line and environment: with its config home, and in its sandbox."""
    captured: dict[str, str] = env.get("env", {})
    private: dict[str, str] = {}
    if launch.home is not None:
        # Few programs need one.
        from holdfast.runner.attempt import private_home

        is_used = private_home.is_in_use(ledger.task, opened)
        private = private_home.prepare(launch.home, captured, is_used=is_used)
    variables = {**captured, **launch.env, **private, **_our_variables(ledger, directory, opened)}
    sandbox = ledger.task.spec.sandbox
    if sandbox is None or opened.kind != "agent":
        return launch.argv, variables
    from holdfast.runner.attempt import sandboxed

    return sandboxed.wrap(
        ledger, launch, opened, spec=sandbox, directory=directory, captured=captured, env=variables
    )


def resource_limits(ledger: Ledger, opened: ev.AttemptOpened, env: dict[str, Any]) -> dict[str, list[int]]:
    """The resource limits captured at creation, with the task's memory limit for agents if that is lower."""
    captured: dict[str, list[int]] = env.get("limits", {})
    limit = ledger.task.spec.limits.memory_bytes
    if limit is None or opened.kind != "agent":
        return captured
    # -1 means unlimited.
    least = min([limit, *(each for each in captured.get("RLIMIT_AS", ()) if each >= 0)])
    return {**captured, "RLIMIT_AS": [least, least]}


def next_number(ledger: Ledger) -> int:
    """The next attempt number. Numbers of directories without an event are not reused."""
    return max(ledger.task.last_number, load.last_number(ledger.packet)) + 1


def argv_record(ledger: Ledger, launch: Launch, cwd: str) -> dict[str, Any]:
    """The content of argv.json: the command and the names of added variables, without their values."""
    return {
        "schema": "holdfast.argv/1",
        "argv": [ledger.redact(argument) for argument in launch.argv],
        "cwd": cwd,
        "stdin": launch.stdin,
        "env_added": sorted(launch.env),
    }


def _env_value(answer: str) -> str:
    """The answer as a valid environment value: no NUL, no lone surrogates, limited length."""
    text = answer[:_ANSWER_CHARS].replace("\0", " ")
    return text.encode("utf-8", "backslashreplace").decode()


def _our_variables(ledger: Ledger, directory: AttemptDir, opened: ev.AttemptOpened) -> dict[str, str]:
    packet, answer = ledger.packet, ledger.task.answer
    return {
        # For commands, which have no session to send a message to.
        **({"HOLDFAST_ANSWER": _env_value(answer)} if answer else {}),
        # For the conductor: agents of items can write to the journal meanwhile.
        **({"HOLDFAST_JOURNAL": ledger.journal_pin} if ledger.task.spec.fan_out is not None else {}),
        # For chores, the conductor and commands of agents: the captured variables may lead elsewhere.
        paths.TRUST_DIR: paths.trust_dir(),
        "HOLDFAST_TASK": packet.task_id,
        "HOLDFAST_ATTEMPT": directory.path,
        "HOLDFAST_PACKET": packet.path,
        "HOLDFAST_RESUME_COUNT": str(opened.resume_count),
        "TASK_TMPDIR": packet.scratch,
        "SESSION_ID": opened.attempt_id,
        "INTERRUPT_FILE": packet.interrupt_request,
        "HARNESS_SESSION": "true",
        "BD_ACTOR": "harness-agent",
        "ITERATION": str(ledger.task.iteration or 1),
    }
