"""Facts about processes from the kernel."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from holdfast.model.process import ProcessIdentity
from holdfast.store import process
from tests.support.waiting import eventually


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "60"], env={"A": "b=c"})
    yield child
    child.kill()
    child.wait()


@pytest.mark.req("SUP-12")
def test_a_process_is_known_by_boot_pid_and_start_time(sleeper: subprocess.Popen[bytes]) -> None:
    identity = process.identify(sleeper.pid)
    assert identity is not None
    assert process.is_alive(identity)
    assert not process.is_alive(identity.evolve(boot_id="another"))
    assert not process.is_alive(identity.evolve(start_time=identity.start_time - 1))
    assert not process.is_alive(identity.evolve(pid=os.getpid()))


@pytest.mark.req("SUP-12")
def test_a_zombie_is_gone(sleeper: subprocess.Popen[bytes]) -> None:
    identity = process.identify(sleeper.pid)
    sleeper.kill()
    # It was not reaped: it is still in the process table.
    eventually(lambda: not process.is_alive(identity), what="the zombie counts as gone")
    assert process.identify(sleeper.pid) == identity


def test_tree_environment_and_command_line(sleeper: subprocess.Popen[bytes]) -> None:
    assert sleeper.pid in process.children(os.getpid())
    assert sleeper.pid in process.descendants(os.getpid())
    eventually(lambda: process.command_line(sleeper.pid) == "sleep 60", what="it was executed")
    assert process.environment(sleeper.pid) == {"A": "b=c"}
    assert os.devnull in process.open_files(sleeper.pid) or process.open_files(sleeper.pid)


@pytest.mark.req("SUP-9")
def test_a_pid_that_is_not_there_is_no_error() -> None:
    gone = 2**22 - 7
    assert process.identify(gone) is None
    assert not process.is_alive(ProcessIdentity(boot_id=process.boot_id(), pid=gone, start_time=1))
    assert process.children(gone) == process.descendants(gone) == []
    assert process.environment(gone) == {}
    assert process.command_line(gone) == ""
    assert process.open_files(gone) == []
    assert process.tree_cpu_s(gone) == 0.0
