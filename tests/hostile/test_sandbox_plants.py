"""What a sandboxed agent plants in one attempt opens nothing in the next one."""

from __future__ import annotations

import os
import stat

import pytest

from tests.support.repos import Repo
from tests.support.tasks import Task
from tests.support.tools import need_sandbox

pytestmark = pytest.mark.req("SBX-1")
RETRY = ("--max-retries", "1", "--base-interval", "0.1s", "--max-interval", "0.2s")
SECRET = "TOP-SECRET-KEY"


class User:
    """A user's home directory with a folder of programs and a key."""

    def __init__(self, root: str) -> None:
        self.path = os.path.join(root, "user")
        self.bin = self.make(".local/bin")
        self.key = self.write(".ssh/id_rsa", SECRET)
        self.env = {"HOME": self.path}

    def make(self, name: str) -> str:
        path = os.path.join(self.path, name)
        os.makedirs(path, exist_ok=True)
        return path

    def write(self, name: str, text: str) -> str:
        self.make(os.path.dirname(name))
        path = os.path.join(self.path, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


@pytest.fixture
def user(home: str) -> User:
    need_sandbox()
    return User(os.path.dirname(home))


@pytest.fixture
def repo(home: str) -> Repo:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a", "sub/b")
    return repo


def ended(task: Task) -> Task:
    task.wait_for("completed", "failed", "abandoned", within_s=40)
    return task


# ── .git in the workspace ──


@pytest.mark.parametrize("flags", [("--worktree",), ()], ids=["worktree", "in place"])
def test_a_planted_git_directory_makes_nothing_writable(
    home: str, user: User, repo: Repo, flags: tuple[str, ...]
) -> None:
    script = f"""
        if [ ! -e .git ]; then
            mkdir -p .git/refs; echo 'ref: refs/heads/x' > .git/HEAD; ln -s {user.bin} .git/objects
            kill -SEGV $$
        fi
        touch {user.bin}/owned && echo ESCAPED; exit 0"""
    project = os.path.join(repo.path, "sub")
    task = ended(Task.shell(script, "--sandbox", *flags, *RETRY, project=project, env=user.env))
    assert [event["kind"] for event in task.events("attempt.opened")].count("agent") == 2, task.log()
    assert os.listdir(user.bin) == []


def test_a_planted_git_file_shows_nothing_that_is_hidden(home: str, user: User, repo: Repo) -> None:
    store = user.make(".ssh/store")
    for name in ("objects", "refs"):
        os.makedirs(os.path.join(store, name))
    user.write(".ssh/store/HEAD", SECRET)
    # Two tasks: the second one finds what the first one planted.
    project = os.path.join(repo.path, "sub")
    ended(Task.shell(f"echo 'gitdir: {store}' > .git", "--sandbox", project=project, env=user.env))
    task = ended(Task.shell(f"cat {store}/HEAD; exit 0", "--sandbox", project=project, env=user.env))
    assert SECRET not in task.log()


# ── config homes ──


def test_links_in_a_private_config_home_open_nothing(home: str, user: User) -> None:
    user.write(".codex/auth.json", "{}")
    user.make(".codex/prompts")
    folder = os.path.join(os.path.dirname(home), "work", "bin")
    os.makedirs(folder)
    program = os.path.join(folder, "codex")
    with open(program, "w", encoding="utf-8") as file:
        file.write(f"""#!/bin/sh
            cd $CODEX_HOME
            if [ ! -e planted ]; then
                touch planted
                ln -sfn {user.bin} auth.json
                rm -rf prompts; ln -sfn {user.key} prompts
                kill -SEGV $$
            fi
            touch {user.bin}/owned; cat {user.key} prompts >&2; readlink auth.json >&2; exit 1""")
    os.chmod(program, stat.S_IRWXU)
    env = {**user.env, "PATH": f"{folder}:{os.environ['PATH']}"}
    task = ended(Task.start("--agent", "codex", "--sandbox", *RETRY, "do it", env=env))
    assert [event["kind"] for event in task.events("attempt.opened")].count("agent") == 2, task.log()
    assert os.listdir(user.bin) == []
    assert SECRET not in task.log()
    assert os.path.realpath(f"{user.path}/.codex/auth.json") in task.log()
