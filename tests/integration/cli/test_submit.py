"""holdfast submit: creates a waiting packet and its place in the queue."""

from __future__ import annotations

import json
import os
import subprocess

import jsonschema
import pytest

from contracts import schema
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.testing import Scenario
from tests.support.repos import Repo
from tests.support.tasks import holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def submit(*args: str, **given) -> subprocess.CompletedProcess[str]:
    return holdfast("submit", *args, cwd=workspace(), **given)


def items() -> list[dict]:
    return json.loads(holdfast("queue", "ls", "--json").stdout)["items"]


@pytest.mark.req("QUE-1")
def test_it_prints_the_id_and_the_task_waits(home: str) -> None:
    done = submit("--priority", "high", "--pool", "nightly", "--", "true")
    assert (done.returncode, done.stderr) == (0, "")
    task_id = done.stdout.strip()
    packet = Home(home).packet(task_id)
    assert load.read_manifest(packet)["status"] == "queued"
    asked = load.fold(packet).spec.queue
    assert asked is not None
    assert (asked.priority, asked.pool) == (10, "nightly")
    (item,) = items()
    assert (item["task_id"], item["state"], item["priority"], item["pool"]) == (
        task_id,
        "queued",
        10,
        "nightly",
    )
    assert not os.path.exists(packet.runner_lock)


def test_json_is_the_new_manifest() -> None:
    manifest = json.loads(submit("--json", "--", "true").stdout)
    jsonschema.validate(manifest, schema.schemas()["manifest"])
    assert manifest["status"] == "queued"


def test_it_waits_for_other_tasks_by_their_prefix(home: str) -> None:
    submit("--id", "first", "--", "true")
    submit("--id", "second", "--after", "fir", "--", "true")
    assert [(item["task_id"], item["after"], item["waits_for"]) for item in items()] == [
        ("first", [], []),
        ("second", ["first"], ["first"]),
    ]


def test_it_may_wait_for_a_time() -> None:
    submit("--not-before", "+1h", "--", "true")
    assert items()[0]["not_before"] is not None
    assert holdfast("queue", "next").returncode == 3
    submit("--not-before", "+0s", "--id", "due", "--", "true")
    assert holdfast("queue", "next").stdout == "due\n"


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["--priority", "soon"], 2, "not a priority: 'soon'"),
        (["--not-before", "noon"], 2, "not a time: 'noon'"),
        (["--not-before", "2020-01-01T00:00:00Z"], 2, "is in the past"),
        (["--after", "nobody"], 3, "no task 'nobody'"),
        (["--deadline", "x"], 2, "--deadline: not a duration"),
        (["--failover", "nobody"], 2, "--failover does not apply to a command"),
        (["--session", "abc"], 2, "--session abc: command cannot resume sessions"),
        (["--var", "x"], 2, "--var x: not KEY=VALUE"),
        (["--bootstrap", "nowhere.md"], 2, "cannot read the bootstrap nowhere.md"),
        (["--timeout", "0"], 2, "--timeout must be more than zero"),
    ],
)
def test_bad_input_makes_nothing(home: str, args: list[str], status: int, message: str) -> None:
    done = submit(*args, "--", "true")
    assert done.returncode == status
    assert message in done.stderr
    assert os.listdir(os.path.join(home, "tasks")) == []


def test_hints_name_this_verb() -> None:
    assert "holdfast submit --agent" in submit().stderr


def test_the_options_of_a_task_reach_its_spec(home: str) -> None:
    Repo(workspace()).git("commit", "-q", "--allow-empty", "-m", "first")
    template = os.path.join(workspace(), "boot.md")
    with open(template, "w", encoding="utf-8") as file:
        file.write("You are {{WHO}}.")
    scenario = Scenario().write_to(os.path.join(workspace(), "scenario.json"))
    done = submit(
        *(
            "--agent",
            "scripted",
            "-o",
            f"scenario={scenario}",
            "--worktree",
            "--timeout",
            "90s",
            "--on-limit",
            "end",
        ),
        *("--bootstrap", template, "--var", "WHO=ada", "--var", "URL=a=b", "do it"),
    )
    assert done.returncode == 0, done.stderr
    spec = load.fold(Home(home).packet(done.stdout.strip())).spec
    assert spec.workspace == "worktree"
    assert (spec.limits.timeout_s, spec.limits.on_limit) == (90.0, "end")
    assert (spec.bootstrap, spec.variables) == (template, {"WHO": "ada", "URL": "a=b"})


def test_the_time_limit_of_an_attempt_may_come_from_the_environment_or_the_settings(home: str) -> None:
    submit("--id", "a", "--", "true", env={"SESSION_TIMEOUT": "60"})
    os.makedirs(os.path.join(workspace(), ".holdfast"))
    with open(os.path.join(workspace(), ".holdfast", "config.toml"), "w", encoding="utf-8") as file:
        file.write('timeout = "2m"\non_limit = "end"\n')
    submit("--id", "b", "--", "true")
    limits = [load.fold(Home(home).packet(task_id)).spec.limits for task_id in ("a", "b")]
    assert [(each.timeout_s, each.on_limit) for each in limits] == [(60.0, "ask"), (120.0, "end")]


def test_a_home_that_is_down_is_said(home: str) -> None:
    submit("--", "true")
    holdfast("down")
    assert "after 'holdfast up'" in submit("--", "true").stderr
    assert os.path.exists(os.path.join(home, "down"))


def test_failover_names_other_agents_that_are_installed(home: str) -> None:
    folder = os.path.join(workspace(), "bin")
    os.makedirs(folder)
    for name in ("claude", "codex"):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(os.path.join(folder, name), 0o755)
    env = {"PATH": f"{folder}:/usr/bin:/bin", "OPENAI_API_KEY": "sk-of-codex"}
    done = submit("--agent", "claude", "--failover", "codex", "do it", env=env)
    assert done.returncode == 0, done.stderr
    packet = Home(home).packet(done.stdout.strip())
    assert load.fold(packet).spec.failover == ("codex",)
    with open(packet.env, encoding="utf-8") as file:
        assert json.load(file)["env"]["OPENAI_API_KEY"] == "sk-of-codex"
    for name, message in (
        ("gemini", "gemini is not installed"),
        ("claude", "already"),
        ("command", "--failover does not apply to a command"),
    ):
        refused = submit("--agent", "claude", "--failover", name, "do it", env=env)
        assert (refused.returncode, message in refused.stderr) == (2, True), refused.stderr
