"""A named pipe in the place of a file that git reads: git would wait for ever, and everybody who asks it."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from holdfast.errors import GitFailed
from holdfast.workspace import git
from holdfast.workspace.git import pipes
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("home")

#: One call of git for which a command waits takes a second; a command makes several.
WITHIN_S = 40.0


def repository() -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("README.md")
    return repo


def asked(*words: str) -> subprocess.CompletedProcess[str]:
    started_mono = time.monotonic()
    done = holdfast(*words)
    assert time.monotonic() - started_mono < WITHIN_S, words
    return done


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [".gitignore", ".gitattributes"])
def test_in_a_worktree_every_command_answers(name: str) -> None:
    repo = repository()
    work = f"mkdir d; echo y > d/c; mkfifo d/{name}"
    task = Task.start("--id", "it", "--worktree", "--project", repo.path, "--", "sh", "-c", work)
    task.wait_for("completed", within_s=60)
    for words in (("show", "it"), ("report",)):
        assert asked(*words).returncode == 0, words
    for words in (("diff", "it"), ("apply", "it")):
        done = asked(*words)
        assert done.returncode != 0
        said = " ".join(done.stderr.split())
        assert f"d/{name} is a pipe, for which git would wait for ever" in said, said
    assert asked("rm", "--force", "it").returncode == 0


@pytest.mark.timeout(300)
def test_in_the_project_a_later_task_ends() -> None:
    repo = repository()
    os.mkfifo(os.path.join(repo.path, ".gitignore"))
    words = ("run", "--id", "it", "--accept", "true", "--max-retries", "0", "--project", repo.path)
    done = asked(*words, "--", "true")
    assert done.returncode != 0
    assert Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "it")).status() not in (
        "spawning",
        "completing",
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["HEAD", "index"])
def test_in_the_git_directory_a_task_can_be_removed(name: str) -> None:
    repo = repository()
    work = f'git="$(git rev-parse --git-dir)"; echo y > c; rm "$git/{name}"; mkfifo "$git/{name}"'
    task = Task.start("--id", "it", "--worktree", "--project", repo.path, "--", "sh", "-c", work)
    task.wait_for("completed", within_s=60)
    for words in (("show", "it"), ("report",)):
        assert asked(*words).returncode == 0, words
    assert asked("rm", "it").returncode != 0
    assert asked("rm", "--force", "it").returncode == 0
    assert not os.path.exists(task.packet)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["packed-refs", "refs/heads/other", "HEAD", "config"])
def test_in_the_repository_of_a_worktree_every_command_answers(name: str) -> None:
    """Calls about the worktree name another git directory."""
    repo = repository()
    work = "echo y > c"
    task = Task.start("--id", "it", "--worktree", "--project", repo.path, "--", "sh", "-c", work)
    task.wait_for("completed", within_s=60)
    path = os.path.join(repo.path, ".git", name)
    if os.path.lexists(path):
        os.unlink(path)
    os.mkfifo(path)
    assert asked("show", "it").returncode == 0
    asked("diff", "it")
    asked("apply", "it")
    assert asked("rm", "--force", "it").returncode == 0
    assert not os.path.exists(task.packet)


def test_the_kernel_tells_at_once_that_a_process_waits_for_a_pipe() -> None:
    pipe = os.path.join(workspace(), "pipe")
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe]) as cat, subprocess.Popen(["sleep", "600"]) as sleep:
        eventually(lambda: pipes.is_waiting(cat.pid), what="it waits for a writer")
        assert not pipes.is_waiting(sleep.pid)
        cat.kill()
        sleep.kill()


@pytest.mark.parametrize(
    "name",
    [
        "objects/info/alternates",
        "objects/info/commit-graph",
        "objects/info/commit-graphs/commit-graph-chain",
        "objects/pack/multi-pack-index",
        "objects/ab/0123456789012345678901234567890123456789",
        "refs/heads/worktrees/it",
    ],
)
def test_a_pipe_is_found_among_the_objects(name: str) -> None:
    """Also through the link in a git directory of ours."""
    repo = repository()
    git_dir, ours = os.path.join(repo.path, ".git"), os.path.join(workspace(), "ours")
    os.mkdir(ours)
    for each in ("objects", "refs"):
        os.symlink(os.path.join(git_dir, each), os.path.join(ours, each))
    assert pipes.find(repo.path, git_dir, ours) is None
    pipe = os.path.join(git_dir, name)
    os.makedirs(os.path.dirname(pipe), exist_ok=True)
    os.mkfifo(pipe)
    assert pipes.find(None, git_dir) == pipes.find(None, ours) == pipe


def test_git_is_not_waited_for_in_another_directory_of_objects() -> None:
    repo = repository()
    other = os.path.join(workspace(), "other")
    os.makedirs(os.path.join(other, "pack"))
    os.mkfifo(os.path.join(other, "pack", "multi-pack-index"))
    with open(
        os.path.join(repo.path, ".git", "objects", "info", "alternates"), "w", encoding="utf-8"
    ) as file:
        file.write(f"{other}\n")
    found = git.find(repo.path)
    assert found is not None
    with pytest.raises(GitFailed, match="git waits for a pipe, outside"):
        git.run(["rev-list", "--all", "--objects"], of=found, limit_s=30)
