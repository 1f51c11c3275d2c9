"""A repository's own checks around a plain run: before the work they are told, after it they decide."""

from __future__ import annotations

import os

import pytest

from holdfast.testing import Scenario
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("home")

STAGE = "scripted_run"


def project(settings: str, *files: str) -> Repo:
    """A repository with settings of its own."""
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write(".holdfast/config.toml", settings)
    repo.commit(".holdfast/config.toml", *files)
    return repo


def gate(task: Task) -> dict[str, object]:
    return task.json("outputs", f"{STAGE}.gate_result.json")


def summary(task: Task) -> str:
    return task.read("outputs", "_summary.md").decode()


@pytest.mark.req("GAT-11", "INT-2", "BUD-9")
def test_work_that_does_not_pass_asks_a_person_and_the_agent_goes_on_in_its_session(home: str) -> None:
    repo = project('post_work = ["test -e done.txt"]\n')
    task = Task.play(Scenario().say("I am finished."), project=repo.path)
    manifest = task.wait_for("interrupted")
    assert manifest["interrupt"]["reason"].startswith("quality gate failed: `test -e done.txt` failed")
    assert gate(task)["failed"] == "post_work"
    assert not os.path.exists(task.path("done", f"{STAGE}.done"))
    assert "- next_action: **fix_contract**" in summary(task)
    assert len(task.memory().starts()) == 1
    repo.write("done.txt")
    task.ask("resume")
    task.wait_for("completed")
    first, second = task.memory().starts()
    assert (first.is_resume, second.is_resume) == (False, True)
    assert "`test -e done.txt` failed with exit status 1" in second.prompt
