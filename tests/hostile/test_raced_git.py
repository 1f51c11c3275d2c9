"""A directory that is exchanged for a link while git writes in it: git writes nothing behind the link."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from holdfast.errors import HoldfastError
from holdfast.workspace import git
from holdfast.workspace.git import confined
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.tools import give_up


@pytest.fixture(autouse=True)
def _confined() -> None:
    if not confined.is_possible():
        give_up("needs a kernel with Landlock (5.19 or newer)")


#: So many files that git writes for a while.
_FILES = 1500
#: The race is tried again until then. On the old code it was won in the first seconds.
_LIMIT_S = 5.0
#: A path that fits the pattern and a link change places, again and again. The link is there for short
#: moments, so that a look before the writing seldom sees it.
_EXCHANGE = """
import ctypes, glob, os, sys
exchange, pattern, link = ctypes.CDLL(None).renameat2, sys.argv[1], os.fsencode(sys.argv[2])
print("ready", flush=True)
while os.getppid() > 1:
    for found in map(os.fsencode, glob.glob(pattern)):
        for _ in range(50):
            exchange(-100, found, -100, link, 2)
            for _ in range(400): pass
            exchange(-100, found, -100, link, 2)
            for _ in range(2000): pass
"""
#: Runs a program as on a kernel without Landlock: the first of its system calls does not exist.
_WITHOUT_LANDLOCK = """
import ctypes, os, struct, sys
code = b"".join(struct.pack("HBBI", *each) for each in
    ((0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50026), (0x06, 0, 0, 0x7fff0000)))
held = ctypes.create_string_buffer(code, len(code))
program = struct.pack("HxxxxxxP", 4, ctypes.addressof(held))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.executable, [sys.executable, "-m", "holdfast", *sys.argv[1:]])
"""


class Victim:
    """A directory of the user, with a link to it."""

    def __init__(self, root: str) -> None:
        self.path, self.link = os.path.join(root, "victim"), os.path.join(root, "link")
        os.mkdir(self.path)
        os.symlink(self.path, self.link)

    @contextmanager
    def takes_the_place_of(self, pattern: str) -> Iterator[None]:
        words = [sys.executable, "-c", _EXCHANGE, pattern, self.link]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                process.stdout.readline()
                yield
            finally:
                process.kill()

    def stays_empty(self, attempt: Callable[[], object]) -> None:
        """Repeat something, which may fail, and look into the directory."""
        until = time.monotonic() + _LIMIT_S
        while time.monotonic() < until and not os.listdir(self.path):
            with suppress(HoldfastError):
                attempt()
        assert os.listdir(self.path) == []


def _repo(path: str) -> Repo:
    repo = Repo(path)
    for number in range(_FILES):
        repo.write(f"many/{number:04}", f"{number}\n")
    repo.commit()
    return repo


@pytest.fixture
def victim(home: str) -> Victim:
    return Victim(os.path.dirname(home))


def test_a_new_worktree(home: str, victim: Victim) -> None:
    _repo(workspace())

    def attempt() -> None:
        holdfast("run", "--worktree", "--", "true", cwd=workspace())

    with victim.takes_the_place_of(f"{home}/worktrees/*/many"):
        victim.stays_empty(attempt)


def test_apply(home: str, victim: Victim) -> None:
    repo = _repo(workspace())
    script = "for each in many/*; do echo new > $each; done"
    task = Task.shell(script, "--worktree")
    task.wait_for("completed", within_s=60)

    def attempt() -> None:
        holdfast("apply", task.id, "--patch", cwd=repo.path)
        holdfast("apply", task.id, cwd=repo.path)

    with victim.takes_the_place_of(f"{repo.path}/many"):
        victim.stays_empty(attempt)


def test_the_objects_of_a_snapshot(home: str, victim: Victim) -> None:
    repo = Repo(workspace())
    repo.commit("a")
    task = Task.shell("echo b > b", "--worktree")
    task.wait_for("completed")

    def attempt() -> None:
        with open(f"{home}/worktrees/{task.id}/new", "w", encoding="utf-8") as file:
            file.write(f"{time.monotonic()}\n")
        holdfast("diff", task.id)

    with victim.takes_the_place_of(f"{task.packet}/state/workspace/git/objects"):
        victim.stays_empty(attempt)


def test_a_branch(home: str, victim: Victim) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    commit = repo.commit("a")
    os.makedirs(f"{repo.path}/.git/refs/heads/holdfast")
    found = git.at(repo.path)
    assert found is not None
    with victim.takes_the_place_of(f"{repo.path}/.git/refs/heads/holdfast"):
        victim.stays_empty(
            lambda: git.run(["update-ref", f"refs/heads/holdfast/{time.time_ns()}", commit], of=found)
        )


def test_the_root_of_a_working_tree(home: str, victim: Victim) -> None:
    """The directory itself, not only one below it."""
    repo = _repo(os.path.join(os.path.dirname(home), "project"))
    found = git.at(repo.path)
    assert found is not None
    room = os.path.join(os.path.dirname(home), "room")
    os.mkdir(room)
    words = ["checkout-index", "-a", "-f"]
    with victim.takes_the_place_of(room):
        victim.stays_empty(lambda: git.run(words, of=found.evolve(top=room)))


def test_without_the_kernels_help_git_works_and_doctor_says_so(home: str) -> None:
    repo = Repo(workspace())
    repo.commit("a")

    def on_an_older_kernel(*words: str) -> str:
        words = (sys.executable, "-c", _WITHOUT_LANDLOCK, *words)
        done = subprocess.run(words, cwd=repo.path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "the kernel cannot confine where it writes" in on_an_older_kernel("doctor")
    assert "cannot confine" not in holdfast("doctor").stdout
    on_an_older_kernel("run", "--worktree", "--id", "old", "--", "sh", "-c", "echo new > a")
    assert "new" in on_an_older_kernel("diff", "old")
