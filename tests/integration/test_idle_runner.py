"""A runner whose agent is silent: it is not woken, uses no scarce resource, and notices the next line."""

from __future__ import annotations

import os

import pytest

from holdfast import clock
from tests.support import kin
from tests.support.tasks import Task
from tests.support.waiting import eventually

#: Without notifications, a runner would be woken at least once in this time.
WINDOW_S = 6.0


# A runner without a keeper looks for one every second.
pytestmark = pytest.mark.usefixtures("with_keeper")


def wake_ups(pid: int) -> int:
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))


def sleeps_through(pid: int) -> bool:
    """Whether a process is not woken during one window."""
    before, ends_mono = wake_ups(pid), clock.mono() + WINDOW_S
    eventually(lambda: clock.mono() > ends_mono, what="the window is over")
    return wake_ups(pid) == before


def open_files(pid: int) -> list[str]:
    return [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]


@pytest.mark.req("OUT-1")
def test_an_idle_runner_uses_no_inotify_instance_and_is_not_woken_until_a_line_comes(home: str) -> None:
    task = Task.shell("until [ -e go ]; do sleep 0.1; done; echo late; exec sleep 60")
    task.wait_for("running")
    runner = task.runner_pid()
    eventually(lambda: sleeps_through(runner), within_s=40.0, what="a window without a wake-up")
    # A user has 128 instances, for all programs together: agents need them, too.
    assert "anon_inode:inotify" not in open_files(runner)
    kin.go()
    task.wait_for_log("late", within_s=5.0)
    task.stop()
