"""Commits of a sandboxed agent and commits of others meet on the task's branch: none is lost."""

from __future__ import annotations

import os

import pytest

from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast
from tests.support.tools import need_sandbox
from tests.support.waiting import eventually

pytestmark = pytest.mark.req("SBX-1")
COMMIT = "git -c user.name=A -c user.email=a@example.org commit -qm"


@pytest.fixture
def repo(home: str) -> Repo:
    need_sandbox()
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a")
    return repo


def boxed(repo: Repo, script: str, *flags: str) -> Task:
    return Task.shell(script, "--sandbox", "--worktree", *flags, project=repo.path)


def tip(repo: Repo, branch: str) -> str:
    return repo.git("rev-parse", "--verify", branch).strip()


def worktree(home: str, task: Task) -> Repo:
    return Repo(os.path.join(home, "worktrees", task.id), with_git=False)


def ask(repo: Repo, *words: str) -> None:
    done = holdfast(*words, cwd=repo.path)
    assert done.returncode == 0, done.stderr


def test_applied_work_can_be_removed(repo: Repo) -> None:
    task = boxed(repo, "echo new > b")
    task.wait_for("completed")
    ask(repo, "apply", task.id)
    applied = tip(repo, f"holdfast/{task.id}")
    ask(repo, "show", task.id)
    assert tip(repo, f"holdfast/{task.id}") == applied
    ask(repo, "rm", task.id)
    assert repo.read("b") == "new\n"


@pytest.mark.parametrize("is_packed", [False, True], ids=["loose", "packed"])
def test_a_commit_of_the_user_in_the_worktree_stays(home: str, repo: Repo, is_packed: bool) -> None:
    task = boxed(repo, f"echo new > b; git add b; {COMMIT} agent")
    task.wait_for("completed")
    theirs = worktree(home, task).commit("mine", message="of the user")
    if is_packed:
        repo.git("pack-refs", "--all", "--prune")
    ask(repo, "apply", task.id)
    repo.git("merge-base", "--is-ancestor", theirs, "main")
    assert tip(repo, f"holdfast/{task.id}") == theirs
    assert (repo.read("b"), repo.read("mine")) == ("new\n", "text\n")


def test_the_next_attempt_begins_at_a_packed_commit_of_the_user(home: str, repo: Repo) -> None:
    script = f"git log -1 --format=at:%s; [ -e b ] || {{ echo new > b; git add b; {COMMIT} agent; exit 1; }}"
    task = boxed(repo, script)
    task.wait_for("failed")
    worktree(home, task).commit("mine", message="of the user")
    repo.git("pack-refs", "--all", "--prune")
    ask(repo, "retry", task.id)
    task.wait_for("completed")
    assert "at:of the user" in task.log()


@pytest.mark.parametrize("change", [f"{COMMIT} better --amend", "git reset -q --hard HEAD~1; git clean -fdq"])
def test_an_agent_may_rewrite_its_own_commits(repo: Repo, change: str) -> None:
    script = f"if [ -e b ]; then {change}; exit 0; fi; echo new > b; git add b; {COMMIT} agent; exit 1"
    task = boxed(repo, script)
    task.wait_for("failed")
    ask(repo, "retry", task.id)
    task.wait_for("completed")
    said = repo.git("log", "-1", "--format=%s", f"holdfast/{task.id}").strip()
    assert said == ("better" if "amend" in change else "work")


def test_a_branch_that_moved_meanwhile_is_not_moved_back(home: str, repo: Repo) -> None:
    script = (
        f"echo new > b; git add b; {COMMIT} agent; touch ready; while [ ! -e go ]; do sleep 0.05; done; rm go"
    )
    task = boxed(repo, script)
    tree = worktree(home, task)
    eventually(lambda: os.path.exists(os.path.join(tree.path, "ready")), within_s=15)
    branch = f"holdfast/{task.id}"
    theirs = repo.git("commit-tree", "main^{tree}", "-p", branch, "-m", "of the user").strip()
    repo.git("update-ref", f"refs/heads/{branch}", theirs)
    tree.write("go")
    task.wait_for("completed")
    assert tip(repo, branch) == theirs
    kept = repo.git("for-each-ref", "--format=%(refname:short)", f"refs/heads/{branch}-*").split()
    assert [repo.git("log", "-1", "--format=%s", name).strip() for name in kept] == ["agent"]
    assert kept[0] in task.read("attempts", os.path.basename(task.attempts()[1]), "stderr.log").decode()
