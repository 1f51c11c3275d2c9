"""Limits of the machine: descriptors."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from holdfast.store import lock as locks
from holdfast.store.layout import Home
from tests.support import keepers, kin
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def with_keeper(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here keepers are wanted."""
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
    seed = eventually(lambda: locks.owner(Home(home).seed_lock), what="a seed lives")
    assert soft_limit(seed.pid) == 200
    task = Task.shell(kin.WAIT)
    assert soft_limit(task.agent_pid()) == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    kin.go()
    task.wait_for("completed")
