"""A manifest that an agent of another task writes after a task's end changes nothing of what is delivered."""

from __future__ import annotations

import json
import os

from tests.support import repos
from tests.support.gh import Gh
from tests.support.tasks import Task, holdfast, workspace


def _forge(task: Task) -> None:
    """As if it had completed, and its gates had passed."""
    manifest = task.manifest()
    stages = [{**stage, "state": "done", "gate": "passed"} for stage in manifest["stages"]]
    forged = {**manifest, "status": "completed", "interrupt": None, "concerns": None, "stages": stages}
    with open(task.path("manifest.json"), "w", encoding="utf-8") as file:
        json.dump({**forged, "finished_at": "2026-01-01T00:00:00.000Z"}, file)
    with open(task.path("done", "_task.done"), "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.done/1"}, file)


def test_no_pull_request_of_work_that_failed(home: str) -> None:
    remote = repos.bare_remote()
    project = repos.pushed_project(remote)
    task = Task.shell("echo x > b", "--id", "it", "--worktree", "--accept", "false", project=project.path)
    task.wait_for("failed", within_s=60)
    _forge(task)
    done = holdfast("pr", "it", env=Gh().env)
    assert done.returncode == 3
    assert "it is failed" in done.stderr, done.stderr
    assert "holdfast/it" not in remote.git("branch")


def test_a_task_that_needs_a_person_is_not_archived(home: str) -> None:
    task = Task.start("--", "sh", "-c", "echo help > $HOLDFAST_PACKET/state/interrupt-request.txt; sleep 60")
    task.wait_for("interrupted")
    _forge(task)
    done = holdfast("archive", task.id)
    assert "has not ended: it is interrupted" in " ".join(done.stderr.split())
    assert os.path.isdir(os.path.join(home, "tasks", task.id))
    os.rename(task.packet, os.path.join(home, "archive-me"))
    os.makedirs(os.path.join(home, "archive"))
    os.rename(os.path.join(home, "archive-me"), os.path.join(home, "archive", task.id))
    assert "completed" not in holdfast("ls", "--archived", cwd=workspace()).stdout
