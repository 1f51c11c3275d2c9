"""holdfast interrupt: the agent stops until the task is resumed."""

from __future__ import annotations

import pytest

from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def test_the_agent_has_exited_and_the_question_is_pending() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    agent = task.agent_pid()
    done = task.ask("interrupt", "-m", "which one?")
    assert (done.returncode, done.stdout) == (0, "")
    manifest = task.manifest()
    assert (manifest["status"], manifest["interrupt"]["reason"]) == ("interrupted", "which one?")
    assert not processes.is_alive(agent)
    assert "holdfast resume it" in done.stderr
    task.stop()


def test_what_has_ended_cannot_be_interrupted_and_what_waits_is_left_as_it_is() -> None:
    task = Task.shell(kin.WAIT)
    task.agent_pid()
    task.ask("interrupt")
    task.wait_for("interrupted")
    again = task.ask("interrupt")
    assert (again.returncode, again.stderr) == (0, f"{task.id} is already interrupted\n")
    again = task.ask("interrupt", "-m", "a question that would be lost")
    assert (again.returncode, "it is already interrupted" in again.stderr) == (3, True)
    task.stop()
    late = task.ask("interrupt")
    assert (late.returncode, "it has already ended" in late.stderr) == (3, True)
    assert holdfast("interrupt", "nobody").returncode == 3
    assert holdfast("interrupt").returncode == 2


def test_several_and_all_and_resume_retry_approve_and_rm_have_the_same_shape() -> None:
    tasks = [Task.shell(kin.WAIT, "--id", name) for name in ("one", "two", "three")]
    for task in tasks:
        task.agent_pid()
    done = holdfast("interrupt", "one", "two")
    assert done.returncode == 0
    assert [task.status() for task in tasks] == ["interrupted", "interrupted", "running"]
    assert holdfast("interrupt", "--all").returncode == 0
    assert tasks[2].status() == "interrupted"
    done = holdfast("resume", "--all", "--json")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3)
    for task in tasks:
        task.agent_pid()
    assert holdfast("stop", "--all").returncode == 0
    done = holdfast("retry", "--all")
    assert (done.returncode, done.stderr) == (0, "no task to retry\n")  # they did not fail
    done = holdfast("retry", "--state", "killed")
    assert (done.returncode, done.stderr.count("runs again")) == (0, 3)
    for task in tasks:
        task.agent_pid()
    done = holdfast("rm", "--all")
    assert (done.returncode, done.stderr) == (0, "no task to rm\n")
    assert holdfast("approve", "--all").stderr == "no task to approve\n"
    assert holdfast("reject", "--all").stderr == "no task to reject\n"
    done = holdfast("rm", "--force", "--all")
    assert (done.returncode, done.stderr.count("removed ")) == (0, 3)
