"""Where a benchmark runs: a temporary directory, and the processes that were started there."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from tests.support import processes
from tests.support.waiting import eventually

T = TypeVar("T")

#: PYTHON*: with PYTHONDONTWRITEBYTECODE, every command would recompile a checkout, unlike an installed
#: package.
_FOREIGN = ("HOLDFAST_", "MONITOR_", "XDG_", "TMUX", "PYTHON")


class Place:
    """A temporary directory and an id.

    Processes that carry either of them were started here and are ended here.
    """

    def __init__(self, *, quick: bool, jq: str | None, whole: bool = False) -> None:
        self.quick = quick
        #: Also what needs most of a machine's memory.
        self.whole = whole
        #: Load of the machine before we started: a busy machine makes every absolute time longer.
        self.load = os.getloadavg()
        self.jq = jq or shutil.which("jq")
        self.root = tempfile.mkdtemp(prefix="hfb-")
        self.id = uuid.uuid4().hex
        self._kept: dict[str, Any] = {}
        self._names = 0
        for name in ("user", "bin"):
            os.mkdir(self.path(name), 0o700)
        if self.jq:
            # So that the bash design finds the chosen jq first.
            os.symlink(os.path.abspath(self.jq), self.path("bin", "jq"))

    def path(self, *names: str) -> str:
        """A path in the directory."""
        return os.path.join(self.root, *names)

    def new(self, name: str) -> str:
        """A new, empty, private directory."""
        self._names += 1
        made = self.path(f"{name}-{self._names}")
        os.mkdir(made, 0o700)
        return made

    def pick(self, full: int, quick: int) -> int:
        """The number of repeats: fewer with --quick."""
        return quick if self.quick else full

    def once(self, key: str, measure: Callable[[], T]) -> T:
        """Measure once, for all rows that use the value."""
        if key not in self._kept:
            self._kept[key] = measure()
        return self._kept[key]

    def env(self, **more: str) -> dict[str, str]:
        """A clean environment with our id: without the caller's holdfast variables and shell start-up
        files."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        return {
            **kept,
            "HOME": self.path("user"),
            "PATH": self.path("bin") + os.pathsep + os.environ.get("PATH", os.defpath),
            "HOLDFAST_BENCH_ID": self.id,
            **more,
        }

    def progress(self, text: str) -> None:
        """Print a progress line."""
        print(f"  … {text}", file=sys.stderr, flush=True)

    def alive(self) -> list[processes.Process]:
        """Every live process that was started here, directly or indirectly."""
        return processes.marked(f"HOLDFAST_BENCH_ID={self.id}", self.root)

    def end_processes(self) -> None:
        """Send SIGKILL, by pid, to everything that was started here."""

        def all_gone() -> bool:
            processes.kill(self.alive())
            return not self.alive()

        eventually(all_gone, within_s=30, what="the benchmark's processes die of SIGKILL")

    def close(self) -> None:
        """End all processes and remove the directory."""
        try:
            self.end_processes()
        finally:
            shutil.rmtree(self.root, ignore_errors=True)


class Holdfast:
    """One home, used through the command line."""

    def __init__(self, place: Place, **env: str) -> None:
        self.place = place
        self.home = place.new("home")
        # No keeper unless a row needs it: it would start in the middle of a measurement.
        self.env = place.env(**{"HOLDFAST_HOME": self.home, "HOLDFAST_KEEPER": "off", **env})

    def run(self, *args: str, cwd: str | None = None, **env: str) -> str:
        """Run `holdfast run -d ARGS…`; returns the packet."""
        return os.path.join(self.home, "tasks", self.call("run", "-d", *args, cwd=cwd, **env))

    def call(self, *args: str, cwd: str | None = None, **env: str) -> str:
        """Run `holdfast ARGS…`; returns its output."""
        done = subprocess.run(
            [program(), *args],
            env={**self.env, **env},
            cwd=cwd or self.place.root,
            capture_output=True,
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"holdfast {args[0]} failed: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode().strip()

    def start_seed(self) -> int:
        """Start the seed of the home; returns its pid once it is ready."""
        # Started by a process that exits, so that the seed is not our child, as in real use.
        script = (
            "import sys; from holdfast import spawn; from holdfast.store.layout import Home; "
            "print(spawn.execute('holdfast.seed', [], Home(sys.argv[1]), role='seed'))"
        )
        done = subprocess.run(
            [sys.executable, "-P", "-c", script, self.home],
            env=self.env,
            capture_output=True,
            timeout=30,
            check=True,
        )
        os.makedirs(os.path.join(self.home, "tasks"), mode=0o700, exist_ok=True)
        eventually(lambda: os.path.exists(os.path.join(self.home, "seed.sock")), what="the seed listens")
        return int(done.stdout)


def program() -> str:
    """The console script next to this interpreter."""
    return os.path.join(os.path.dirname(sys.executable), "holdfast")


def duration_ns(argv: list[str], env: dict[str, str] | None = None) -> int:
    """Duration from fork to exit of a command.

    `subprocess.wait` with a timeout polls after 0.5, 1, 2, 4, … ms, so 9 ms and 15 ms would both be measured
    as 16 ms. The kernel reports the exit at once.
    """
    began = time.monotonic_ns()
    with subprocess.Popen(
        argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        ended = select.poll()
        descriptor = os.pidfd_open(process.pid)
        ended.register(descriptor, select.POLLIN)
        is_over = ended.poll(60_000)
        took = time.monotonic_ns() - began
        os.close(descriptor)
        if not is_over:
            process.kill()
    if process.returncode != 0:
        raise RuntimeError(f"{argv} ended with {process.returncode}")
    return took


def events(packet: str, *types: str) -> list[dict[str, Any]]:
    """Complete lines of a journal, of these types or all."""
    with open(os.path.join(packet, "events.jsonl"), "rb") as file:
        lines = [json.loads(line) for line in file if line.endswith(b"\n")]
    return [line for line in lines if not types or line["type"] in types]


def note_times(path: str, name: str) -> list[int]:
    """When a failpoint was passed, in nanoseconds, in order."""
    try:
        with open(path, encoding="utf-8") as file:
            fields = [line.split() for line in file]
    except FileNotFoundError:
        return []
    return [int(at) for at, _, passed in fields if passed == name]


def pause(seconds: float) -> None:
    """Sleep. (Allowed here: a benchmark measures time.)"""
    time.sleep(seconds)
