"""Links and empty repositories that an agent plants: nothing is deleted or written elsewhere, locks hold."""

from __future__ import annotations

import os

import pytest

from holdfast.errors import LockHeld
from holdfast.store.layout import Home
from holdfast.workspace import lock
from tests.support.repos import Repo
from tests.support.tasks import holdfast


@pytest.fixture
def repo(home: str) -> Repo:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("sub/f")
    return repo


def test_leftovers_are_not_removed_through_a_link(home: str, repo: Repo) -> None:
    root = os.path.dirname(home)
    photo = Repo(os.path.join(root, "photos"), with_git=False).write("99999999-summer/beach.jpg")
    run = os.path.join(root, "run")
    os.mkdir(run, 0o700)
    os.symlink(os.path.join(root, "photos"), os.path.join(run, "holdfast"))
    env = {"XDG_RUNTIME_DIR": run}
    done = holdfast("run", "--worktree", "--id", "l", "--", "true", cwd=repo.path, env=env)
    assert done.returncode == 0, done.stderr
    assert os.path.exists(photo)


@pytest.mark.parametrize("name", ["logs", "refs/heads", "logs/refs"])
def test_a_branch_is_not_written_through_a_link_in_the_repository(home: str, repo: Repo, name: str) -> None:
    path = os.path.join(repo.path, ".git", name)
    elsewhere = os.path.join(os.path.dirname(home), "elsewhere")
    os.rename(path, elsewhere)
    os.symlink(elsewhere, path)
    before = sorted(os.walk(elsewhere))
    done = holdfast("run", "--worktree", "--id", "l", "--", "true", cwd=repo.path)
    assert done.returncode not in (0, 70), done.stderr
    assert sorted(os.walk(elsewhere)) == before
    holdfast("rm", "--force", "l", cwd=repo.path)
    assert sorted(os.walk(elsewhere)) == before


@pytest.mark.parametrize("planted", ["directory", "file", "link"])
def test_a_planted_git_directory_does_not_change_the_lock(home: str, repo: Repo, planted: str) -> None:
    sub = os.path.join(repo.path, "sub")
    held = lock.acquire(Home(home), sub, role="runner")
    link = os.path.join(sub, ".git")
    if planted == "directory":
        os.mkdir(link)
    elif planted == "link":
        os.symlink("/nowhere", link)
    else:
        with open(link, "w", encoding="utf-8") as file:
            file.write("gitdir: /nowhere\n")
    try:
        with pytest.raises(LockHeld):
            lock.acquire(Home(home), sub, role="runner", within_s=0.0)
    finally:
        held.release()
