"""Limits of the machine: descriptors."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from holdfast.packet import inbox
from holdfast.store import lock_owner
from holdfast.store.layout import Home, Packet
from tests.support import keepers, kin
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def with_keeper(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests need keepers."""
    monkeypatch.delenv("HOLDFAST_KEEPER")
    workspace()


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
