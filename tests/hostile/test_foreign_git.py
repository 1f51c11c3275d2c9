"""A `.git` that leads into another repository of the user: nothing is written there."""

from __future__ import annotations

import os
import shutil

import pytest

from holdfast.errors import GitFailed
from holdfast.workspace import checked_out, git
from tests.support.repos import Repo
from tests.support.tasks import holdfast, workspace


@pytest.fixture
def other(home: str) -> Repo:
    repo = Repo(os.path.join(workspace(), "other"))
    repo.commit("mine")
    return repo


def point(top: str, git_dir: str, *, kind: str = "file") -> None:
    link = os.path.join(top, ".git")
    if kind == "link":
        os.symlink(git_dir, link)
        return
    with open(link, "w", encoding="utf-8") as file:
        file.write(f"gitdir: {git_dir}\n")


def clone_into(other: Repo, kind: str) -> Repo:
    clone = Repo(os.path.join(workspace(), "clone"))
    clone.commit("theirs")
    target, git_dir = os.path.join(other.path, ".git"), os.path.join(clone.path, ".git")
    if kind == "commondir":
        with open(os.path.join(git_dir, "commondir"), "w", encoding="utf-8") as file:
            file.write(f"{target}\n")
        return clone
    shutil.move(git_dir, f"{git_dir}-before")
    if kind == "worktree":
        # One that the agent has made up: it leads back here, but the other repository does not know it.
        made = os.path.join(clone.path, "made")
        os.mkdir(made)
        for name, text in (("HEAD", "ref: refs/heads/main"), ("commondir", target), ("gitdir", git_dir)):
            with open(os.path.join(made, name), "w", encoding="utf-8") as file:
                file.write(f"{text}\n")
        target = made
    elif kind == "bare":
        target = os.path.join(workspace(), "bare.git")
        other.git("clone", "-q", "--bare", ".", target)
    elif kind == "module":
        target = os.path.join(target, "modules", "sub")
        other.git("init", "-q", "--bare", target)
        other.git(f"--git-dir={target}", "config", "core.bare", "false")
    elif kind == "used worktree":
        other.git("worktree", "add", "-q", "../tree")
        target = os.path.join(target, "worktrees", "tree")
    point(clone.path, target, kind=kind)
    return clone


@pytest.mark.parametrize(
    "kind", ["link", "file", "commondir", "worktree", "bare", "module", "used worktree"]
)  # fmt: skip
def test_it_is_refused(other: Repo, kind: str) -> None:
    clone = clone_into(other, kind)
    folder = os.path.join(clone.path, "folder")
    os.mkdir(folder)
    for directory in (clone.path, folder):
        with pytest.raises(GitFailed, match=r"leads to .*, which ") as caught:
            git.find(directory)
        assert caught.value.hint


@pytest.mark.parametrize("kind", ["link", "commondir"])
def test_no_task_writes_there(other: Repo, kind: str) -> None:
    clone, before = clone_into(other, kind), other.state()
    done = holdfast("run", "--worktree", "--id", "it", "--", "touch", "new", cwd=clone.path)
    assert done.returncode == 2
    assert f"leads to {other.path}/.git, which is" in " ".join(done.stderr.split())
    assert other.state() == before
    assert holdfast("doctor", cwd=clone.path).returncode != 70


def separate(other: Repo) -> str:
    top = os.path.join(workspace(), "top")
    other.git("init", "-q", f"--separate-git-dir={workspace()}/top.git", top)
    return top


def separate_beside_nothing(other: Repo) -> str:
    top = os.path.join(workspace(), "top")
    os.mkdir(os.path.join(workspace(), "kept"))
    other.git("init", "-q", f"--separate-git-dir={workspace()}/kept/.git", top)
    return top


def linked(other: Repo) -> str:
    other.git("worktree", "add", "-q", "../tree")
    return os.path.join(workspace(), "tree")


def linked_to_bare(other: Repo) -> str:
    """`.git` beside worktrees names a bare repository: a usual layout."""
    top = os.path.join(workspace(), "top")
    other.git("clone", "-q", "--bare", ".", f"{top}/.bare")
    point(top, "./.bare")
    return top


