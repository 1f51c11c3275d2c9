"""No module of a project runs in a process of ours: neither from the current directory nor by PYTHONPATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from holdfast import own_python
from holdfast.testing import Scenario
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


def run(project: Project, *args: str, pythonpath: str | None = None, by: tuple[str, ...] = (SCRIPT,)) -> str:
    """The console script in the project, with the project's sources in PYTHONPATH, as many people have it."""
    given = os.path.join(project.repo.path, "src") if pythonpath is None else pythonpath
    done = subprocess.run(
        [*by, *args],
        cwd=project.repo.path,
        env={**os.environ, "PYTHONPATH": given},
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


def test_the_scripted_agent_imports_none_either(project: Project) -> None:
    scenario = Scenario().holdfast(["agent", "list"]).say("done")
    path = scenario.write_to(os.path.join(os.path.dirname(project.repo.path), "scenario.json"))
    run(project, "run", "-q", "--id", "it", "--agent", "scripted", "-o", f"scenario={path}", "do it")
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


@pytest.mark.parametrize("pythonpath", [":/nowhere", "/nowhere:", "/nowhere::/elsewhere", "."])
def test_an_empty_entry_is_the_current_directory(project: Project, pythonpath: str) -> None:
    """`PYTHONPATH=/some/where:$PYTHONPATH` makes one, if the variable was not set."""
    run(project, "run", "-q", "--id", "it", "--", "true", pythonpath=pythonpath)
    run(project, "ls", pythonpath=pythonpath)
    run(project, "down", pythonpath=pythonpath)
    assert project.ran == ""


def test_python_m_in_a_project(project: Project) -> None:
    # What `python -m` itself imports is out of our hands.
    os.unlink(os.path.join(project.repo.path, "re.py"))
    for verb in (("run", "-q", "--id", "it", "--", "true"), ("ls",), ("down",)):
        run(project, *verb, pythonpath="", by=(sys.executable, "-m", "holdfast"))
    assert project.ran == ""


def test_entries_beside_one_that_is_kept(project: Project) -> None:
    """Not even installed packages come before Python's own library."""
    root, source = os.path.dirname(project.repo.path), os.path.join(project.repo.path, "src")
    installed = os.path.join(root, "lib", "site-packages")
    shutil.copytree(source, installed)
    ours = os.path.dirname(os.path.dirname(own_python.__file__))
    for number, pythonpath in enumerate(
        (f"{source}:{installed}", f"{source}:{ours}", f":{ours}:{installed}")
    ):
        run(project, "run", "-q", "--id", f"it{number}", "--", "true", pythonpath=pythonpath)
        run(project, "submit", "--id", f"that{number}", "--", "true", pythonpath=pythonpath)
        run(project, "wait", f"that{number}", pythonpath=pythonpath)
        run(project, "down", pythonpath=pythonpath)
        assert project.ran == "", pythonpath


def test_a_package_that_only_pythonpath_has_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = os.path.dirname(os.path.dirname(own_python.__file__))
    for needed in (ours, "/nix/store/x/lib/python3.11/site-packages"):
        monkeypatch.setenv("PYTHONPATH", f"/project/src{os.pathsep}{needed}")
        line = own_python.command("holdfast.keeper", "--idle-exit")
        assert line[1:] == ["-P", "-E", own_python.__file__, needed, "holdfast.keeper", "--idle-exit"]
        assert own_python.module_of(line) == "holdfast.keeper"
    monkeypatch.setenv("PYTHONPATH", "/project/src")
    line = own_python.command("holdfast.keeper")
    assert line[1:] == ["-P", "-E", "-m", "holdfast.keeper"]
    assert own_python.module_of(line) == "holdfast.keeper"


def test_packages_of_a_projects_environment_are_not_kept(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = os.path.join(os.path.dirname(home), "project", ".venv")
    packages = os.path.join(environment, "lib", "python3.11", "site-packages")
    os.makedirs(packages)
    with open(os.path.join(environment, "pyvenv.cfg"), "w", encoding="utf-8"):
        pass
    monkeypatch.setenv("PYTHONPATH", packages)
    assert packages not in own_python.command("holdfast.keeper")


def test_an_agent_that_hides_that_packages_are_of_its_project(project: Project) -> None:
    """Without `pyvenv.cfg`, those of the project's environment look installed, and may have a plug-in."""
    packages = os.path.join(project.repo.path, ".venv", "lib", "python3.11", "site-packages")
    about = os.path.join(packages, "helper-1.dist-info")
    os.makedirs(about)
    shutil.copy(os.path.join(project.repo.path, "json.py"), os.path.join(packages, "helper.py"))
    with open(os.path.join(about, "METADATA"), "w", encoding="utf-8") as file:
        file.write("Metadata-Version: 2.1\nName: helper\nVersion: 1\n")
    with open(os.path.join(about, "entry_points.txt"), "w", encoding="utf-8") as file:
        file.write("[holdfast.agents]\nhelper = helper:ADAPTER\n")
    for verb in (("agent", "list"), ("run", "-q", "--id", "it", "--", "true"), ("down",)):
        run(project, *verb, pythonpath=packages)
        assert project.ran == "", verb


def test_every_process_of_ours_is_started_that_way() -> None:
    root = os.path.dirname(own_python.__file__)
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if not name.endswith(".py") or name == "own_python.py":
                continue
            with open(path, encoding="utf-8") as file:
                text = "".join(file.read().split())
            # A command for a person to type has nothing but -P.
            text = text.replace('executable,"-P","-m","pip"', "")
            assert not re.search(r'executable,[^\[\]]*"-m"', text), path


def test_doctor_warns_of_a_project_in_the_environment_of_holdfast(home: str) -> None:
    """Python imports `sitecustomize` from there before anything of ours."""
    root = os.path.dirname(home)
    repo, venv = Repo(os.path.join(root, "edited")), os.path.join(root, "venv")
    folder = os.path.dirname(repo.write("tests/a"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=60)
    (version,) = os.listdir(os.path.join(venv, "lib"))
    packages = os.path.join(venv, "lib", version, "site-packages")
    ours = [os.path.dirname(os.path.dirname(own_python.__file__))]
    ours += [path for path in sys.path if path.endswith("site-packages")]
    said: list[str] = []
    for entries in (ours, [*ours, repo.path]):
        with open(os.path.join(packages, "all.pth"), "w", encoding="utf-8") as file:
            file.write("\n".join(entries))
        argv = [os.path.join(venv, "bin", "python"), "-m", "holdfast", "doctor"]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        said.append(" ".join(done.stdout.split()))
    warning = f"imports from {repo.path}, in a project"
    assert [warning in text for text in said] == [False, True]
