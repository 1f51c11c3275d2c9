"""A link takes the place of a project between the creation of a task and its start: the task does not run
where the link leads."""

from __future__ import annotations

import json
import os
import sys

import pytest

from tests.support import loops
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast
from tests.support.waiting import eventually


def _replace(path: str, target: str) -> None:
    os.rename(path, f"{path}.was")
    os.symlink(target, path)


@pytest.fixture(name="other")
def other_project(home: str) -> str:
    """A project of the user in which the task should not run."""
    path = os.path.join(os.path.dirname(home), "other")
    Repo(path).commit("a")
    return path


@pytest.mark.parametrize("part", ["project", "above"])
@pytest.mark.parametrize("options", [(), ("--worktree",)])
def test_a_queued_task(
    home: str, other: str, monkeypatch: pytest.MonkeyPatch, part: str, options: tuple[str, ...]
) -> None:
    above = os.path.join(os.path.dirname(home), "above")
    project = os.path.join(above, "project")
    Repo(project).commit("a")
    Repo(os.path.join(other, "project")).commit("a")
    assert holdfast("queue", "pause").returncode == 0
    command = ("submit", "--id", "it", *options, "--project", project, "--", "sh", "-c", "touch here; pwd")
    assert holdfast(*command).returncode == 0
    _replace(project if part == "project" else above, other)
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("queue", "resume").returncode == 0
    assert holdfast("up").returncode == 0
    task = Task(os.path.join(home, "tasks", "it"))
    manifest = task.wait_for("interrupted")
    assert other in manifest["interrupt"]["reason"]
    assert not task.events("attempt.opened")
    assert "holdfast/it" not in Repo(other).git("branch", "--list")
    # An answer alone changes nothing: an agent can write one.
    assert holdfast("resume", "it", "-m", "go on").returncode == 0
    eventually(lambda: len([move for move in task.moves() if move == "interrupted"]) == 2)
    assert not task.events("attempt.opened")
    if part == "above":
        # A person accepts the other project, and no agent does.
        asked = Task.shell(f"{sys.executable} -m holdfast resume --adopt it 2>&1; true")
        asked.wait_for("completed")
        assert "cannot accept another project: an agent may not do this" in " ".join(asked.log().split())
        assert "resume --adopt it" in task.manifest()["interrupt"]["reason"]
        done = holdfast("resume", "--adopt", "it")
        assert f"it goes on in {other}/project" in done.stderr
        task.wait_for("completed")
        assert os.path.exists(os.path.join(other, "project", "here")) != bool(options)
        return
    place = project
    os.unlink(place)
    os.rename(f"{place}.was", place)
    assert holdfast("resume", "it").returncode == 0
    task.wait_for("completed")


def test_the_next_stage_of_a_task(home: str, other: str) -> None:
    """An agent moves its own project away: its checks do not run in the other one."""
    project = os.path.join(os.path.dirname(home), "project")
    Repo(project).commit("a")
    ran = os.path.join(os.path.dirname(home), "ran")
    script = f"mv {project} {project}.was; ln -s {other} {project}"
    task = Task.start("--accept", f"touch {ran}", "--", "sh", "-c", script, project=project)
    manifest = task.wait_for("interrupted")
    assert other in manifest["interrupt"]["reason"]
    assert not os.path.exists(ran)


def test_a_link_that_stays_as_it_was(home: str, other: str) -> None:
    link = os.path.join(os.path.dirname(home), "link")
    os.symlink(other, link)
    assert holdfast("run", "--project", link, "--", "touch", "here").returncode == 0
    assert os.path.exists(os.path.join(other, "here"))


def test_the_project_of_up(home: str, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sources are read, and their programs run, where `up` was typed."""
    project = os.path.join(os.path.dirname(home), "project")
    Repo(project).commit("a")
    loops.settings('sources = ["cmd:pwd >> ran; echo []"]\nrefresh = "3s"\n')
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up", cwd=project).returncode == 0
    eventually(lambda: os.path.exists(os.path.join(project, "ran")))
    _replace(project, other)

    def failing() -> str:
        with open(os.path.join(home, "loop.json"), encoding="utf-8") as file:
            return json.dumps(json.load(file).get("failing"))

    eventually(lambda: other in failing())
    assert not os.path.exists(os.path.join(other, "ran"))
