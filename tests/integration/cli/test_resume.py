"""holdfast resume: continue after an interrupt, or before a pause is over."""

from __future__ import annotations

import pytest

from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


@pytest.mark.req("RES-8")
def test_an_interrupted_task_goes_on_with_the_answer() -> None:
    task = Task.shell("test $HOLDFAST_RESUME_COUNT = 1 || " + kin.WAIT.rstrip("; "), "--id", "it")
    task.agent_pid()
    task.ask("interrupt", "-m", "shall I?")
    task.wait_for("interrupted")
    done = task.ask("resume", "-m", "yes")
    assert (done.returncode, done.stdout) == (0, "")
    task.wait_for("completed")
    move = next(event for event in task.events("task.moved") if event.get("answer"))
    assert move["answer"] == "yes"


def test_a_waiting_task_is_woken() -> None:
    task = Task.shell(
        "test $HOLDFAST_RESUME_COUNT = 2 || kill -9 $$", "--base-interval", "600s", "--max-interval", "600s"
    )
    task.wait_for("waiting")
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")


def test_what_has_ended_cannot_be_resumed() -> None:
    task = Task.shell("true")
    task.wait_for("completed")
    done = task.ask("resume")
    assert (done.returncode, "holdfast retry" in done.stderr) == (3, True)
    assert holdfast("resume", "nobody").returncode == 3
    assert holdfast("resume").returncode == 2
