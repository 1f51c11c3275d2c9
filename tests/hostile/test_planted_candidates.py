"""The record of a candidate that an agent planted removes no worktree of another task."""

from __future__ import annotations

import os

from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace


def test_rm_keeps_the_worktree_of_a_task_with_the_name_of_a_candidate(home: str) -> None:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("a.txt")
    other = Task.shell("echo precious > work", "--id", "it.c1", "--worktree", project=repo.path)
    other.wait_for("completed")
    folder = "$HOLDFAST_PACKET/state/workspace"
    plant = f"mkdir -p {folder}; echo {{}} > {folder}/worktree.c1.json"
    Task.shell(plant, "--id", "it", project=repo.path).wait_for("completed")
    assert holdfast("rm", "it").returncode == 0
    assert os.path.exists(os.path.join(home, "worktrees", "it.c1", "work"))
