"""A hostile agent in a sandbox: each of its attempts to get out is denied, and nothing outside changes."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import processes, repos
from tests.support.tasks import Task
from tests.support.tools import need_sandbox

pytestmark = pytest.mark.req("SBX-2")

SECRET = "sk-this-is-the-secret"
_FILES = (
    ".ssh/id_rsa",
    ".gnupg/key",
    ".aws/credentials",
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".config/gh/hosts.yml",
    ".codex/auth.json",
    ".config/holdfast/trust/key",
    ".claude/settings.json",
    ".bashrc",
    "notes",
)
_IPC_CREAT = 0o1000
_AT_LEAST = 50


class Outside:
    """What a hostile agent aims at: files, processes, sockets and shared memory of the user."""

    def __init__(self, root: str) -> None:
        self.user = os.path.join(root, "user")
        for name in _FILES:
            path = os.path.join(self.user, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(SECRET)
        self.repo = repos.Repo(os.path.join(self.user, "repo"))
        self.repo.commit("a.txt")
        shutil.copy(os.path.join(os.path.dirname(__file__), "escapes.py"), self.repo.path)
        os.symlink(f"{self.user}/.ssh", f"{self.repo.path}/to-ssh")
        self.repo.commit()
        self.victim = subprocess.Popen(["sleep", "300"])
        self.abstract = f"holdfast-{uuid.uuid4().hex}"
        self.sockets = [_listener(socket.AF_UNIX, "\0" + self.abstract)]
        self.sockets.append(_listener(socket.AF_INET, ("127.0.0.1", 0)))
        self.shm = f"/dev/shm/holdfast-{uuid.uuid4().hex}"
        with open(self.shm, "w", encoding="utf-8") as file:
            file.write(SECRET)
        self.ipc_key = uuid.uuid4().int % (1 << 30) + 1
        self.segment = ctypes.CDLL(None).shmget(self.ipc_key, 4096, _IPC_CREAT | 0o600)
        assert self.segment != -1

    def given(self, home: str, *, git_dir: str, top: str) -> dict[str, Any]:
        return {
            "secret": SECRET,
            "victim": self.victim.pid,
            "home": home,
            "seed": os.path.join(home, "seed.sock"),
            "top": top,
            "common": os.path.join(self.repo.path, ".git"),
            "git_dir": git_dir,
            "abstract": self.abstract,
            "port": self.sockets[1].getsockname()[1],
            "shm": self.shm,
            "ipc_key": self.ipc_key,
            "key": self.abstract,
            "namespaces": {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("pid", "uts")},
        }

    def state(self) -> dict[str, bytes]:
        """Every file of the user, and the repository's settings, hooks and branches."""
        found: dict[str, bytes] = {}
        kept = [os.path.join(self.repo.path, ".git", name) for name in ("hooks", "config", "refs/heads/main")]
        for folder in (self.user, *kept):
            files = [folder] if os.path.isfile(folder) else []
            files += [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
            if folder == self.user:
                trust = os.path.join(self.user, ".config", "holdfast", "trust")
                # The records of its own task are the runner's.
                others = (self.repo.path + "/", trust + "/homes/", trust + "/projects/")
                files = [path for path in files if not path.startswith(others)]
            for path in files:
                with open(path, "rb") as file:
                    found[path] = file.read()
        return found

    def close(self) -> None:
        self.victim.kill()
        self.victim.wait(10)
        for each in self.sockets:
            each.close()
        os.unlink(self.shm)
        ctypes.CDLL(None).shmctl(self.segment, 0, None)


def _listener(family: int, address: object) -> socket.socket:
    opened = socket.socket(family)
    opened.bind(address)
    opened.listen()
    return opened


@pytest.fixture
def outside(home: str) -> Iterator[Outside]:
    need_sandbox()
    made = Outside(os.path.dirname(home))
    yield made
    made.close()


@pytest.mark.parametrize("workspace", ["in place", "worktree"])
def test_every_escape_is_denied(home: str, outside: Outside, workspace: str) -> None:
    is_worktree = workspace == "worktree"
    git_dir = os.path.join(outside.repo.path, ".git")
    top = outside.repo.path
    if is_worktree:
        git_dir, top = (
            os.path.join(git_dir, "worktrees", "hostile"),
            os.path.join(home, "worktrees", "hostile"),
        )
    given = json.dumps(outside.given(home, git_dir=git_dir, top=top))
    before = outside.state()
    flags = ("--sandbox", "--network", "off", "--id", "hostile", "--env", "ESCAPES")
    task = Task.start(
        *flags,
        *(("--worktree",) if is_worktree else ()),
        *("--", sys.executable, "escapes.py"),
        project=outside.repo.path,
        env={"HOME": outside.user, "ESCAPES": given},
    )
    task.wait_for("completed", within_s=60)
    lines = task.log().splitlines()
    verdicts = [line for line in lines if " denied " in line or " ESCAPED " in line]
    assert len(verdicts) >= _AT_LEAST, lines
    assert not [line for line in verdicts if " denied " not in line], "\n".join(verdicts)
    # A denial must not be a mistake of the attempt itself.
    assert [
        line
        for line in verdicts
        if "NameError" in line or "TypeError" in line or "AssertionError(" in line or "KeyError" in line
    ] == []
    assert outside.state() == before
    assert processes.is_alive(outside.victim.pid)


def test_the_same_attempts_succeed_without_a_sandbox(home: str, outside: Outside) -> None:
    """So that a denial is the sandbox's work. (Only attempts that do no harm here.)"""
    given = json.dumps(outside.given(home, git_dir=f"{outside.repo.path}/.git", top=outside.repo.path))
    harmless = [
        "write HOME",
        "read an SSH key",
        "read an SSH key through a link",
        "read cloud credentials",
        "read another agent's login",
        "read the packet",
        "signal a process",
        "read the memory of a process",
        "write a git hook",
        "connect to the machine",
        "connect to an abstract socket",
        "use shared memory by key",
        "use shared memory by name",
    ]
    script = (
        "import escapes; names = " + repr(harmless) + "; "
        "escapes.ATTEMPTS = {name: escapes.ATTEMPTS[name] for name in names}; "
        "escapes.main()"
    )
    task = Task.start(
        *("--env", "ESCAPES", "--", sys.executable, "-c", script),
        project=outside.repo.path,
        env={"HOME": outside.user, "ESCAPES": given},
    )
    task.wait_for("completed", within_s=60)
    assert [line for line in task.log().splitlines() if " ESCAPED " not in line] == []
