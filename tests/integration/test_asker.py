"""Who is asking: an agent may read and start tasks, but decides nothing about its own or an ancestor."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

PYTHON = f"{sys.executable} -m holdfast"


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def asks(*verbs: str, before: str = "") -> str:
    """Shell: call these, and note each exit status with its error."""
    return "".join(
        f'{before} {PYTHON} {verb} > out-{at} 2>&1; echo "$?" > status-{at}; '
        for at, verb in enumerate(verbs)
    )


def answers(count: int, within_s: float = 60.0) -> list[tuple[int, str]]:
    """Exit status and output of each call, once all were made."""
    root = workspace()

    def there() -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        for at in range(count):
            with open(os.path.join(root, f"status-{at}"), encoding="utf-8") as file:
                status = int(file.read())
            with open(os.path.join(root, f"out-{at}"), encoding="utf-8") as file:
                found.append((status, file.read()))
        return found

    return eventually(there, within_s, "the agent has made its calls")


@pytest.mark.parametrize(
    "before",
    ["", 'env -i PATH="$PATH" HOLDFAST_HOME="$HOLDFAST_HOME" ', "setsid --wait "],
    ids=["plain", "without its environment", "in a session of its own"],
)
def test_an_agent_decides_nothing_about_its_own_task(before: str) -> None:
    verbs = ("stop it", "resume it", "approve it", "reject it -m no", "retry it", "rm --force it")
    task = Task.shell(asks(*verbs, before=before) + kin.WAIT, "--id", "it")
    for verb, (status, said) in zip(verbs, answers(len(verbs)), strict=True):
        assert status == 3, (verb, said)
        assert "an agent may not" in said, (verb, said)
        assert "its own task" in said
    assert task.status() == "running"
    assert not task.events("request.")
    kin.go()
    task.wait_for("completed")


def test_it_may_read_start_tasks_and_ask_a_person(home: str) -> None:
    calls = (
        "show it --json", "ls -q", "digest --json", "run -d --id child -- sleep 30", "stop child",
        "interrupt it -m which",
    )  # fmt: skip
    task = Task.shell(asks(*calls) + kin.WAIT, "--id", "it")
    task.wait_for("interrupted", within_s=60)
    assert [status for status, _ in answers(len(calls) - 1)] == [0] * (len(calls) - 1)
    child = Task(os.path.join(home, "tasks", "child"))
    child.wait_for("killed")
    assert child.events("task.created")[0]["spec"]["parent"] == "it"
    (applied,) = child.events("request.applied")
    assert applied["by"] == "agent of it"
    assert task.ask("resume", "-m", "that one").returncode == 0, "a person may"


def test_a_child_decides_nothing_about_its_ancestors() -> None:
    inner = asks("stop it", "stop other") + "exit 0"
    with open(os.path.join(workspace(), "inner.sh"), "w", encoding="utf-8") as file:
        file.write(inner)
    middle = f"{PYTHON} run -d --id grandchild -- sh inner.sh; exit 0"
    other = Task.shell(kin.WAIT, "--id", "other")
    task = Task.shell(f"{PYTHON} run -d --id child -- sh -c '{middle}'; " + kin.WAIT, "--id", "it")
    (own, said), (elsewhere, _) = answers(2)
    assert (own, elsewhere) == (3, 0), said
    assert "the task that started its own" in said
    other.wait_for("killed")
    kin.go()
    task.wait_for("completed")


def test_a_request_says_who_asked(home: str) -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    assert task.ask("stop").returncode == 0
    task.wait_for("killed")
    with open(os.path.join(home, "audit.jsonl"), encoding="utf-8") as file:
        lines: list[dict[str, Any]] = [json.loads(line) for line in file]
    (request,) = [line for line in lines if line["operation"] == "request.stop"]
    assert request["asker"] == "person"


def test_an_agent_of_one_home_may_stop_a_task_of_the_same_name_in_another(place: Any) -> None:
    elsewhere = os.path.join(place.root, "elsewhere")
    other = holdfast("run", "-d", "--id", "it", "--", "sleep", "30", env={"HOLDFAST_HOME": elsewhere})
    assert other.returncode == 0, other.stderr
    task = Task.shell(asks("stop it", before=f"HOLDFAST_HOME={elsewhere}") + kin.WAIT, "--id", "it")
    ((status, said),) = answers(1)
    assert status == 0, said
    Task(os.path.join(elsewhere, "tasks", "it")).wait_for("killed")
    assert task.status() == "running"
    kin.go()
    task.wait_for("completed")


def test_the_home_and_the_trust_of_its_user_are_for_persons() -> None:
    """Trust would run commands of the project outside, and `down` would stop all others."""
    os.makedirs(os.path.join(workspace(), ".holdfast"))
    with open(os.path.join(workspace(), ".holdfast", "config.toml"), "w", encoding="utf-8") as file:
        file.write('post_work = ["true"]\n')
    task = Task.shell(asks("trust --yes .", "down --now"))
    for status, text in answers(2):
        assert status == 3, text
        assert "it is an agent that asks" in " ".join(text.split())
    task.wait_for("completed")
    assert "you trust no project" in holdfast("trust", "--list").stderr
    assert not os.path.exists(os.path.join(os.environ["HOLDFAST_HOME"], "down"))
