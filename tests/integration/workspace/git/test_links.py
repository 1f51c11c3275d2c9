"""Links of the user and of the system on the way to what git writes: it works as without them."""

from __future__ import annotations

import os
import shutil

import pytest

from holdfast.errors import GitFailed
from holdfast.store import linked_objects
from holdfast.workspace import git
from holdfast.workspace.worktrees import local_remote
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture(name="repo")
def repository(home: str) -> Repo:
    repo = Repo(workspace())
    repo.commit("a")
    return repo


def found(repo: Repo) -> git.Repository:
    here = git.at(repo.path)
    assert here is not None
    return here


def link_objects(repo: Repo) -> str:
    """As `repo` does: the objects are elsewhere."""
    objects, elsewhere = os.path.join(repo.path, ".git", "objects"), f"{repo.path}.objects"
    shutil.move(objects, elsewhere)
    os.symlink(elsewhere, objects)
    return elsewhere


def test_the_folder_for_temporary_files(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `/var/run/user/N`: `/var/run` is a link."""
    real, link = f"{repo.path}.run", f"{repo.path}.link"
    os.mkdir(real, 0o700)
    os.symlink(real, link)
    monkeypatch.setenv("XDG_RUNTIME_DIR", link)
    assert git.run(["hash-object", "-w", "--stdin"], of=found(repo), stdin=b"x")


def test_a_remote(repo: Repo) -> None:
    link = f"{repo.path}.link.git"
    shutil.copytree(os.path.join(repo.path, ".git"), f"{repo.path}.bare")
    os.symlink(f"{repo.path}.bare", link)
    commit = repo.commit("b")
    for branch, place in (("one", link), ("two", link.removesuffix(".git"))):
        remote = local_remote.at(place)
        local_remote.push(found(repo), remote, commit=commit, branch=branch, instead_of=None)
        assert local_remote.tip(remote, branch) == commit


def test_objects_that_were_linked_before_the_first_task(home: str, repo: Repo) -> None:
    link_objects(repo)
    task = Task.shell("echo b > b", "--worktree", project=repo.path)
    task.wait_for("completed")
    done = holdfast("apply", task.id, cwd=repo.path)
    assert done.returncode == 0, done.stderr
    assert repo.read("b") == "b\n"


def test_objects_of_another_repository_are_not_written(home: str, repo: Repo) -> None:
    """An archive can name a clone of the user's. Those of the tool `repo` are in `.repo`, above."""
    other = Repo(f"{repo.path}.other")
    other.commit("secret")
    for elsewhere, is_noted in ((f"{other.path}/.git", False), (f"{repo.path}/.repo/p.git", True)):
        tree = Repo(os.path.join(repo.path, f"tree{is_noted}"))
        objects = os.path.join(tree.path, ".git", "objects")
        if is_noted:
            shutil.copytree(os.path.join(tree.path, ".git"), elsewhere)
        shutil.rmtree(objects)
        os.symlink(f"{elsewhere}/objects", objects)
        linked_objects.note(tree.path, ())
        place = linked_objects.place_of(os.path.join(tree.path, ".git"))
        assert place == (f"{elsewhere}/objects" if is_noted else objects)


def test_objects_that_are_linked_later(home: str, repo: Repo) -> None:
    """An agent may have made the link, also if a second task was created since. A person can accept it."""
    Task.shell("true", project=repo.path).wait_for("completed")
    elsewhere = link_objects(repo)
    Task.shell("true", project=repo.path).wait_for("completed")
    args = ["hash-object", "-w", "--stdin"]
    with pytest.raises(GitFailed, match="a symbolic link is in the place of") as caught:
        git.run(args, of=found(repo), stdin=b"x")
    hint = caught.value.hint
    assert hint.startswith("an agent may have made it: look where it leads; if it is yours: echo ")
    assert "remove" not in hint
    assert os.system(hint.partition("if it is yours: ")[2]) == 0
    assert git.run(args, of=found(repo), stdin=b"x")
    # But no other one.
    os.unlink(os.path.join(repo.path, ".git", "objects"))
    shutil.copytree(elsewhere, f"{repo.path}.other")
    os.symlink(f"{repo.path}.other", os.path.join(repo.path, ".git", "objects"))
    with pytest.raises(GitFailed, match="a symbolic link is in the place of"):
        git.run(args, of=found(repo), stdin=b"y")
