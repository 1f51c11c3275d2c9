"""`clean_git` believes nothing that an agent wrote into its packet about the time before its work."""

from __future__ import annotations

import os
import sys

import pytest

from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, trust, workspace

#: What an agent does: it leaves a file, and sets a value in a JSON file of its packet.
FORGE = r"""
import json, os, sys
name, key, value = sys.argv[1:]
path = os.path.join(os.environ["HOLDFAST_PACKET"], name)
open("left.txt", "w").close()
try:
    with open(path) as file:
        data = json.load(file)
except FileNotFoundError:
    data = {"schema": "holdfast.git-settings/1", "values": {}}
data[key] = json.loads(value)
with open(path, "w") as file:
    json.dump(data, file)
"""
LIST = ("outputs/command_run.pre_work.json", "uncommitted", '["left.txt"]')
SETTINGS = ("state/git-settings.json", "exclude", '"*"')
#: Only a task with a worktree has snapshots.
OF_SNAPSHOTS = ("state/workspace/git/holdfast.json", "exclude", '"*"')


def _project() -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write(".holdfast/config.toml", "clean_git = true\n")
    repo.commit("a.txt")
    trust(repo.path)
    return repo


def _forge(case: tuple[str, str, str], *flags: str) -> Task:
    command = (sys.executable, "-c", FORGE, *case)
    return Task.start(*flags, "--", *command, project=_project().path)


@pytest.mark.parametrize(
    ("case", "flags"),
    [
        (LIST, ()),
        (SETTINGS, ()),
        (LIST, ("--worktree",)),
        (SETTINGS, ("--worktree",)),
        (OF_SNAPSHOTS, ("--worktree",)),
    ],
)
def test_a_file_that_is_left_is_seen(home: str, case: tuple[str, str, str], flags: tuple[str, ...]) -> None:
    task = _forge(case, *flags)
    manifest = task.wait_for("interrupted", "completed", "failed", within_s=60)
    assert manifest["status"] == "interrupted", manifest


def test_an_index_or_an_ignore_file_hides_nothing(home: str) -> None:
    hide = "git update-index --assume-unchanged a.txt; echo x >> a.txt; mkdir n; echo '*' > n/.gitignore"
    task = Task.start("--", "sh", "-c", hide, project=_project().path)
    manifest = task.wait_for("interrupted", "completed", "failed", within_s=60)
    assert "not committed: a.txt, n/.gitignore" in manifest["interrupt"]["reason"]


def test_a_retry_does_not_believe_it_either(home: str) -> None:
    task = _forge(SETTINGS)
    task.wait_for("interrupted", within_s=60)
    assert holdfast("stop", task.id).returncode == 0
    task.wait_for("killed")
    assert holdfast("retry", "--no-wait", task.id).returncode == 0
    manifest = task.wait_for("interrupted", "completed", "failed", within_s=60)
    assert manifest["status"] == "interrupted", manifest
