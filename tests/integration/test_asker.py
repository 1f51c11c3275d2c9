"""Who is asking: an agent may read and start tasks, but decides nothing about its own or an ancestor."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from holdfast import paths
from holdfast.views.cli import verbs
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
        f'{before} timeout 30 {PYTHON} {verb} > out-{at} 2>&1; echo "$?" > status-{at}; '
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


#: What an agent of the task `it` may not call, by verb and condition of the table. Each is an attack.
REFUSED = {
    ("takeover", ""): "takeover other",
    ("stop", ""): "stop it --now",
    ("resume", ""): "resume it",
    ("approve", ""): "approve it",
    ("reject", ""): "reject it -m no",
    ("retry", ""): "retry ended --from command_run",
    ("apply", ""): "apply other",
    ("pr", ""): "pr it --draft",
    ("share", ""): "share it -o page.html",
    ("rm", ""): "rm ended",
    ("queue", "claim"): "queue claim",
    ("queue", "release"): "queue release it",
    ("queue", "done"): "queue done it",
    ("queue", "priority"): "queue priority it high",
    ("queue", "retry"): "queue retry it",
    ("queue", "rm"): "queue rm it",
    ("queue", "clear"): "queue clear --yes",
    ("queue", "pause"): "queue pause",
    ("queue", "resume"): "queue resume",
    ("up", ""): "up --slots 9",
    ("down", ""): "down --now",
    ("serve", ""): "serve --address 0.0.0.0",
    ("report", "--html"): "report --html page.html",
    ("archive", ""): "archive ended",
    ("prune", "--yes"): "prune --older-than 0s --yes",
    ("service", "install"): "service install",
    ("service", "remove"): "service remove",
    ("trust", ""): "trust --yes .",
    ("notify", ""): "notify test",
    ("skill", "install"): "skill install",
    ("skill", "remove"): "skill remove",
    ("mcp", "install"): "mcp install --for claude",
    ("mcp", "remove"): "mcp remove --for claude",
}


def test_every_verb_that_acts_on_the_machine_or_on_its_task_is_refused(home: str) -> None:
    """A verb with a row of its own in the table needs an attack here."""
    refusing = {
        (verb, when)
        for verb, rows in verbs.FOR_AGENTS.items()
        for when, rule in ((("", rows),) if isinstance(rows, str) else rows)
        if rule not in (verbs.READ, verbs.START)
    }
    assert refusing == set(REFUSED)
    ended = Task.shell("exit 0", "--id", "ended")
    ended.wait_for("completed")
    other = Task.shell(kin.WAIT, "--id", "other")
    with open(os.path.join(workspace(), "notes"), "w", encoding="utf-8"):
        pass
    before = _settings()
    task = Task.shell(asks(*REFUSED.values()) + kin.WAIT, "--id", "it")
    for line, (status, said) in zip(REFUSED.values(), answers(len(REFUSED), 120), strict=True):
        assert status == 3, (line, status, said)
        words = " ".join(said.split())
        assert "an agent may not" in words, (line, said)
    assert (task.status(), other.status(), ended.status()) == ("running", "running", "completed")
    assert not task.events("request.")
    assert not os.path.exists(os.path.join(workspace(), "page.html"))
    assert not {"down", "up", "service.json"} & set(os.listdir(home))
    assert _settings() == before
    kin.go()
    task.wait_for("completed")
    other.wait_for("completed")


def _settings() -> list[str]:
    """Every file in the user's directory, but for the records of tasks that run."""
    return sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(os.path.expanduser("~"))
        if not folder.startswith((os.environ["HOLDFAST_HOME"], os.path.join(paths.trust_dir(), "homes")))
        for name in names
    )


def test_trust_is_refused_through_another_home_and_through_a_flag() -> None:
    """Trust belongs to the user, not to a home."""
    os.makedirs(os.path.join(workspace(), ".holdfast"))
    with open(os.path.join(workspace(), ".holdfast", "config.toml"), "w", encoding="utf-8") as file:
        file.write('post_work = ["touch owned"]\n')
    attacks = ("trust --yes .", "run -d --trust-project -- true", "service install", "skill install")
    task = Task.shell(asks(*attacks, before='HOLDFAST_HOME="$PWD/elsewhere" '))
    for line, (status, said) in zip(attacks, answers(len(attacks)), strict=True):
        assert status == 3, (line, said)
        assert "an agent may not" in " ".join(said.split()), (line, said)
    task.wait_for("completed")
    assert "you trust no project" in holdfast("trust", "--list").stderr


def test_an_agent_removes_the_tasks_that_it_started() -> None:
    calls = ("run --id child -- true", "rm child", "run -d --id deep -- sleep 30", "rm --force deep")
    task = Task.shell(asks(*calls), "--id", "it")
    assert [(status, said) for status, said in answers(len(calls)) if status != 0] == []
    task.wait_for("completed")


def test_the_home_and_the_trust_of_its_user_are_for_persons() -> None:
    """Trust would run commands of the project outside, and `down` would stop all others."""
    os.makedirs(os.path.join(workspace(), ".holdfast"))
    with open(os.path.join(workspace(), ".holdfast", "config.toml"), "w", encoding="utf-8") as file:
        file.write('post_work = ["true"]\n')
    task = Task.shell(asks("trust --yes .", "down --now"))
    for status, text in answers(2):
        assert status == 3, text
        assert "an agent may not" in " ".join(text.split())
    task.wait_for("completed")
    assert "you trust no project" in holdfast("trust", "--list").stderr
    assert not os.path.exists(os.path.join(os.environ["HOLDFAST_HOME"], "down"))


@pytest.mark.parametrize("keeper", ["off", ""], ids=["without a keeper", "with a keeper"])
def test_a_task_in_another_home_does_not_decide_for_the_agent_that_started_it(
    home: str, place: Any, keeper: str
) -> None:
    """It has no parent in its journal, but it runs below the agent."""
    assert holdfast("run", "--id", "other", "--", "true").returncode == 0
    calls = (
        "approve it", "reject it -m no", "resume it", "stop it", "retry it", "rm --force it", "rm other",
        "down", "run -d --id child -- true",
    )  # fmt: skip
    script = os.path.join(place.root, "inner.sh")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"export HOLDFAST_HOME={home}; cd {workspace()}; " + asks(*calls))
    elsewhere = f"HOLDFAST_KEEPER={keeper} HOLDFAST_HOME={place.root}/elsewhere"
    task = Task.shell(f"{elsewhere} {PYTHON} run --id inner -- sh {script}; {kin.WAIT}", "--id", "it")
    found = answers(len(calls))
    for verb, (status, said) in zip(calls[:-1], found[:-1], strict=True):
        assert status == 3, (verb, said)
        assert "an agent may not" in said, (verb, said)
    assert found[-1][0] == 0, found[-1]
    child = Task(os.path.join(home, "tasks", "child"))
    assert child.events("task.created")[0]["spec"]["parent"] == "it"
    assert task.status() == "running"
    assert os.path.isdir(os.path.join(home, "tasks", "other"))
    kin.go()
    task.wait_for("completed", within_s=30)
    holdfast("down", "--now", env={"HOLDFAST_HOME": f"{place.root}/elsewhere"})
