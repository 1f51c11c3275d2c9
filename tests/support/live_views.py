"""Views as processes under attack: each started for real, followed, and judged by its end."""

from __future__ import annotations

import http.client
import json
import os
import pty
import resource
import select
import signal
import subprocess
import sys
import threading

from tests.support.waiting import eventually

#: The documented exit statuses (`holdfast help exit-codes`), without 70, which is a bug.
DOCUMENTED = frozenset({0, 1, 2, 3, 4, 5, 6, 75, 130})
#: Signals of which a view may die: ours, and that of a closed terminal or pipe.
SIGNALS = frozenset({-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGPIPE})
#: Commands of each view; TASK is the task that it looks at.
VIEWS: dict[str, tuple[str, ...]] = {
    "top": ("top",),
    "serve": ("serve", "--port", "0"),
    "share": ("share", "TASK", "-o", "-"),
    "mcp": ("mcp",),
    "digest": ("digest",),
    "attach": ("attach", "TASK"),
    "logs": ("logs", "-f", "TASK"),
    "ls": ("ls", "--watch"),
}
#: Those that live until somebody ends them, or the task ends.
LONG = ("top", "serve", "mcp", "attach", "logs", "ls")
_KEPT = 4_000_000
_LIMITS = {"files": resource.RLIMIT_NOFILE, "written_bytes": resource.RLIMIT_FSIZE}
#: Makes a terminal on stdin that of its session, sets the limits, and becomes the command.
_LAUNCHER = """
import fcntl, json, os, resource, sys, termios
if os.isatty(0):
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
for name, most in json.loads(sys.argv[1]).items():
    resource.setrlimit(int(name), (most, most))
os.execv(sys.argv[2], sys.argv[2:])
"""


class View:
    """One process of a view. What it prints is read by a thread, unless it `is_unread`."""

    def __init__(self, name: str, task_id: str, *, is_unread: bool = False, **limits: int) -> None:
        self.name = name
        words = [task_id if word == "TASK" else word for word in VIEWS[name]]
        self._said, self._master = bytearray(), -1
        errors_in, errors_out = os.pipe()
        self._errors_in, self._errors = errors_in, bytearray()

        if name == "top":  # draws on stderr
            self._master, slave = pty.openpty()
            streams: dict[str, int] = {"stdin": slave, "stdout": slave, "stderr": slave}
        else:
            stdin = subprocess.PIPE if name == "mcp" else subprocess.DEVNULL
            streams = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": errors_out}
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-ISc",
                _LAUNCHER,
                json.dumps({_LIMITS[each]: most for each, most in limits.items()}),
                sys.executable,
                "-m",
                "holdfast",
                *words,
            ],
            env={
                **os.environ,
                "TERM": "xterm-256color",
                "COLUMNS": "80",
                "LINES": "24",
                "PYTHONFAULTHANDLER": "1",
            },
            start_new_session=True,
            **streams,  # type: ignore[arg-type]
        )
        os.close(errors_out)
        if name == "top":
            os.close(slave)
        self._threads = [threading.Thread(target=self._drain, args=(errors_in, self._errors), daemon=True)]
        if not is_unread:
            self._threads.append(
                threading.Thread(target=self._drain, args=(self._stdout, self._said), daemon=True)
            )
        for thread in self._threads:
            thread.start()
        if name == "mcp":
            self.send("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {
                "name": "test", "version": "1"}})  # fmt: skip
            self.send("tools/call", {"name": "wait", "arguments": {"tasks": [task_id], "timeout_s": 120}})

    @property
    def _stdout(self) -> int:
        if self._master >= 0:
            return self._master
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    @property
    def said(self) -> str:
        """What it has printed: the last part, if it was much."""
        return bytes(self._said).decode("utf-8", "replace")

    @property
    def errors(self) -> str:
        """What it complained about; `top` does that on its screen."""
        return bytes(self._errors).decode("utf-8", "replace") + (self.said if self.name == "top" else "")

    def send(self, method: str, params: dict[str, object], number: int = 1) -> None:
        """A request of an MCP client."""
        line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def press(self, keys: str) -> None:
        """Type into the terminal of `top`."""
        os.write(self._master, keys.encode())

    def answers(self) -> bool:
        """Whether it reacts: a server answers a request, the others are there."""
        if self.process.poll() is not None:
            return False
        if self.name != "serve":
            return True
        host = self.said.partition("/#")[0].strip().removeprefix("http://")
        # Only browsers know names below localhost.
        connection = http.client.HTTPConnection("127.0.0.1", int(host.rpartition(":")[2]), timeout=20)
        try:
            connection.request("GET", "/", headers={"Host": host})
            with connection.getresponse() as answer:
                return answer.status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def wait_until_shown(self, within_s: float = 40.0) -> None:
        """Wait until it has drawn or printed something."""
        wanted = b"holdfast" if self.name == "top" else b""  # the terminal takes keys from then on
        eventually(
            lambda: (self._said and wanted in self._said) or self.process.poll() is not None,
            within_s,
            f"{self.name} shows",
        )

    def close(self) -> None:
        """Its reader goes away: a pipe or terminal whose other end is closed."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None and not stream.closed:
                try:
                    stream.close()
                except OSError:
                    pass

    def end(self, within_s: float = 30.0) -> int:
        """Let it end, as a person does, and return its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            if self.name == "mcp":
                self.close()
            elif self.name == "top":
                self.press("\x11")  # Ctrl-Q quits every screen
            else:
                self.process.send_signal(signal.SIGINT)
        return self.wait(within_s)

    def wait(self, within_s: float = 30.0) -> int:
        """Its exit status."""
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # says where its threads are
            self.process.wait(10)
            raise AssertionError(f"{self.name} does not end:\n{self.errors[-6000:]}") from None
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait(10)
            for thread in self._threads:
                thread.join(5)
            self.close()

    def judge(self, status: int | None = None, *, signals: frozenset[int] = SIGNALS) -> None:
        """Fail if it ended in a way that nobody documented, or showed a traceback."""
        status = self.end() if status is None else status
        said = f"{self.name} ended with {status}:\n{self.errors[-3000:]}"
        assert status in DOCUMENTED | signals, said
        assert "Traceback" not in self.errors, said
        assert "holdfast has a bug" not in self.errors, said

    def _drain(self, descriptor: int, into: bytearray) -> None:
        while True:
            try:
                if not select.select([descriptor], [], [], 0.5)[0]:
                    if self.process.poll() is not None:
                        break
                    continue
                data = os.read(descriptor, 1 << 16)
            except (OSError, ValueError):
                break
            if not data:
                break
            into += data
            if len(into) > _KEPT:
                del into[: _KEPT // 2]
        if descriptor == self._errors_in:
            os.close(descriptor)


def memory_mb(pid: int) -> float:
    """Its resident memory."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6
