"""Around a worktree: the refs of the repository and the user's own tree, compared after a stage."""

from __future__ import annotations

import os

import pytest

from holdfast.testing import Scenario
from tests.support.packets import REPORTS, WORK, Written, gate
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("home")

IMPL = "scripted_impl"


def project() -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("README.md")
    return repo


def doing(command: str) -> Scenario:
    command = f"{command}; echo hello > {WORK}"
    return Scenario().tool("sh", command=command).say(REPORTS["impl"]).result("ok")


def warnings(repo: Repo, command: str) -> list[str]:
    task = Written({IMPL: doing(command)}, project=repo, workspace="worktree").run()
    return gate(task, IMPL)["warnings"]


def test_a_moved_ref_is_a_warning_and_the_task_completes() -> None:
    repo = project()
    task = Written({IMPL: doing("git tag v9")}, project=repo, workspace="worktree").run()
    (warning,) = gate(task, IMPL)["warnings"]
    assert warning.startswith("refs of the repository changed: refs/tags/v9 (none → ")
    assert f"while {IMPL} ran" in warning
    assert "refs/tags/v9" in task.read("outputs", "_summary.md").decode()


def test_files_and_index_of_the_users_tree_are_compared() -> None:
    repo = project()
    (warning,) = warnings(repo, f"echo x >> {repo.path}/README.md; echo y > {repo.path}/new.txt")
    assert "files of the project itself changed: README.md, new.txt" in warning


def test_a_staged_change_is_noticed() -> None:
    repo = project()
    repo.write("README.md", "edited by a person\n")
    (warning,) = warnings(repo, f"git --git-dir={repo.path}/.git --work-tree={repo.path} add README.md")
    assert "the index of the project itself changed" in warning


def test_what_the_task_and_a_fetch_write_is_no_difference() -> None:
    repo = project()
    command = "git commit -q --allow-empty -m x; git update-ref refs/remotes/origin/main HEAD"
    assert warnings(repo, command) == []


def test_a_plain_run_that_must_be_accepted_is_compared() -> None:
    repo = project()
    script = f"git tag v9; echo good > {WORK}"
    task = Task.shell(script, "--worktree", "--accept", f"test -e {WORK}", project=repo.path)
    task.wait_for("completed", within_s=30)
    assert "refs/tags/v9" in task.read("outputs", "_summary.md").decode()


def test_an_apply_meanwhile_is_named_as_the_cause() -> None:
    repo = project()
    first = Task.shell("echo new > other.txt", "--id", "first", "--worktree", project=repo.path)
    first.wait_for("completed", within_s=30)
    script = (
        f"touch {repo.path}/../begun; while [ ! -e {repo.path}/../go ]; do sleep 0.05; done; touch {WORK}"
    )
    task = Task.shell(script, "--worktree", "--accept", f"test -e {WORK}", project=repo.path)
    eventually(lambda: os.path.exists(f"{repo.path}/../begun"), 20, "it runs")
    assert holdfast("apply", "first").returncode == 0
    with open(f"{repo.path}/../go", "w", encoding="utf-8"):
        pass
    task.wait_for("completed", within_s=30)
    summary = task.read("outputs", "_summary.md").decode()
    assert (
        "files of the project itself changed: other.txt while command_run ran; 'holdfast apply first'"
        in summary
    )
    assert "if that was not you" not in summary


def test_ls_names_readers_whose_tools_were_denied_and_the_exit_status_is_0() -> None:
    review = Scenario().say(REPORTS["review"]).result("ok", denied=["Write"])
    task = Written({IMPL: None, "scripted_review": review}, project=project()).run()
    assert task.manifest()["denied_readers"] == ["scripted_review"]
    assert "[tools denied in scripted_review]" in holdfast("ls").stdout
    assert holdfast("wait", task.id).returncode == 0
