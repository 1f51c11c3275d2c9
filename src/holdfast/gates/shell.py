"""Running one command with a limit: in a session of its own, ended as a group, its output kept up to a size."""

from __future__ import annotations

import os
import select
import signal
import subprocess

from holdfast import clock
from holdfast.model.record import Record

#: What is kept of an output: its beginning and its end.
HEAD_BYTES, TAIL_BYTES = 24 * 1024, 40 * 1024
#: Between being asked to leave and being made to.
GRACE_S = 2.0
#: How often we look whether a command is gone whose children hold its output open.
_LOOK_S = 0.05


class Done(Record):
    """How a command ended."""

    #: 128+n for a signal, as shells say it.
    exit_code: int
    is_timeout: bool
    lasted_s: float
    output: bytes
    total_bytes: int
    is_cut: bool


class _Kept:
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


def run(argv: list[str], *, cwd: str, limit_s: float, stdin: int = subprocess.DEVNULL) -> Done:
    """Run it to its end, or to the limit. What it leaves running in its group is ended too. `stdin`: a descriptor."""
    began_mono = clock.mono()
    kept = _Kept()
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    os.set_blocking(pipe, False)
    try:
        is_timeout = not _until_gone(process, pipe, kept, began_mono + limit_s)
        if is_timeout:
            _signal(process, signal.SIGTERM)
            _until_gone(process, pipe, kept, clock.mono() + GRACE_S)
        # Also after a good end: a server left in the background would hold the workspace.
        _signal(process, signal.SIGKILL)
        process.wait()
        _read(pipe, kept)
    finally:
        process.stdout.close()
    code = process.returncode
    return Done(
        exit_code=128 - code if code < 0 else code,
        is_timeout=is_timeout,
        lasted_s=clock.mono() - began_mono,
        output=kept.text,
        total_bytes=kept.total,
        is_cut=kept.is_cut,
    )


def _until_gone(process: subprocess.Popen[bytes], pipe: int, kept: _Kept, ends_mono: float) -> bool:
    """Read until the command is gone (True) or the time is over (False)."""
    is_open = True
    while not _is_gone(process):
        left_s = ends_mono - clock.mono()
        if left_s <= 0:
            return False
        if not is_open:
            clock.sleep(min(_LOOK_S, left_s))
        elif select.select([pipe], [], [], min(_LOOK_S, left_s))[0]:
            is_open = _read(pipe, kept)
    return True


def _is_gone(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended. It is not reaped yet: so its number, which is that of its group, stays its own."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _read(pipe: int, kept: _Kept) -> bool:
    """Take what is there. False at the end of the stream."""
    while True:
        try:
            data = os.read(pipe, 65536)
        except BlockingIOError:
            return True
        if not data:
            return False
        kept.add(data)
        if len(data) < 65536:
            return True


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """To the whole group."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return
