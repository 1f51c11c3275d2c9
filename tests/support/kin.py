"""The processes of a task and of a home: find, kill, stop or start one."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys

from holdfast import seed_client
from holdfast.store.layout import Home
from tests.support import processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

#: Shell: wait for the file `go` in the workspace. It has a time limit, in case a test forgets it.
WAIT = "i=0; while [ ! -e go ] && [ $i -lt 1200 ]; do sleep 0.05; i=$((i+1)); done; "


def alone(home: str, name: str = "keeper.lock") -> int:
    """Hold the keeper's lock, so that no keeper starts a runner during the test; or `seed.lock`, so
    that no seed brings a keeper back. Returns the descriptor."""
    lock = os.open(os.path.join(home, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lock


def go(name: str = "go") -> None:
    """Let agents continue that wait for a file."""
    with open(os.path.join(workspace(), name), "w", encoding="utf-8"):
        pass


def recorder_pid(task: Task, attempt: int = -1) -> int:
    """The recorder of an attempt (default: the last one), once it signed the lock."""

    def signed() -> int:
        with open(os.path.join(task.attempts()[attempt], "lock"), encoding="utf-8") as file:
            owner = json.loads(file.read())
        return owner["pid"] if owner["role"] == "recorder" else 0

    return eventually(signed, what="the recorder signed its lock", journal=task.packet)


def kill(*pids: int) -> None:
    """SIGKILL all of them at once, and wait until they are gone."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not any(processes.is_alive(pid) for pid in pids), what=f"{pids} are gone")


def state(pid: int) -> str:
    """R, S, T, …; empty when it is gone."""
    found = processes.look(pid)
    return found.state if found else ""


def parent(pid: int) -> int:
    """The parent of a living process."""
    found = processes.look(pid)
    assert found is not None
    return found.parent_pid


def kernel_tells_status() -> bool:
    """Whether a pidfd reports the exit status of another process's child (Linux 6.15)."""
    major, minor = os.uname().release.split(".")[:2]
    return (int(major), int(minor.partition("-")[0])) >= (6, 15)


def pid_in(path: str) -> int:
    """The pid that a process writes into a file of the workspace, once it is there."""

    def there() -> int:
        with open(os.path.join(workspace(), path), encoding="ascii") as file:
            return int(file.read())

    return eventually(there, what=f"a pid in {path}")


def make(*args: str, task_id: str = "made") -> Task:
    """A task whose runner has not been started yet."""
    killed = {"HOLDFAST_FAILPOINT": "create.renamed=kill"}
    done = holdfast("run", "-d", "--id", task_id, *args, env=killed, cwd=workspace())
    assert done.returncode == -signal.SIGKILL, done.stderr
    return Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", task_id))


def run_runner(task: Task, env: dict[str, str] | None = None, within_s: float = 30) -> int:
    """`python -m holdfast.runner PACKET`, to its end; its exit status."""
    argv = [sys.executable, "-m", "holdfast.runner", task.packet]
    return subprocess.run(
        argv, env={**os.environ, **(env or {})}, capture_output=True, timeout=within_s, check=False
    ).returncode


def start_seed(home: str, env: dict[str, str] | None = None) -> int:
    """Start the seed of a home as `run` and the keeper do; its pid, once it answers."""
    script = "import sys; from holdfast import spawn; from holdfast.store.layout import Home; "
    script += "print(spawn.execute('holdfast.seed', [], Home(sys.argv[1]), role='seed'))"
    done = subprocess.run(
        [sys.executable, "-c", script, home],
        env={**os.environ, **(env or {})},
        capture_output=True,
        timeout=30,
        check=True,
    )
    pid = int(done.stdout)
    eventually(
        lambda: seed_client.ask(Home(home), {"verb": "ping"}) == {"pong": pid}, what="the seed answers"
    )
    return pid
