"""Ending many tasks at once: one that does not answer must not delay the others."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.support import keepers, kin
from tests.support.tasks import Task, holdfast
from tests.support.waiting import eventually

#: A request that is not answered is given up after this time.
ANSWER_S = 2.0


pytestmark = pytest.mark.usefixtures("with_keeper")


def start(*names: str) -> list[Task]:
    tasks = [Task.start("--id", name, "--stale", "none", "--", "sleep", "600") for name in names]
    for task in tasks:
        task.agent_pid()
    return tasks


def stop_runners(tasks: list[Task]) -> list[int]:
    pids = [task.runner_pid() for task in tasks]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
        eventually(lambda pid=pid: kin.state(pid) == "T", what="it is stopped")
    return pids


def test_down_now_asks_all_tasks_before_it_waits_for_one(home: str) -> None:
    """Waiting for each task before asking the next took 39 s for 800 tasks; a stopped runner blocked it."""
    *deaf, good = start("a1", "a2", "a3", "a4", "a5", "z")
    keepers.wait_for(home)
    keepers.kill(home)  # it would wake the runners; 'down' ends its successor
    stop_runners(deaf)
    start_mono = time.monotonic()
    done = holdfast("down", "--now")
    took_s = time.monotonic() - start_mono
    assert done.returncode == 0, done.stderr
    assert took_s < len(deaf) * ANSWER_S
    for task in (*deaf, good):
        assert task.status() == "interrupted"
        assert f"interrupted {task.id}" in done.stderr


def test_rm_force_stops_all_tasks_before_it_waits_for_one(home: str) -> None:
    """Agents that stop slowly do so in parallel."""
    slow = "trap 'sleep 2; exit 0' TERM; while :; do sleep 0.1; done"
    tasks = [Task.start("--id", name, "--", "sh", "-c", slow) for name in ("a1", "a2", "a3", "a4", "a5")]
    for task in tasks:
        task.agent_pid()
        eventually(lambda task=task: _catches_term(task.agent_pid()), what="it ignores SIGTERM for a while")
    start_mono = time.monotonic()
    done = holdfast("rm", "--force", *(task.id for task in tasks))
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - start_mono < len(tasks) * 2.0
    assert not any(os.path.exists(task.packet) for task in tasks)


def _catches_term(pid: int) -> bool:
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        (caught,) = [int(line.split()[1], 16) for line in file if line.startswith("SigCgt")]
    return bool(caught & 1 << (signal.SIGTERM - 1))
