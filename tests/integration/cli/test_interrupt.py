"""holdfast interrupt: the agent stops until the task is resumed."""

from __future__ import annotations

import pytest

from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def test_the_agent_is_gone_and_the_question_stands() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    agent = task.agent_pid()
    done = task.ask("interrupt", "-m", "which one?")
    assert (done.returncode, done.stdout) == (0, "")
    manifest = task.wait_for("interrupted")
    assert manifest["interrupt"]["reason"] == "which one?"
    assert not processes.is_alive(agent)
    assert "holdfast resume it" in done.stderr
    task.stop()


def test_what_waits_or_has_ended_cannot_be_interrupted() -> None:
    task = Task.shell(kin.WAIT)
    task.agent_pid()
    task.ask("interrupt")
    task.wait_for("interrupted")
    again = task.ask("interrupt")
    assert (again.returncode, "it is already interrupted" in again.stderr) == (3, True)
    task.stop()
    late = task.ask("interrupt")
    assert (late.returncode, "it has already ended" in late.stderr) == (3, True)
    assert holdfast("interrupt", "nobody").returncode == 3
    assert holdfast("interrupt").returncode == 2
