"""A terminal for a command: a pseudo-terminal of a given size, and what was drawn on it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable

#: Sequences that colour, move and set modes.
_CONTROLS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


class Terminal:
    """`holdfast ARGS…` on its own terminal, for stdout and stderr; or with `stdout` in a file."""

    def __init__(
        self,
        *args: str,
        columns: int = 80,
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        ignores_hangup: bool = False,
        python: tuple[str, ...] = ("-m", "holdfast"),
    ) -> None:
        self.output = b""
        self.status: int | None = None
        self.pid, self._fd = pty.fork()
        if self.pid == 0:  # the child: its own session, with this terminal
            try:
                os.chdir(cwd or "/")
                if ignores_hangup:  # as nohup does
                    signal.signal(signal.SIGHUP, signal.SIG_IGN)
                environ = {**os.environ, "TERM": "xterm", **(env or {})}
                os.execve(sys.executable, [sys.executable, *python, *args], environ)
            finally:
                os._exit(127)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read_until(self, text: str, within_s: float = 15.0) -> str:
        """Wait until the terminal has shown `text`. Returns everything it has shown."""
        ends_mono = time.monotonic() + within_s
        while text.encode() not in self.output:
            assert time.monotonic() < ends_mono, f"not shown within {within_s:g} s: {text!r}\n{self.text}"
            if not self._read(ends_mono) and text.encode() not in self.output:
                raise AssertionError(f"it ended without showing {text!r}:\n{self.text}")
        return self.text

    def press(self, keys: str) -> None:
        """As if typed: \\x03 is Ctrl-C."""
        os.write(self._fd, keys.encode())

    def finish(self, within_s: float = 30.0) -> int:
        """Read to the end; returns the exit status."""
        ends_mono = time.monotonic() + within_s
        while self._read(ends_mono):
            assert time.monotonic() < ends_mono, f"still running after {within_s:g} s\n{self.text}"
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self._fd)
        return self.status

    def detach(self) -> int:
        """Leave tmux with its key; returns the exit status."""
        # tmux may lose a key while it queries the terminal.
        for _ in range(19):
            self.press("\x02d")
            try:
                return self.finish(within_s=1.5)
            except AssertionError:
                continue
        self.press("\x02d")
        return self.finish()

    def poll(self, within_s: float) -> bool:
        """Read what comes within this time. Returns whether it still runs."""
        return self.status is None and self._read(time.monotonic() + within_s)

    def shows(self, words: str, within_s: float) -> None:
        """Wait until these words were drawn, whatever colours and cursor moves are between them."""
        ends_mono = time.monotonic() + within_s
        while words not in _CONTROLS.sub("", self.text):
            assert time.monotonic() < ends_mono, f"not shown within {within_s:g} s: {words!r}\n{self.text}"
            assert self._read(min(ends_mono, time.monotonic() + 1.0)), self.text

    def type_until_ended(self, keys: str, *, every_s: float, within_s: float) -> None:
        """Type these keys again and again until the program has ended."""
        ends_mono = time.monotonic() + within_s
        while time.monotonic() < ends_mono:
            try:
                self.press(keys)
            except OSError:
                return
            again_mono = time.monotonic() + every_s
            while time.monotonic() < again_mono:
                if not self._read(again_mono):
                    return
        raise AssertionError(f"still running after {within_s:g} s\n{self.text}")

    def hang_up(self, then: Callable[[], None] = lambda: None) -> None:
        """Close the terminal: the kernel sends SIGHUP to its session. Waits for its end, after `then`."""
        os.close(self._fd)
        then()
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill(self) -> None:
        """For the end of a test that failed."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.finish()

    @property
    def text(self) -> str:
        return self.output.decode("utf-8", "replace")

    def _read(self, ends_mono: float) -> bool:
        ready, _, _ = select.select([self._fd], [], [], max(0.0, ends_mono - time.monotonic()))
        if not ready:
            return True
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # EIO: the other side is closed
            return False
        self.output += data
        return bool(data)
