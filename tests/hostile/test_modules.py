"""No module of a project runs in a process of ours: neither from the current directory nor by PYTHONPATH."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from holdfast import own_python
from tests.support.repos import Repo

#: Modules that some process of ours imports after its start.
MODULES = (
    "json", "select", "socket", "subprocess", "tempfile", "shutil", "hashlib", "signal", "fcntl", "resource",
    "sqlite3", "random", "textwrap", "shlex", "datetime", "argparse", "asyncio", "msgspec", "yaml", "re",
)  # fmt: skip
SCRIPT = os.path.join(os.path.dirname(sys.executable), "holdfast")


class Project:
    """A repository whose modules write down who imports them, and fail."""

    def __init__(self, root: str) -> None:
        self.repo = Repo(os.path.join(root, "project"))
        self.repo.commit("a")
        self._ran = os.path.join(root, "ran")
        for folder in ("", "src"):
            for name in MODULES:
                self.repo.write(
                    os.path.join(folder, f"{name}.py"),
                    "import os\n"
                    f"with open({self._ran!r}, 'a') as file:\n"
                    f"    file.write({name!r} + ' ' + open('/proc/self/cmdline').read() + chr(10))\n"
                    "raise SystemExit(9)\n",
                )

    @property
    def ran(self) -> str:
        if not os.path.exists(self._ran):
            return ""
        with open(self._ran, encoding="utf-8") as file:
            return file.read().replace("\0", " ")


@pytest.fixture
def project(home: str, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    return Project(os.path.dirname(home))


def run(project: Project, *args: str) -> str:
    """The console script in the project, with the project's sources in PYTHONPATH, as many people have it."""
    done = subprocess.run(
        [SCRIPT, *args],
        cwd=project.repo.path,
        env={**os.environ, "PYTHONPATH": os.path.join(project.repo.path, "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_process_imports_a_module_of_the_project(project: Project) -> None:
    run(project, "run", "-q", "--id", "first", "--worktree", "--accept", "test -e a", "--", "touch", "b")
    run(project, "submit", "--id", "second", "--", "true")
    run(project, "wait", "second")
    for verb in (("ls",), ("status",), ("show", "first"), ("diff", "first"), ("report",), ("agent", "list")):
        run(project, *verb)
    run(project, "down")
    assert project.ran == ""


def test_agents_keep_the_variable(project: Project) -> None:
    run(
        project,
        "run",
        "-q",
        "--id",
        "it",
        "--env",
        "PYTHONPATH",
        "--",
        "sh",
        "-c",
        'test -n "$PYTHONPATH" && echo it is there',
    )
    assert "it is there" in run(project, "logs", "it")


def test_a_package_that_only_pythonpath_has_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = os.path.dirname(os.path.dirname(own_python.__file__))
    for needed in (ours, "/nix/store/x/lib/python3.11/site-packages"):
        monkeypatch.setenv("PYTHONPATH", f"/project/src{os.pathsep}{needed}")
        assert own_python.flags() == ["-P"]
    monkeypatch.setenv("PYTHONPATH", "/project/src")
    assert own_python.flags() == ["-P", "-E"]


def test_every_process_of_ours_is_started_that_way() -> None:
    root = os.path.dirname(own_python.__file__)
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if not name.endswith(".py") or f"{os.sep}testing{os.sep}" in path or name == "own_python.py":
                continue
            with open(path, encoding="utf-8") as file:
                text = "".join(file.read().split())
            # The scripted agent is an agent: it runs with what its project brings.
            is_known = name in ("scripted.py", "install.py", "unit_text.py")
            assert is_known or not re.search(r'executable,[^\[\]]*"-m","holdfast', text), path
