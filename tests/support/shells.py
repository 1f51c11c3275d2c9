"""An interactive bash on a terminal, for what only it can show: its completion."""

from __future__ import annotations

import os
import pty
import select
import time


def complete_in_bash(typed: str, wanted: str, within_s: float = 15.0) -> None:
    """Type into a bash that has our completion, and wait until its terminal shows `wanted`."""
    pid, descriptor = pty.fork()
    if pid == 0:
        try:
            environ = {**os.environ, "PS1": "$ ", "TERM": "dumb"}
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environ)
        finally:
            os._exit(127)
    try:
        os.write(descriptor, b'eval "$(holdfast completion bash)"; echo rea""dy\n')
        _read_until(descriptor, "ready\r\n", within_s)
        os.write(descriptor, typed.encode())
        _read_until(descriptor, wanted, within_s)
    finally:
        os.close(descriptor)
        os.waitpid(pid, 0)


def _read_until(descriptor: int, text: str, within_s: float) -> None:
    seen = b""
    ends_mono = time.monotonic() + within_s
    while text.encode() not in seen:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, ends_mono - time.monotonic()))
        assert ready, f"not shown within {within_s:g} s: {text!r} in {seen!r}"
        seen += os.read(descriptor, 65536)