def worktree_of_bare(other: Repo) -> str:
    top = linked_to_bare(other)
    other.git("-C", top, "worktree", "add", "-q", "tree")
    return os.path.join(top, "tree")


def submodule(other: Repo) -> str:
    around = Repo(os.path.join(workspace(), "around"))
    around.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", other.path, "sub")
    assert os.path.isfile(os.path.join(around.path, "sub", ".git"))
    return os.path.join(around.path, "sub")


def named(other: Repo) -> str:
    """A repository that says itself that its working tree is here."""
    top = os.path.join(workspace(), "top")
    os.mkdir(top)
    point(top, os.path.join(other.path, ".git"))
    other.git("config", "core.worktree", top)
    return top


def linked_elsewhere(other: Repo) -> str:
    """As the tool `repo` does it."""
    top = os.path.join(workspace(), "top")
    other.git("init", "-q", top)
    kept = os.path.join(workspace(), ".repo", "top.git")
    os.mkdir(os.path.dirname(kept))
    shutil.move(os.path.join(top, ".git"), kept)
    point(top, kept, kind="link")
    return top


@pytest.mark.parametrize(
    "make",
    [
        separate,
        separate_beside_nothing,
        linked,
        linked_to_bare,
        worktree_of_bare,
        submodule,
        named,
        linked_elsewhere,
    ],
)
def test_layouts_of_users_work(other: Repo, make: object) -> None:
    assert callable(make)
    top = make(other)
    found = git.find(top)
    assert found is not None
    assert found.top == top
    assert git.run(["status", "--porcelain"], of=found) is not None


@pytest.mark.parametrize("file", [".git", "commondir", "gitdir", "config"])
def test_a_path_with_a_nul_byte_leads_nowhere(other: Repo, file: str) -> None:
    """Python refuses such a path with an error that is none of the operating system."""
    tree = os.path.join(workspace(), "tree")
    other.git("worktree", "add", "-q", tree)
    admin = os.path.join(other.path, ".git", "worktrees", "tree")
    path, text = os.path.join(admin, file), "x\0y/z"
    if file == ".git":
        path, text = os.path.join(tree, file), "gitdir: x\0y"
    elif file == "config":
        tree, path = os.path.join(workspace(), "clone"), os.path.join(other.path, ".git", file)
        os.mkdir(tree)
        point(tree, os.path.dirname(path))
        text = "[core]\nworktree = x\0y"
    with open(path, "w", encoding="utf-8") as written:
        written.write(f"{text}\n")
    assert checked_out.commit(tree) == "" or file in ("gitdir", "config")
    try:
        assert git.find(tree) is None
    except GitFailed:
        assert file in ("gitdir", "config")


def test_a_report_survives_a_path_with_a_nul_byte(home: str) -> None:
    project = Repo(os.path.join(workspace(), "project"))
    project.commit("sub/file")
    inner = os.path.join(project.path, "sub")
    ran = holdfast("run", "--worktree", "--id", "it", "--", "touch", "new", cwd=inner)
    assert ran.returncode == 0, ran.stderr
    project.write("sub/.git", "gitdir: x\0y\n")
    for words in (("report",), ("show", "it"), ("archive", "--all-ended"), ("rm", "it")):
        done = holdfast(*words, cwd=inner)
        assert done.returncode != 70, done.stderr


def test_repositories_that_lead_into_each_other_are_not_followed_for_ever(other: Repo) -> None:
    folder = os.path.join(other.path, "d")
    os.mkdir(folder)
    made = os.path.join(workspace(), ".git", "m")
    for name in ("objects", "refs"):
        os.makedirs(os.path.join(made, name))
    with open(os.path.join(made, "HEAD"), "w", encoding="utf-8") as file:
        file.write("ref: refs/heads/main\n")
    for _ in range(398):
        point(folder, made)
        folder = os.path.join(folder, "d")
        os.mkdir(folder)
    with pytest.raises(GitFailed, match="another directory"):
        git.find(folder)
