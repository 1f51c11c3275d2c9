"""holdfast retry: restart an ended task."""

from __future__ import annotations

import os

import pytest

from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def test_a_failed_task_runs_again_with_the_environment_of_now() -> None:
    task = Task.shell('echo "value $VALUE"; test "$VALUE" = two', "--env", "VALUE", env={"VALUE": "one"})
    task.wait_for("failed")
    done = holdfast("retry", task.id, env={"VALUE": "two"})
    assert (done.returncode, done.stdout) == (0, "")
    manifest = task.wait_for("completed")
    assert manifest["run"] == 2
    ended = "--- attempt 1 ended: failed: exit status 1 ---"
    marks = [ended, "--- retry ---", "--- attempt 2 (again) ---"]
    assert task.log().splitlines() == ["value one", *marks, "value two"]
    assert os.path.exists(task.path("runs", "1", "_task.done"))


def test_the_message_of_a_retry_is_in_the_log() -> None:
    task = Task.shell("echo said; exit 1")
    task.wait_for("failed")
    assert task.ask("retry", "-m", "Now with\nfeeling.").returncode == 0
    task.wait_for("failed")
    assert "--- retry: Now with feeling. ---" in task.log().splitlines()


def test_a_deadline_can_be_changed() -> None:
    task = Task.shell(kin.WAIT, "--deadline", "0.2s", "--stop-pause", "1s")
    task.wait_for("abandoned")
    assert task.ask("retry", "--deadline", "none").returncode == 0
    task.agent_pid()
    kin.go()
    task.wait_for("completed")


def test_a_completed_task_needs_the_stage() -> None:
    task = Task.shell("true")
    task.wait_for("completed")
    done = task.ask("retry")
    assert (done.returncode, "--from (command_run)" in done.stderr) == (3, True)
    wrong = task.ask("retry", "--from", "no_stage")
    assert (wrong.returncode, "its stages are command_run" in wrong.stderr) == (3, True)
    assert task.ask("retry", "--from", "command_run").returncode == 0
    task.wait_for("completed")


def test_only_what_has_ended_can_be_tried_again() -> None:
    task = Task.shell(kin.WAIT)
    task.agent_pid()
    done = task.ask("retry")
    assert (done.returncode, "it has not ended" in done.stderr) == (3, True)
    task.stop()
    bad = task.ask("retry", "--deadline", "soon")
    assert bad.returncode == 2
    assert holdfast("retry", "nobody").returncode == 3
    assert holdfast("retry").returncode == 2


def test_a_task_that_has_a_time_of_its_own_keeps_it_and_says_so(home: str) -> None:
    assert (
        holdfast("submit", "--id", "it", "--not-before", "+1h", "--", "true", cwd=workspace()).returncode == 0
    )
    task = Task(os.path.join(home, "tasks", "it"))
    assert task.ask("stop").returncode == 0
    task.wait_for("killed")
    done = holdfast("retry", "it")
    assert done.returncode == 0
    assert done.stderr.startswith("it is queued: not before ")
