"""`pr` pushes to the address that the user's repository had when the task was created, wherever an agent
writes another one. No hook of a repository on this machine runs."""

from __future__ import annotations

import os

import pytest

from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace


@pytest.mark.parametrize("where", [".git/config", ".git/config.worktree", "included"])
@pytest.mark.parametrize("is_confirmed", [False, True], ids=["asked", "confirmed"])
def test_an_address_of_an_agent_is_named_and_not_used(home: str, where: str, is_confirmed: bool) -> None:
    root = os.path.dirname(home)
    evil = Repo(os.path.join(root, "evil.git"), with_git=False)
    evil.git("init", "-q", "--bare", "-b", "main")
    ran = os.path.join(root, "ran")
    os.chmod(evil.write("hooks/pre-receive", f"#!/bin/sh\ntouch {ran}\n"), 0o755)
    project = Repo(os.path.join(workspace(), "project"))
    project.write("included", "[core]\n\tautocrlf = false\n")
    project.commit()
    project.git("remote", "add", "origin", os.path.join(root, "remote.git"))
    project.git("config", "include.path", "../included")
    project.git("config", "extensions.worktreeConfig", "true")
    script = f"""
        printf '[remote "origin"]\\n\\tpushurl = {evil.path}\\n' >> {project.path}/{where}
        echo work > b.txt
    """
    task = Task.shell(script, "--worktree", project=project.path)
    task.wait_for("completed")
    done = holdfast("pr", task.id, *(["--yes"] if is_confirmed else []))
    assert not os.path.exists(ran)
    assert bool(evil.git("branch", "--list", f"holdfast/{task.id}")) == is_confirmed
    if not is_confirmed:
        assert done.returncode == 3
        assert f"it would push to {evil.path}" in " ".join(done.stderr.split())


@pytest.mark.parametrize("named", ["evil.git", "evil"])
def test_a_hook_that_an_earlier_agent_left_does_not_run(home: str, named: str) -> None:
    """The address is older than the task, so nobody is asked."""
    root = os.path.dirname(home)
    ran, evil = os.path.join(root, "ran"), os.path.join(root, "evil.git")
    project = Repo(os.path.join(workspace(), "project"))
    project.commit("a.txt")
    project.git("remote", "add", "origin", os.path.join(root, "remote.git"))
    script = f"""
        git init -q --bare {evil}
        printf '#!/bin/sh\\ntouch {ran}\\n' > {evil}/hooks/pre-receive
        chmod +x {evil}/hooks/pre-receive
        git config remote.origin.pushurl {root}/{named}
    """
    Task.shell(script, project=project.path).wait_for("completed")
    task = Task.shell("echo work > b.txt", "--worktree", project=project.path)
    task.wait_for("completed")
    holdfast("pr", task.id)
    assert not os.path.exists(ran)
    assert "b.txt" in Repo(evil, with_git=False).git("ls-tree", "--name-only", f"holdfast/{task.id}")


@pytest.mark.parametrize("key", ["insteadOf", "pushInsteadOf"])
def test_a_setting_of_the_user_leads_to_a_path_whose_hooks_do_not_run(home: str, key: str) -> None:
    root = os.path.dirname(home)
    ran = os.path.join(root, "ran")
    mirror = Repo(os.path.join(root, "mirror", "o", "n.git"), with_git=False)
    mirror.git("init", "-q", "--bare", "-b", "main")
    for hook in ("pre-receive", "update", "post-receive"):
        os.chmod(mirror.write(f"hooks/{hook}", f"#!/bin/sh\ntouch {ran}\n"), 0o755)
    with open(os.path.join(os.environ["HOME"], ".gitconfig"), "w", encoding="utf-8") as file:
        # The longer one counts.
        file.write(f'[url "{root}/none/"]\n\t{key} = https://\n')
        file.write(f'[url "file://{root}/mirror/"]\n\t{key} = https://forge.example/\n')
    project = Repo(os.path.join(workspace(), "project"))
    project.commit("a.txt")
    project.git("remote", "add", "origin", "https://forge.example/o/n.git")
    task = Task.shell("echo work > b.txt", "--worktree", project=project.path)
    task.wait_for("completed")
    done = holdfast("pr", task.id)
    assert not os.path.exists(ran)
    assert "b.txt" in mirror.git("ls-tree", "--name-only", f"holdfast/{task.id}"), done.stderr


def test_a_branch_that_is_checked_out_at_the_remote_is_not_written(home: str) -> None:
    remote = Repo(os.path.join(os.path.dirname(home), "other"))
    remote.commit("a.txt")
    remote.git("clone", "-q", ".", os.path.join(workspace(), "project"))
    project = Repo(os.path.join(workspace(), "project"), with_git=False)
    task = Task.shell("echo work > b.txt", "--id", "it", "--worktree", project=project.path)
    task.wait_for("completed")
    remote.git("switch", "-q", "-c", "holdfast/it")
    old = remote.git("rev-parse", "HEAD")
    assert "is checked out in" in holdfast("pr", "it").stderr
    assert remote.git("rev-parse", "HEAD") == old


def test_a_remote_without_an_address_is_refused(home: str) -> None:
    project = Repo(os.path.join(workspace(), "project"))
    project.commit("a.txt")
    with open(os.path.join(project.path, ".git", "config"), "a", encoding="utf-8") as file:
        file.write('[remote "origin"]\n\tpushurl =\n')
    task = Task.shell("echo work > b.txt", "--worktree", project=project.path)
    task.wait_for("completed")
    done = holdfast("pr", task.id)
    assert done.returncode == 3, done.stderr
    assert "the address of the remote origin is not one" in " ".join(done.stderr.split())
