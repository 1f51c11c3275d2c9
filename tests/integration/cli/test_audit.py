"""holdfast audit: who did what."""

from __future__ import annotations

import json

import pytest

from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def entries(*words: str) -> list[dict]:
    done = holdfast("audit", *words, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.req("AUD-1")
def test_making_and_asking_are_accounted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "ada")
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    task.ask("interrupt", "-m", "the password is hunter2")
    task.wait_for("interrupted")
    task.stop()
    found = [entry for entry in entries("it") if not entry["operation"].startswith("task.moved")]
    assert [entry["operation"] for entry in found] == ["task.created", "request.interrupt", "request.stop"]
    assert all(entry["by"].startswith("ada@") for entry in found)
    assert "hunter2" not in json.dumps(found)
    assert len(entries("--operation", "request.")) == 2
    assert "request.stop" in holdfast("audit", "it").stdout


def test_a_bypass_stands_out() -> None:
    Task.start("--yolo", "--id", "it", "--", "true").wait_for("completed")
    entry = entries("it", "--operation", "task.created")[0]
    assert entry["level"] == "warn"
    assert "bypassed" in entry["reason"]


def test_a_removed_task_is_still_accounted_for_and_time_limits() -> None:
    Task.shell("true", "--id", "it").wait_for("completed")
    holdfast("rm", "it")
    assert entries("it")
    assert entries("it", "--since", "1h")
    assert entries("it", "--since", "0s") == []
    assert holdfast("audit", "nobody").stderr.startswith("nothing was done")
    assert holdfast("audit", "--since", "soon").returncode == 2
    assert holdfast("audit", "../x").returncode == 2
