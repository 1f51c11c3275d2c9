"""The seals of a task without a runner count after a reboot, too: what an agent appends then is not believed.

A reboot is another boot id, in a mount namespace, for all processes that are started from then on.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from holdfast.store import process
from holdfast.store.layout import Home
from tests.support import tools
from tests.support.tasks import Task, holdfast, workspace

MOUNT = 'mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"'
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def reboot(home: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Run]]:
    """Nothing may run. Returns a function that runs a command of holdfast in the next boot, with a keeper."""
    tools.need("unshare")
    boot = os.path.join(os.path.dirname(home), "boot_id")
    with open(boot, "w", encoding="utf-8") as file:
        file.write("11111111-2222-4333-8444-555555555555\n")
    before = ["unshare", "-rm", "sh", "-c", MOUNT, "sh", boot]
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        pytest.skip("the boot id cannot be replaced on this machine")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*before, sys.executable, "-m", "holdfast", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def end_boot() -> Run:
        monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
        return run

    yield end_boot
    run("down", "--now")
    # Outside the namespace, its lock is of another boot, so nobody else ends it.
    with open(os.path.join(home, "seed.lock"), encoding="utf-8") as file:
        os.kill(json.load(file)["pid"], signal.SIGKILL)


def queued(home: str, *command: str) -> Task:
    assert holdfast("queue", "pause").returncode == 0
    done = holdfast("submit", "--id", "it", "--", *command, cwd=workspace())
    assert done.returncode == 0, done.stderr
    return Task(os.path.join(home, "tasks", "it"))


def append(task: Task, lines: bytes) -> None:
    with open(task.path("events.jsonl"), "ab") as file:
        file.write(lines)


@pytest.mark.parametrize("removes_seals", [False, True])
def test_a_queued_task_cannot_be_completed(
    home: str, reboot: Callable[[], Run], *, removes_seals: bool
) -> None:
    model = Task.start("--id", "model", "--", "true")
    model.wait_for("completed")
    task = queued(home, "false")
    run = reboot()
    append(task, model.read("events.jsonl").partition(b"\n")[2])
    if removes_seals:
        os.unlink(Home(home).seals_of(task.id))
    assert run("queue", "resume").returncode == 0
    done = run("up")
    assert done.returncode == 0, done.stderr
    if removes_seals:  # by a person, or a backup: no agent can. It is in doubt until a person resumes it.
        done = run("wait", task.id, "--timeout", "20s")
        assert done.returncode == 4, done.stdout + done.stderr
        assert "is in doubt" in done.stdout + done.stderr
        return
    done = run("wait", task.id, "--timeout", "40s")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "journal" in task.wait_for("interrupted")["interrupt"]["reason"]


def test_a_run_appended_to_an_ended_task_brings_no_environment(home: str, reboot: Callable[[], Run]) -> None:
    """Its PATH would choose the programs."""
    root = os.path.dirname(home)
    programs, proof = os.path.join(root, "programs"), os.path.join(root, "ran")
    os.mkdir(programs)
    with open(os.path.join(programs, "date"), "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\ntouch {proof}\n")
    os.chmod(os.path.join(programs, "date"), 0o755)
    task = Task.start("--id", "it", "--", "date")
    task.wait_for("completed")
    run = reboot()
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "HOLDFAST_HOME": home}
    data = json.dumps({"schema": "holdfast.env/1", "env": env}).encode() + b"\n"
    with open(task.path("env.json"), "wb") as file:
        file.write(data)
    head = {"id": "01K00000000000000000000000", "at": task.events("task.created")[0]["at"]}
    digest = hashlib.sha256(data).hexdigest()
    opened = {**head, "type": "run.opened", "run": 2, "request": "x", "env_sha256": digest}
    append(task, json.dumps(opened, separators=(",", ":")).encode() + b"\n")
    os.unlink(task.path("manifest.json"))
    os.unlink(task.path("done", "_task.done"))
    assert run("up").returncode == 0
    assert run("submit", "--id", "later", "--", "true").returncode == 0
    assert run("wait", "later", task.id, "--timeout", "40s").returncode == 0
    assert not os.path.exists(proof)


def test_what_an_honest_home_has_is_believed(home: str, reboot: Callable[[], Run]) -> None:
    """Tasks that ended, that wait, and whose runner was killed with the machine."""
    ended = Task.start("--id", "ended", "--", "true")
    ended.wait_for("completed")
    task = queued(home, "true")
    killed = Task.start("--id", "killed", "--", "sleep", "600")
    agent = killed.agent_pid()
    recorder = process.parent(agent)
    killed.kill_runner()
    for pid in (recorder, agent):
        os.kill(pid, signal.SIGKILL)
    # Only what a runner synced is left of the seals: that of the creation, and its first own.
    os.truncate(Home(home).seals_of("killed"), 64)
    run = reboot()
    assert run("up").returncode == 0
    assert run("queue", "resume").returncode == 0
    done = run("wait", task.id, "ended", "--timeout", "40s")
    assert done.returncode == 0, done.stdout + done.stderr
    killed.wait_for_event("attempt.ended")
    run("stop", "--now", "killed")
    killed.wait_for("killed", within_s=40)
    for each in (ended, task, killed):
        assert not each.events("journal.forged")
