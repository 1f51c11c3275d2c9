"""A process with everything loaded that a runner uses, from which runners are forked, as the seed does.

To execute a runner takes about 100 ms of processor time, to fork one a few.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from typing import NoReturn

_SIZE = 1 << 20


class Forked:
    """A forked runner; what its starter uses of subprocess.Popen. Its exit status is unknown."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._pidfd = -1

    def poll(self) -> int | None:
        """None while it runs."""
        return None if self._is_alive(0.0) else 0

    def wait(self, timeout: float) -> int:
        if self._is_alive(timeout):
            raise subprocess.TimeoutExpired("runner", timeout)
        return 0

    def kill(self) -> None:
        if self._is_alive(0.0):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _is_alive(self, within_s: float) -> bool:
        if self._pidfd >= 0 and select.select([self._pidfd], [], [], within_s)[0]:
            os.close(self._pidfd)
            self._pidfd = -1
        return self._pidfd >= 0

    def __del__(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)


class Preloaded:
    """The process, and the channel to it."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "tests.support.preloaded", str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()

    def start_runner(self, packet: str, *, env: dict[str, str], cwd: str, log: str) -> Forked:
        request = {"packet": packet, "env": env, "cwd": cwd, "log": log}
        self._channel.sendall(json.dumps(request).encode())
        return Forked(int(self._channel.recv(_SIZE)))

    def close(self) -> None:
        self._channel.close()
        self._process.wait(10)


def main(channel: socket.socket) -> None:
    """Fork a runner for each request, until the other side closes the channel."""
    from holdfast import seed

    signal.signal(signal.SIGCHLD, _reap)
    seed.prepare()
    gc.collect()
    gc.freeze()
    while data := channel.recv(_SIZE):
        request = json.loads(data)
        pid = os.fork()
        if pid == 0:
            channel.close()
            _become_runner(**request)
        channel.sendall(str(pid).encode())


def _reap(*_: object) -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _become_runner(packet: str, env: dict[str, str], cwd: str, log: str) -> NoReturn:
    status = 70
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(env)
        os.chdir(cwd)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        from holdfast.runner.main import main as run

        status = run([packet])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
