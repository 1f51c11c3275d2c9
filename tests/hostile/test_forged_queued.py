"""The journal of a task that has not run yet is sealed, too: nothing that an agent appends to it counts."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import time

import pytest

from holdfast.store.layout import Home
from tests.support.tasks import Task, holdfast, workspace


def queued(home: str, *command: str, name: str = "it") -> Task:
    assert holdfast("queue", "pause").returncode == 0
    done = holdfast("submit", "--id", name, "--", *command, cwd=workspace())
    assert done.returncode == 0, done.stderr
    return Task(os.path.join(home, "tasks", name))


def append(task: Task, lines: bytes) -> None:
    with open(task.path("events.jsonl"), "ab") as file:
        file.write(lines)


def genuine_end() -> bytes:
    """What a runner writes for a task that completes."""
    model = Task.start("--id", "model", "--", "true")
    model.wait_for("completed")
    return model.read("events.jsonl").partition(b"\n")[2]


@pytest.mark.parametrize("removes_seals", [False, True])
def test_a_task_that_has_not_run_cannot_be_completed(
    home: str, monkeypatch: pytest.MonkeyPatch, *, removes_seals: bool
) -> None:
    lines = genuine_end()
    task = queued(home, "false")
    append(task, lines)
    if removes_seals:
        os.unlink(Home(home).seals_of(task.id))
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("queue", "resume").returncode == 0
    assert holdfast("up").returncode == 0
    if removes_seals:  # by a person, or a backup: no agent can. It is in doubt until a person resumes it.
        done = holdfast("wait", task.id, "--timeout", "20s")
        assert done.returncode == 4, done.stdout + done.stderr
        assert "is in doubt" in done.stdout + done.stderr
        return
    done = holdfast("wait", task.id, "--timeout", "40s")
    assert done.returncode == 4, done.stdout + done.stderr
    manifest = task.wait_for("interrupted")
    assert "journal" in manifest["interrupt"]["reason"]


def test_an_appended_run_brings_no_environment(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its PATH would choose the programs."""
    programs, proof = os.path.join(os.path.dirname(home), "programs"), os.path.join(home, "ran")
    os.mkdir(programs)
    with open(os.path.join(programs, "date"), "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\ntouch {proof}\n")
    os.chmod(os.path.join(programs, "date"), 0o755)
    task = queued(home, "date")
    with open(task.path("env.json"), encoding="utf-8") as file:
        env = json.load(file)
    env["env"]["PATH"] = f"{programs}:{env['env']['PATH']}"
    data = json.dumps(env).encode() + b"\n"
    with open(task.path("env.json"), "wb") as file:
        file.write(data)
    at = task.events("task.created")[0]["at"]
    head = {"id": "01K00000000000000000000000", "at": at}
    digest = hashlib.sha256(data).hexdigest()
    ended = {**head, "type": "task.moved", "old": "queued", "new": "killed", "reason": "x"}
    opened = {**head, "type": "run.opened", "run": 2, "request": "x", "env_sha256": digest}
    again = {**head, "type": "task.moved", "old": "spawning", "new": "queued", "reason": "x"}
    append(task, b"".join(json.dumps(line).encode() + b"\n" for line in (ended, opened, again)))
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("queue", "resume").returncode == 0
    assert holdfast("up").returncode == 0
    holdfast("wait", task.id, "--timeout", "40s")
    assert not os.path.exists(proof)


def test_an_agent_that_holds_the_directory_of_tasks_stops_nobody(home: str) -> None:
    holdfast("ls")
    os.makedirs(os.path.join(home, "tasks"), exist_ok=True)
    folder = os.open(os.path.join(home, "tasks"), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        began = time.monotonic()
        Task.start("--", "true").wait_for("completed")
        assert time.monotonic() - began < 20
    finally:
        os.close(folder)


@pytest.mark.parametrize("way", ["absolute", "relative"])
@pytest.mark.parametrize("state", ["queued", "claimed"])
def test_a_row_of_the_queue_leads_to_no_packet_elsewhere(
    home: str, monkeypatch: pytest.MonkeyPatch, way: str, state: str
) -> None:
    """An agent would have its own `admitted/` and `seals/` beside that packet."""
    proof, other = os.path.join(home, "ran"), os.path.join(workspace(), "other")
    holdfast("queue", "pause", env={"HOLDFAST_HOME": other})
    command = ("submit", "--id", "planted", "--", "touch", proof)
    done = holdfast(*command, cwd=workspace(), env={"HOLDFAST_HOME": other})
    assert done.returncode == 0, done.stderr
    queued(home, "true")
    path = os.path.join(other, "tasks", "planted")
    name = path if way == "absolute" else os.path.relpath(path, os.path.join(home, "tasks"))
    by = f"{os.getpid()}" if state == "claimed" else None
    with sqlite3.connect(os.path.join(home, "queue.db")) as rows:
        rows.execute("UPDATE items SET priority = 0")
        rows.execute(
            "INSERT INTO items VALUES"
            " (NULL, ?, 9, 'default', 'command', '[]', NULL, 0, ?, '', 1, ?, NULL, 0, 0, '', 0, 0)",
            (name, state, by),
        )
    rows.close()
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("queue", "resume").returncode == 0
    assert holdfast("up").returncode == 0
    # The others go on.
    assert holdfast("wait", "it", "--timeout", "40s").returncode == 0
    assert not os.path.exists(proof)
    assert "planted" not in holdfast("queue", "ls").stdout


def test_a_row_of_the_index_leads_to_no_packet_elsewhere(home: str) -> None:
    queued(home, "true")
    assert holdfast("ls").returncode == 0
    with sqlite3.connect(os.path.join(home, "index.db")) as rows:
        rows.execute("UPDATE tasks SET task_id = ?, stamp = ''", (f"{workspace()}/tasks/it",))
    rows.close()
    done = holdfast("ls")
    assert done.returncode == 0, done.stderr
    assert "it" in done.stdout
