"""holdfast stop: stops a task, once."""

from __future__ import annotations

import pytest

from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def test_it_ends_as_killed_with_the_reason_given() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    done = task.ask("stop", "-m", "wrong branch")
    assert (done.returncode, done.stdout) == (0, "")
    assert "'holdfast wait it'" in done.stderr
    assert task.wait_for("killed")["status_reason"] == "wrong branch"


def test_a_prefix_is_enough() -> None:
    task = Task.shell(kin.WAIT, "--id", "20260131-abc")
    task.agent_pid()
    assert holdfast("stop", "20260131").returncode == 0
    task.wait_for("killed")


def test_what_has_ended_cannot_be_stopped() -> None:
    task = Task.shell("true")
    task.wait_for("completed")
    done = task.ask("stop")
    assert (done.returncode, "it has already ended: completed" in done.stderr) == (3, True)
    assert holdfast("stop", "nobody").returncode == 3
    assert holdfast("stop").returncode == 2
    wrong = task.ask("stop", "--mesage", "x")
    assert (wrong.returncode, "--message" in wrong.stderr) == (2, True)
