"""Nobody is signalled because of a name in a file: only who holds a lock, by the kernel's word.

And who holds the lock of a task and does not answer, cannot keep it from being stopped and removed.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from holdfast.store import process
from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

#: Writes the identity of a process ($2) into a lock file ($1).
SIGN = """
import json, os, sys
path, pid = sys.argv[1], int(sys.argv[2])
with open(f"/proc/{pid}/stat") as file:
    start = int(file.read().rpartition(")")[2].split()[19])
with open(path, "r+") as file:
    owner = json.load(file) | {"pid": pid, "start_time": start}
    file.seek(0)
    file.write(json.dumps(owner) + " " * 40)
"""
#: An agent that takes the lock of its runner.
THIEF = """
import fcntl, json, os, signal, time
packet = os.environ["HOLDFAST_PACKET"]
with open(packet + "/runner.lock") as file:
    os.kill(json.load(file)["pid"], signal.SIGKILL)
halves = [os.open(packet + "/runner.lock", os.O_RDWR), os.open(packet, os.O_RDONLY)]
for half in halves:
    while True:
        try:
            fcntl.flock(half, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            pass
open("stolen", "w").close()
time.sleep(600)
"""


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as started:
        yield started
        started.kill()


def sign(lock: str, pid: int) -> None:
    subprocess.run([sys.executable, "-c", SIGN, lock, str(pid)], check=True)


@pytest.mark.parametrize("name", ["keeper", "seed"])
def test_down_signals_nobody_whom_a_file_names(
    home: str, name: str, victim: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up").returncode == 0
    lock = os.path.join(home, f"{name}.lock")
    eventually(lambda: os.path.exists(lock) and os.path.getsize(lock) > 0, 20, f"there is a {name}")
    sign(lock, victim.pid)
    done = holdfast("down")
    assert done.returncode == 0, done.stderr
    assert victim.poll() is None


def test_no_runner_signals_whom_its_agent_names(home: str, victim: subprocess.Popen[bytes]) -> None:
    with open(os.path.join(workspace(), "sign.py"), "w", encoding="utf-8") as file:
        file.write(SIGN)
    script = f'{sys.executable} sign.py "$HOLDFAST_ATTEMPT/lock" {victim.pid}; sleep 3 & sleep 0.2'
    task = Task.shell(script, "--leftovers", "keep")
    task.wait_for("completed", within_s=30)
    left = Task.shell(f"{script}; exit 1", "--id", "second")
    left.wait_for("failed", within_s=30)
    assert victim.poll() is None
    holdfast("rm", task.id, left.id)


@pytest.mark.parametrize("verb", ["stop", "rm"])
def test_a_task_whose_agent_took_the_lock_is_stopped_and_removed(
    home: str, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    task = Task.start("--", sys.executable, "-c", THIEF)
    eventually(lambda: os.path.exists(os.path.join(workspace(), "stolen")), 30, "the lock is stolen")
    done = task.ask("stop", "--now") if verb == "stop" else holdfast("rm", "--force", task.id)
    assert done.returncode == 0, done.stderr
    if verb == "stop":
        assert task.wait_for("killed")["status"] == "killed"
        assert holdfast("rm", "--force", task.id).returncode == 0
    assert not os.path.exists(task.packet)
    assert "runner.killed" in holdfast("audit", "--json").stdout


@pytest.mark.parametrize("verb", ["stop", "rm"])
def test_a_runner_that_never_answers_is_replaced(home: str, verb: str) -> None:
    """It is stopped again whenever it is continued, as by a debugger."""
    task = Task.shell("echo $$ > agent; " + kin.WAIT)
    eventually(lambda: task.status() == "running", what="it runs")
    with open(task.path("runner.lock"), encoding="utf-8") as file:
        runner = json.load(file)["pid"]
    holder = subprocess.Popen([sys.executable, "-c", _STOPPER, str(runner)])
    try:
        done = task.ask("stop", "--now") if verb == "stop" else holdfast("rm", "--force", task.id)
        assert done.returncode == 0, done.stderr
        assert not processes.is_alive(runner)
        if verb == "stop":
            task.wait_for("killed")
    finally:
        holder.kill()
        holder.wait()


_STOPPER = """
import os, signal, sys, time
while True:
    os.kill(int(sys.argv[1]), signal.SIGSTOP)
    time.sleep(0.005)
"""


def test_who_holds_a_lock_is_the_kernels_word(home: str, tmp_path: object) -> None:
    from holdfast.store import lock as locks
    from holdfast.store import lock_holders

    path = os.path.join(str(tmp_path), "keeper.lock")
    held = locks.acquire(path, role="test")
    try:
        assert lock_holders.holds(path, os.getpid())
        with open(path, "rb") as file, subprocess.Popen(["sleep", "600"], stdin=file) as reader:
            assert not lock_holders.holds(path, reader.pid), "it has the file open, and nothing more"
            sign(path, reader.pid)
            assert lock_holders.holder(path) is None, "nobody but this process, which asks"
            assert process.identify(reader.pid) is not None
            reader.send_signal(signal.SIGKILL)
        shared = os.open(path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(shared, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.close(shared)
    finally:
        held.release()
