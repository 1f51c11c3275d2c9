"""The baseline: tmux, a wrapper, a polling monitor per task and jq, built from its documentation."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import threading
import time

from benchmarks.place import Place

_HERE = os.path.dirname(os.path.abspath(__file__))
NEEDS = ("bash", "tmux", "perl")
#: The design's check interval; rows that poll faster scale to it.
INTERVAL_S = 30


def is_possible(place: Place) -> bool:
    """Whether this machine has the required programs."""
    return place.jq is not None and all(shutil.which(name) for name in NEEDS)


def jq_version(place: Place) -> str:
    """`jq-1.8.1`, or a message."""
    if place.jq is None:
        return "no jq"
    return subprocess.run([place.jq, "--version"], capture_output=True, text=True, check=False).stdout.strip()


class BashDesign:
    """A private tmux server and the tasks in it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.directory = place.new("bash")
        self.env = place.env(
            BENCH_TMUX=os.path.join(self.directory, "tmux"),
            BENCH_TASKS=self.directory,
            BENCH_RESUME="true",
            SHELL="/bin/bash",
            TERM="screen",
        )
        self._tmux("new-session", "-d", "-s", "first", "sleep infinity")

    def _tmux(self, *args: str) -> subprocess.CompletedProcess[bytes]:
        command = ["tmux", "-S", self.env["BENCH_TMUX"], "-f", "/dev/null", *args]
        return subprocess.run(command, env=self.env, capture_output=True, timeout=30, check=False)

    def server_pid(self) -> int:
        """Start the tmux server."""
        return int(self._tmux("display-message", "-p", "#{pid}").stdout)

    def launch(self, name: str, argv: list[str]) -> str:
        """Start a task; returns its directory."""
        command = ["bash", os.path.join(_HERE, "launch.sh"), name, self.directory, shlex.join(argv)]
        done = subprocess.run(command, env=self.env, capture_output=True, timeout=60, check=True)
        return done.stdout.decode().strip()

    def monitor(self, name: str, directory: str, *, interval_s: int, grace_s: int | None = None) -> Monitor:
        """Start the task's monitor, with thresholds scaled to its interval."""
        env = {
            **self.env,
            "MONITOR_BASE_INTERVAL": str(interval_s),
            "MONITOR_GRACE_PERIOD": str(interval_s if grace_s is None else grace_s),
        }
        return Monitor(["bash", os.path.join(_HERE, "monitor.sh"), name, directory], env)


class Monitor:
    """A running monitor; `said` are its lines with their times in nanoseconds."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.said: list[tuple[int, str]] = []
        self.process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.pid = self.process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append((time.monotonic_ns(), line.decode(errors="replace").strip()))

    def first(self, beginning: str) -> int | None:
        """When it first printed a line with this prefix."""
        return next((at for at, line in self.said if line.startswith(beginning)), None)

    def end(self) -> None:
        """Reap it after its processes were ended."""
        self.process.kill()
        self.process.wait(timeout=10)
        self._reader.join(timeout=10)
        if self.process.stdout is not None:
            self.process.stdout.close()
