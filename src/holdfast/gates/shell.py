"""Running one command with a time limit, in its own session.

Its process group is killed; its output is capped.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess

from holdfast import clock
from holdfast.model.record import Record

#: How much output is kept: the beginning and the end.
HEAD_BYTES, TAIL_BYTES = 24 * 1024, 40 * 1024
#: Time between SIGTERM and SIGKILL.
GRACE_S = 2.0
#: How often to check whether a command has ended while its children keep its output open.
_POLL_S = 0.05


class Done(Record):
    """How a command ended."""

    #: 128+n for a signal, as in a shell.
    exit_code: int
    is_timeout: bool
    lasted_s: float
    output: bytes
    total_bytes: int
    is_cut: bool


class _Output:
    """The beginning and the end of a stream."""

    def __init__(self) -> None:
        self.head = b""
        self.tail = b""
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = HEAD_BYTES - len(self.head)
        self.head += data[:room]
        self.tail = (self.tail + data[room:])[-TAIL_BYTES:] if room < len(data) else self.tail

    @property
    def is_cut(self) -> bool:
        return self.total > len(self.head) + len(self.tail)

    @property
    def text(self) -> bytes:
        if not self.is_cut:
            return self.head + self.tail
        left_out = self.total - len(self.head) - len(self.tail)
        return self.head + f"\n[… {left_out} bytes left out …]\n".encode() + self.tail


def run(
    argv: list[str],
    *,
    cwd: str,
    limit_s: float,
    stdin: int = subprocess.DEVNULL,
    env: dict[str, str] | None = None,
) -> Done:
    """Run a command to its end or to the time limit, then kill what is left of its group.

    `stdin` is a descriptor; `env` replaces the environment.
    """
    began_mono = clock.mono()
    output = _Output()
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    os.set_blocking(pipe, False)
    try:
        is_timeout = not _wait(process, pipe, output, began_mono + limit_s)
        if is_timeout:
            _signal(process, signal.SIGTERM)
            _wait(process, pipe, output, clock.mono() + GRACE_S)
        # Also after success: a server left in the background would keep using the workspace.
        _signal(process, signal.SIGKILL)
        process.wait()
        _read(pipe, output)
    finally:
        process.stdout.close()
    code = process.returncode
    return Done(
        exit_code=128 - code if code < 0 else code,
        is_timeout=is_timeout,
        lasted_s=clock.mono() - began_mono,
        output=output.text,
        total_bytes=output.total,
        is_cut=output.is_cut,
    )


def _wait(process: subprocess.Popen[bytes], pipe: int, output: _Output, ends_mono: float) -> bool:
    """Read until the command has ended (True) or time is up (False)."""
    is_open = True
    while not _has_ended(process):
        left_s = ends_mono - clock.mono()
        if left_s <= 0:
            return False
        if not is_open:
            clock.sleep(min(_POLL_S, left_s))
        elif select.select([pipe], [], [], min(_POLL_S, left_s))[0]:
            is_open = _read(pipe, output)
    return True


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended. It is not reaped: its pid, which is its group's id too, must not be reused."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _read(pipe: int, output: _Output) -> bool:
    """Read what is available. False at the end of the stream."""
    while True:
        try:
            data = os.read(pipe, 65536)
        except BlockingIOError:
            return True
        if not data:
            return False
        output.add(data)
        if len(data) < 65536:
            return True


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal the whole group."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return
