"""A living agent exchanges a directory of ours for a link to a directory of the user, again and again, while
holdfast removes or writes things in it: nothing of the user is removed, and nothing is added."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.packet import archive
from holdfast.runner.user_files import interrupt_files
from holdfast.store import atomic
from holdfast.store.layout import Home
from holdfast.workspace import sandbox_commits
from holdfast.workspace.snapshots import genuine, revert
from holdfast.workspace.snapshots.trees import Trees
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace

#: renameat2 with RENAME_EXCHANGE: at every moment, one of the two has the name. What is removed comes again.
_SWAP = """
import ctypes, os, sys
exchange = ctypes.CDLL(None).renameat2
one, other, victim = sys.argv[1:]
print("ready", flush=True)
while os.getppid() > 1:
    if exchange(-100, os.fsencode(one), -100, os.fsencode(other), 2):
        for path, second in ((one, other), (other, one)):
            if not os.path.lexists(path):
                os.mkdir(path) if os.path.islink(second) else os.symlink(victim, path)
"""
FILES = 50


@contextmanager
def swapping(folder: str, victim: str) -> Iterator[None]:
    """While another process exchanges a folder for a link."""
    os.makedirs(folder, exist_ok=True)
    link = f"{os.path.dirname(folder)}.{os.path.basename(folder)}"
    process = subprocess.Popen([sys.executable, "-c", _SWAP, folder, link, victim], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.kill()
        process.communicate()


def fill(folder: str) -> None:
    os.makedirs(os.path.join(folder, "inner"), exist_ok=True)
    for number in range(FILES):
        with open(os.path.join(folder, f"f{number:02}"), "wb") as file:
            file.write(b"mine\n")


@pytest.fixture
def victim(home: str) -> Iterator[str]:
    """A directory of the user: after the test, nothing is missing."""
    path = os.path.join(os.path.dirname(home), "victim")
    fill(path)
    yield path
    assert len(os.listdir(path)) == FILES + 1


@pytest.mark.parametrize("name", ["pack", "info", "ab", ""])
def test_the_store_of_objects(home: str, victim: str, name: str) -> None:
    repo = Repo(workspace())
    repo.commit("a.txt")
    Task.shell("echo b > b.txt", "--id", "it", "--worktree", project=repo.path).wait_for("completed")
    objects = Trees.of(Home(home).packet("it")).objects
    with swapping(os.path.join(objects, name).rstrip("/"), victim):
        for _ in range(5000):
            genuine.clean(objects)
        assert holdfast("diff", "it").returncode != 70


def test_the_store_of_a_sandbox(home: str, victim: str) -> None:
    packet = Home(home).packet("it")
    objects = os.path.join(packet.sandbox_git, "objects")
    with swapping(os.path.join(objects, "pack"), victim):
        for _ in range(5000):
            sandbox_commits.clean(objects)


def test_reverted_files(home: str, victim: str) -> None:
    repo = Repo(workspace())
    repo.commit("a.txt")
    Task.shell("true", "--id", "it", "--worktree", project=repo.path).wait_for("completed")
    trees, top = Trees.of(Home(home).packet("it")), os.path.join(home, "worktrees", "it")
    tree = trees.tree_of(repo.git("rev-parse", "HEAD").strip())
    names = sorted(f"d/{name}" for name in os.listdir(victim))
    for _ in range(20):
        fill(os.path.join(top, "d"))
        with swapping(os.path.join(top, "d"), victim):
            revert.restore(trees, top, tree, names)


def test_summaries_that_are_kept(home: str, victim: str) -> None:
    Task.start("--id", "it", "--", "true").wait_for("completed")
    assert holdfast("archive", "it").returncode == 0
    packet = Home(home).archived("it")
    with swapping(packet.outputs, victim):
        for _ in range(5000):
            archive.strip(packet)


def swap_before_rename(folder: str, victim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the last moment, a directory becomes a link."""
    real = os.rename

    def swap(*args: str, **given: int) -> None:
        real(folder, f"{folder}.old")
        os.symlink(victim, folder)
        real(*args, **given)

    monkeypatch.setattr(os, "rename", swap)


def test_an_interrupt_file_that_is_moved(home: str, victim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packet = Home(home).packet("it")
    os.makedirs(packet.interrupts)
    with open(packet.interrupt_request, "wb") as file:
        file.write(b"evil\n")
    swap_before_rename(packet.interrupts, victim, monkeypatch)
    interrupt_files.put_aside(packet, "1")
    assert os.listdir(f"{packet.interrupts}.old") == ["1-interrupt-request.txt"]


def test_a_file_that_is_put_aside(home: str, victim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packet = Home(home).packet("it")
    os.makedirs(packet.state)
    os.mkfifo(f"{packet.state}/f00")
    swap_before_rename(packet.state, victim, monkeypatch)
    atomic.put_aside(f"{packet.state}/f00")
    assert os.listdir(f"{packet.state}.old") == ["f00.aside-1"]
    assert os.path.exists(f"{victim}/f00")
