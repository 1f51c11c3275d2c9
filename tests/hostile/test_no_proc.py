"""A machine without /proc (a chroot, a bare container): a clear error, before anything is changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from holdfast.store import lock as locks
from holdfast.store.layout import Home
from tests.support import tools
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually

#: Commands that start, signal or judge processes.
REFUSED = [
    ("run", "--", "true"),
    ("run", "-d", "--", "true"),
    ("submit", "--", "true"),
    ("queue", "add", '{"id": "one", "command": "true"}'),
    ("up",),
    ("up", "--foreground"),
    ("down",),
    ("down", "--now"),
    ("interrupt", "here"),
    ("resume", "here"),
    ("retry", "here"),
    ("rm", "here"),
    ("rm", "--force", "here"),
]
#: Commands that only read.
WORKING = [("ls",), ("show", "here"), ("logs", "here"), ("events", "here"), ("report",), ("config", "show")]


def namespace() -> list[str]:
    """The command that enters a mount namespace."""
    tools.need("unshare")
    for flags in (["-m"], ["-m", "--map-root-user"]):
        command = ["unshare", *flags, "--"]
        probe = [*command, "mount", "-t", "tmpfs", "tmpfs", "/proc"]
        if subprocess.run(probe, capture_output=True, timeout=10, check=False).returncode == 0:
            return command
    return tools.give_up("no mount namespace for this user")


def blind(*words: str, how: str = "mount -t tmpfs tmpfs /proc") -> subprocess.CompletedProcess[str]:
    """Run holdfast without /proc."""
    script = f'{how} && exec "$@"'
    argv = [*namespace(), "sh", "-c", script, "sh", sys.executable, "-m", "holdfast", *words]
    return subprocess.run(argv, cwd=workspace(), capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def here(home: str) -> Task:
    """A task that has ended."""
    task = Task.start("--id", "here", "--", "true")
    task.wait_for("completed")
    eventually(lambda: not locks.is_held(task.path("runner.lock")), what="its runner has exited")
    return task


def files_of(home: str) -> list[str]:
    """All files except derived ones."""
    found = [os.path.join(folder, name) for folder, _, names in os.walk(home) for name in names]
    return sorted(path for path in found if not path.endswith(".db"))


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_without_proc_nothing_is_started_judged_or_changed(
    home: str, here: Task, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """'run' created a task whose runners died, and waited for ever."""
    monkeypatch.delenv("HOLDFAST_KEEPER")
    before = files_of(home)
    done = blind(*words)
    assert done.returncode == 3, done.stderr
    assert done.stdout == ""
    error, hint = done.stderr.splitlines()
    assert error == "error: /proc is not mounted; without it, processes cannot be started or checked"
    assert hint.startswith("hint: mount it ('mount -t proc proc /proc')")
    assert files_of(home) == before
    assert not os.path.exists(Home(home).down)


@pytest.mark.parametrize("words", WORKING, ids=" ".join)
def test_without_proc_files_can_be_read(home: str, here: Task, words: tuple[str, ...]) -> None:
    done = blind(*words)
    assert done.returncode == 0, done.stderr


def test_doctor_names_it(home: str, here: Task) -> None:
    done = blind("doctor", "--json")
    findings = {each["check"]: each for each in json.loads(done.stdout)["findings"]}
    assert findings["kernel"]["level"] == "fail"
    assert findings["kernel"]["said"] == "/proc is not mounted"
    assert done.returncode == 1


def test_the_proc_of_another_pid_namespace_is_refused(home: str) -> None:
    """Its pids are those of other processes."""
    script = 'exec "$@"'
    flags = ["unshare", "--pid", "--fork", "--map-root-user"]
    if subprocess.run([*flags, "true"], capture_output=True, timeout=10, check=False).returncode:
        tools.give_up("no pid namespace for this user")
    argv = [*flags, "sh", "-c", script, "sh", sys.executable, "-m", "holdfast", "run", "--", "true"]
    done = subprocess.run(argv, cwd=workspace(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("error: /proc shows the processes of another pid namespace")
    assert files_of(home) == []


@pytest.mark.parametrize("module", ["holdfast.runner", "holdfast.keeper", "holdfast.seed"])
def test_runner_keeper_and_seed_refuse_to_start(home: str, here: Task, module: str) -> None:
    argv = [*namespace(), "sh", "-c", 'mount -t tmpfs tmpfs /proc && exec "$@"', "sh"]
    argv += [sys.executable, "-m", module, *([here.packet] if module.endswith("runner") else [])]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3, done.stderr
    assert "/proc is not mounted" in done.stderr


def test_a_system_that_has_no_proc_by_nature_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS: psutil is used there."""
    from holdfast.store import process

    asked: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(process, "HAS_PROC", False)
        patched.setattr(os, "readlink", asked.append)
        process.require_proc()
    assert asked == []
