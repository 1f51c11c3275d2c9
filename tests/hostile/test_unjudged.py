"""Files of a worktree that an agent of another task changed after the gate do not pass as judged."""

from __future__ import annotations

import os

import pytest

from tests.support import repos
from tests.support.gh import Gh
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast

SAYS = "changed after the last gate passed, and not checked"


def _worked() -> tuple[Repo, Repo]:
    """A task whose gate has passed: its remote, and its worktree."""
    remote = repos.bare_remote()
    project = repos.pushed_project(remote)
    words = ("--id", "it", "--worktree", "--accept", "test -e b.txt")
    task = Task.shell("echo good > b.txt", *words, project=project.path)
    task.wait_for("completed", within_s=60)
    return remote, Repo(os.path.join(os.environ["HOLDFAST_HOME"], "worktrees", "it"), with_git=False)


@pytest.mark.parametrize("flags", [(), ("--patch",)], ids=["merge", "patch"])
@pytest.mark.parametrize("is_changed", [False, True], ids=["judged", "changed"])
def test_apply_names_what_no_gate_saw(home: str, flags: tuple[str, ...], is_changed: bool) -> None:
    _, tree = _worked()
    if is_changed:
        tree.write("b.txt", "evil\n")
    done = holdfast("apply", "it", *flags)
    assert done.returncode == 0, done.stderr
    assert (f"{SAYS}: b.txt" in " ".join(done.stderr.split())) == is_changed


def test_a_pull_request_says_that_no_gate_saw_it(home: str) -> None:
    _, tree = _worked()
    gh = Gh()
    assert holdfast("pr", "it", env=gh.env).returncode == 0
    assert SAYS not in gh.pulls()["holdfast/it"]["body"]
    tree.write("b.txt", "evil\n")
    done = holdfast("pr", "it", env=gh.env)
    assert f"{SAYS}: b.txt" in " ".join(done.stderr.split())
    assert f"{SAYS}: 1 file\n" in gh.pulls()["holdfast/it"]["body"]
