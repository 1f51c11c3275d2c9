"""holdfast up: a keeper is running when it returns."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from holdfast.store import lock as locks
from holdfast.store.layout import Home
from tests.support import keepers, loops, processes
from tests.support.tasks import holdfast
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("with_keeper")


def test_it_says_who_the_keeper_is(home: str) -> None:
    done = holdfast("up")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"the keeper of {home} is running (process {keepers.pid(home)})\n"


def test_in_the_foreground_it_is_the_keeper_until_it_is_told_to_leave(home: str) -> None:
    argv = [sys.executable, "-m", "holdfast", "up", "--foreground"]
    keeper = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    assert keepers.wait_for(home) == keeper.pid
    keeper.send_signal(signal.SIGTERM)
    _, stderr = keeper.communicate(timeout=20)
    assert keeper.returncode == 0
    assert "exited: SIGTERM" in stderr
    assert keepers.pid(home) == 0


def test_a_loop_that_was_ended_leaves_no_seed(home: str) -> None:
    with loops.foreground() as keeper:
        assert keepers.wait_for(home) == keeper.pid
        loops.submit("--id", "it", "--", "true").wait_for("completed")
        eventually(lambda: locks.is_held(Home(home).seed_lock))
        keeper.send_signal(signal.SIGINT)
        keeper.wait(timeout=20)
    eventually(lambda: not locks.is_held(Home(home).seed_lock))


def test_up_with_the_keeper_disabled_is_an_error(home: str) -> None:
    done = holdfast("up", env={"HOLDFAST_KEEPER": "off"})
    assert done.returncode == 3
    assert "HOLDFAST_KEEPER" in done.stderr


def test_a_home_that_others_can_write_is_refused(home: str) -> None:
    os.chmod(home, 0o777)
    done = holdfast("up")
    assert (done.returncode, f"chmod go-w {home}" in done.stderr) == (2, True)


def test_the_keeper_is_in_no_session_of_ours(home: str) -> None:
    holdfast("up")
    pid = keepers.pid(home)
    assert os.getsid(pid) == pid
    assert processes.is_alive(pid)
    holdfast("down")
    eventually(lambda: not processes.is_alive(pid))


def test_a_wrong_word_is_refused_with_the_one_that_was_meant() -> None:
    assert holdfast("up", "now").returncode == 2
    wrong = holdfast("up", "--forground")
    assert (wrong.returncode, "--foreground" in wrong.stderr) == (2, True)
