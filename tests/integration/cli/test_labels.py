"""Labels: in a written packet, and as the filter of the verbs that act on tasks."""

from __future__ import annotations

import os

import pytest

from holdfast.testing import Scenario
from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def packet(*words: str) -> str:
    """A packet of one stage for the scripted agent, as `new` writes it."""
    scenario = Scenario().say("done").result("done").write_to(os.path.join(workspace(), "scenario.json"))
    done = holdfast(
        "new", "p", "--intent", "one_shot_impl", "--goal", "x", "--agent", "scripted", "--in-place", *words,
        cwd=workspace(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    path = os.path.join(workspace(), "p", "manifest.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        options = f"routing:\n  options:\n    scripted:\n      scenario: {scenario}\n"
        file.write(text.replace("routing:\n", options, 1))
    return path


def test_new_writes_labels_into_the_packet_and_run_adds_to_them() -> None:
    packet("--id", "it", "--label", "batch=1", "--label", "team=web: #1")
    done = holdfast(
        "run",
        "-d",
        "--trust-project",
        "--packet",
        "p",
        "--label",
        "batch=2",
        "--label",
        "x=y",
        cwd=workspace(),
    )
    assert done.returncode == 0, done.stderr
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "it"))
    assert task.manifest()["labels"] == {"batch": "2", "team": "web: #1", "x": "y"}
    task.stop() if task.status() not in ("completed", "failed") else None


def test_a_wrong_label_in_a_packet_is_a_problem_with_its_line() -> None:
    path = packet("--label", "batch=1")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace('["batch=1"]', "[batch]"))
    done = holdfast("pipeline", "check", "p", cwd=workspace())
    assert done.returncode == 2
    assert "labels[0]" in done.stderr + done.stdout
    assert "KEY=VALUE" in done.stderr + done.stdout


def test_secrets_in_labels_of_a_packet_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2")
    packet("--id", "it", "--label", "note=hunter2hunter2")
    done = holdfast("run", "-d", "--trust-project", "--packet", "p", "--env", "MY_TOKEN", cwd=workspace())
    assert done.returncode == 0, done.stderr
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "it"))
    assert "hunter2" not in str(task.manifest()["labels"])
    task.stop() if task.status() not in ("completed", "failed") else None


def test_stop_by_label() -> None:
    one = Task.shell(kin.WAIT, "--id", "one", "--label", "batch=1")
    two = Task.shell(kin.WAIT, "--id", "two", "--label", "batch=2")
    Task.shell("true", "--id", "ended", "--label", "batch=1").wait_for("completed")
    for task in (one, two):
        task.agent_pid()
    assert holdfast("stop", "one", "--label", "batch=1").returncode == 2
    done = holdfast("stop", "--label", "batch=1")
    assert (done.returncode, done.stderr) == (0, "stopped one\n")
    assert (one.status(), two.status()) == ("killed", "running")
    assert holdfast("stop", "--label", "batch=1", "--state", "running").stderr == "no task to stop\n"
    assert "no task to stop" in holdfast("stop", "--label", "batch=9").stderr
    assert holdfast("stop", "--label", "batch").returncode == 2
    assert holdfast("stop", "--all", "--label", "batch=2", "--now").returncode == 0
    assert two.status() == "killed"


def test_show_has_the_labels() -> None:
    task = Task.shell("true", "--id", "it", "--label", "batch=1", "--label", "team=web")
    task.wait_for("completed")
    assert "labels    batch=1, team=web" in " ".join(task.ask("show").stdout.split("\n"))
