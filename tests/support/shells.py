"""An interactive bash on a terminal, for what only it can show: its completion."""

from __future__ import annotations

import os
import pty
import select
import time


def complete_in_bash(typed: str, within_s: float = 15.0) -> str:
    """Type into a bash that has our completion; returns what the terminal shows afterwards."""
    pid, descriptor = pty.fork()
    if pid == 0:
        try:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], {**os.environ, "PS1": "$ ", "TERM": "dumb"})
        finally:
            os._exit(127)
    try:
        os.write(descriptor, b'bind "set bell-style none"; eval "$(holdfast completion bash)"; echo rea""dy\n')
        _read_until(descriptor, b"ready\r\n", within_s)
        os.write(descriptor, typed.encode())
        # A unique candidate is followed by a space.
        return _read_until(descriptor, typed.rstrip("\t").encode(), within_s, more=True)
    finally:
        os.close(descriptor)
        os.waitpid(pid, 0)


def _read_until(descriptor: int, text: bytes, within_s: float, *, more: bool = False) -> str:
    """Until `text` was shown; with `more`, until something stands behind it."""
    seen = b""
    ends_mono = time.monotonic() + within_s
    while text not in seen or (more and not seen.rpartition(text)[2].strip()):
        ready, _, _ = select.select([descriptor], [], [], max(0.0, ends_mono - time.monotonic()))
        assert ready, f"not shown within {within_s:g} s: {text!r} in {seen!r}"
        seen += os.read(descriptor, 65536)
    return seen.decode("utf-8", "replace")
