"""Limits of the machine: descriptors, memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from holdfast import clock
from holdfast.packet import inbox
from holdfast.store import atomic, lock_owner
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet
from tests.support import keepers, kin
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("with_keeper")


def soft_limit(pid: int) -> int:
    return resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]


def test_the_keeper_has_as_many_descriptors_as_it_may_and_nobody_else(home: str) -> None:
    script = (
        "import resource, subprocess, sys;"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1];"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard));"
        "subprocess.run([sys.executable, '-m', 'holdfast', 'up'], check=True)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30, stderr=subprocess.DEVNULL)
    keeper = keepers.wait_for(home)
    hard = resource.prlimit(keeper, resource.RLIMIT_NOFILE)[1]
    eventually(lambda: soft_limit(keeper) == hard, what="the keeper raised its limit")
    seed = eventually(lambda: lock_owner.owner(Home(home).seed_lock), what="a seed lives")
    assert soft_limit(seed.pid) == 200
    task = Task.shell(kin.WAIT)
    assert soft_limit(task.agent_pid()) == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    kin.go()
    task.wait_for("completed")


def limited(name: str, limit: int, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of holdfast in a process with this limit."""
    script = (
        "import os, resource, sys;"
        f"resource.setrlimit(resource.RLIMIT_{name}, ({limit}, {limit}));"
        "os.execv(sys.executable, [sys.executable, '-m', 'holdfast', *sys.argv[1:]])"
    )
    argv = [sys.executable, "-c", script, *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


#: More live tasks than the keeper may have descriptors.
FEW, MANY = 46, 50


def test_a_keeper_without_enough_descriptors_polls(home: str) -> None:
    """It crashed at the first file that it could not open, and so did each of its successors."""
    script = (
        "import resource, subprocess, sys;"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({FEW}, {FEW}));"
        "subprocess.run([sys.executable, '-m', 'holdfast', 'up'], check=True)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30, stderr=subprocess.DEVNULL)
    keeper = keepers.wait_for(home)
    assert resource.prlimit(keeper, resource.RLIMIT_NOFILE) == (FEW, FEW)
    tasks = [Task.start("--stale", "none", "--", "sleep", "600") for _ in range(MANY)]
    for task in tasks:
        task.agent_pid()
    first = [task.runner_pid() for task in tasks]
    kin.kill(*first)
    for task, old in zip(tasks, first, strict=True):
        eventually(lambda task=task, old=old: task.runner_pid() != old, 60, "it has a new runner")
    assert keepers.pid(home) == keeper
    assert not [line for line in keepers.log(home) if "cannot" in line and "may sleep" not in line]
    assert len(os.listdir(f"/proc/{keeper}/fd")) < FEW
    for task in tasks:
        inbox.drop(Packet(task.packet), "stop", {}, by="a test")
        inbox.ring(Packet(task.packet))
    for task in tasks:
        task.wait_for("killed", within_s=60)
        assert len(task.attempts()) == 1
    # The keeper has noticed all ends.
    eventually(lambda: len(os.listdir(f"/proc/{keeper}/fd")) < FEW - MANY // 2, 30, "descriptors are closed")


@pytest.mark.parametrize("words", [("run", "--id", "it", "--", "true"), ("submit", "--", "true"), ("up",)])
def test_too_few_descriptors_for_a_runner_are_told_at_once(home: str, words: tuple[str, ...]) -> None:
    """Runner and keeper died at their start, and `run` waited without a word."""
    done = limited("NOFILE", 20, *words)
    assert (done.returncode, done.stdout) == (3, "")
    assert "only 20 files can be opened here, and a task needs 32" in done.stderr
    assert "ulimit -n 1024" in done.stderr
    assert not os.path.exists(Home(home).tasks) or os.listdir(Home(home).tasks) == []


def test_with_as_many_descriptors_as_are_asked_for_a_task_runs(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("file")
    monkeypatch.chdir(repo.path)
    done = limited("NOFILE", 32, "run", "--id", "it", "--worktree", "--accept", "true", "--", "touch", "x")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("verb", ["attach", "wait"])
def test_who_follows_a_task_whose_runners_and_keepers_die_is_told(
    home: str, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("HOLDFAST_KEEPER", "off")
    done = holdfast("run", "-d", "--id", "it", "--", "true", env={"HOLDFAST_FAILPOINT": "runner.locked=kill"})
    assert done.returncode == 0, done.stderr
    eventually(lambda: os.path.exists(Home(home).packet("it").runner_lock), what="a runner began")
    eventually(lambda: not locks.is_held(Home(home).packet("it").runner_lock), what="it died")
    now = clock.now()
    starts = {"starts": [now - 30, now - 25, now - 15, now - 1], "failures": 4}
    atomic.write_json(Home(home).keeper_starts, starts, durable=False)
    with open(Home(home).packet("it").runner_log, "w", encoding="utf-8") as log:
        log.write("Traceback (most recent call last):\nMemoryError: no room\n")
    told = holdfast(verb, "it")
    assert told.returncode == 4, told.stderr
    assert (
        "it is spawning: its runners and the keepers of this home die (MemoryError: no room)" in told.stderr
    )
    monkeypatch.delenv("HOLDFAST_KEEPER")
    holdfast("up")
    Task(Home(home).packet("it").path).wait_for("completed", within_s=30)
