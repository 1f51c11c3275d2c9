"""`pr` pushes to the address that the user's repository had: an agent that writes it elsewhere than in
`.git/config` chooses no other one, whose hooks would run."""

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
    assert os.path.exists(ran) == is_confirmed
    if not is_confirmed:
        assert done.returncode == 3
        assert f"it would push to {evil.path}" in " ".join(done.stderr.split())
