"""holdfast stop: stops tasks, waits for their end, and says what it waits for."""

from __future__ import annotations

import json
import os
import time

import pytest

from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

#: An agent that lives on after a TERM.
STUBBORN = "trap '' TERM INT HUP; " + kin.WAIT


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def test_it_returns_when_the_task_has_ended_as_killed_with_the_reason_given() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    agent = task.agent_pid()
    done = task.ask("stop", "-m", "wrong branch")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "stopped it\n")
    assert (task.status(), task.manifest()["status_reason"]) == ("killed", "wrong branch")
    assert os.path.exists(task.path("done", "_task.done"))
    assert not processes.is_alive(agent)


def test_it_says_what_it_waits_for_and_when_that_is_killed() -> None:
    task = Task.shell(STUBBORN, "--id", "it", "--stop-pause", "2s")
    agent = task.agent_pid()
    done = task.ask("stop")
    assert done.returncode == 0
    assert f"it: waiting for command (process {agent}) to exit; it is killed in " in done.stderr
    assert "'holdfast stop it' again kills it now" in done.stderr
    assert done.stderr.endswith("stopped it\n")


def test_no_wait_returns_at_once_and_ls_show_and_json_say_stopping() -> None:
    task = Task.shell(STUBBORN, "--id", "it", "--stop-pause", "60s")
    agent = task.agent_pid()
    done = task.ask("stop", "--no-wait", "-m", "enough")
    assert (done.returncode, "'holdfast wait it'" in done.stderr) == (0, True)
    assert processes.is_alive(agent)
    row = next(line for line in holdfast("ls").stdout.splitlines() if line.startswith("it "))
    assert row.split()[1] == "stopping"
    assert "\nstate     stopping" in "\n" + task.ask("show").stdout
    assert "enough" in task.ask("show").stdout
    (listed,) = json.loads(holdfast("ls", "--json").stdout)
    assert (listed["status"], listed["stopping"]["intent"], listed["stopping"]["reason"]) == (
        "running",
        "stop",
        "enough",
    )
    assert task.ask("stop", "--now").returncode == 0
    assert "stopping" not in task.manifest()


@pytest.mark.parametrize("second", [["--now"], []])
def test_now_or_a_second_stop_kills_at_once(second: list[str]) -> None:
    task = Task.shell(STUBBORN, "--id", "it", "--stop-pause", "60s")
    agent = task.agent_pid()
    if not second:
        assert task.ask("stop", "--no-wait", "-m", "first reason").returncode == 0
        assert processes.is_alive(agent)
    start_mono = time.monotonic()
    assert task.ask("stop", *second).returncode == 0
    assert time.monotonic() - start_mono < 30
    assert (task.status(), task.manifest()["exit_signal"]) == ("killed", 9)
    assert not processes.is_alive(agent)
    if not second:
        assert task.manifest()["status_reason"] == "first reason"


def test_now_kills_what_the_agent_left_at_once_too() -> None:
    script = f"sh -c \"trap '' TERM; {kin.WAIT}\" & {kin.WAIT}"
    task = Task.shell(script, "--id", "it", "--stop-pause", "60s")
    task.agent_pid()
    assert task.ask("stop", "--now").returncode == 0
    assert not processes.marked(task.packet)


def test_several_tasks_are_stopped_together_and_one_mistake_costs_only_itself() -> None:
    tasks = [Task.shell(STUBBORN, "--id", name, "--stop-pause", "1s") for name in ("one", "two")]
    for task in tasks:
        task.agent_pid()
    done = holdfast("stop", "one", "nobody", "two", "nothing")
    assert (done.returncode, "no task 'nobody'" in done.stderr) == (3, True)
    assert "no task 'nothing'" in done.stderr
    assert {"stopped one", "stopped two"} <= set(done.stderr.splitlines())
    assert [task.status() for task in tasks] == ["killed", "killed"]


def test_all_and_state_choose_tasks() -> None:
    live = [Task.shell(kin.WAIT, "--id", name) for name in ("one", "two")]
    for task in live:
        task.agent_pid()
    asked = Task.shell(kin.WAIT, "--id", "three")
    asked.agent_pid()
    asked.ask("interrupt")
    Task.shell("true", "--id", "over").wait_for("completed")
    done = holdfast("stop", "--state", "interrupted")
    assert (done.returncode, done.stderr) == (0, "stopped three\n")
    assert [task.status() for task in live] == ["running", "running"]
    done = holdfast("stop", "--all", "--json")
    assert done.returncode == 0
    manifests = [json.loads(line) for line in done.stdout.splitlines()]
    assert {each["task_id"]: each["status"] for each in manifests} == {"one": "killed", "two": "killed"}
    done = holdfast("stop", "--all")
    assert (done.returncode, done.stderr) == (0, "no task to stop\n")


def test_a_prefix_is_enough() -> None:
    task = Task.shell(kin.WAIT, "--id", "20260131-abc")
    task.agent_pid()
    assert holdfast("stop", "20260131").returncode == 0
    assert task.status() == "killed"


def test_a_task_that_has_ended_is_no_mistake_but_one_that_is_not_there_is() -> None:
    task = Task.shell("true", "--id", "it")
    task.wait_for("completed")
    done = task.ask("stop")
    assert (done.returncode, done.stderr) == (0, "it has already ended: completed\n")
    assert json.loads(task.ask("stop", "--json").stdout)["status"] == "completed"
    assert task.events("request.") == []
    holdfast("archive", "it")
    assert task.ask("stop").returncode == 0
    assert holdfast("stop", "nobody").returncode == 3


def test_what_it_needs_is_said() -> None:
    done = holdfast("stop")
    assert (done.returncode, "which tasks? Give their ids, --all, --state" in done.stderr) == (2, True)
    done = holdfast("stop", "it", "--all")
    assert (done.returncode, "either ids or --all, --state" in done.stderr) == (2, True)
    done = holdfast("stop", "--state", "runing")
    assert (done.returncode, "did you mean 'running'" in done.stderr) == (2, True)
    wrong = holdfast("stop", "it", "--mesage", "x")
    assert (wrong.returncode, "--message" in wrong.stderr) == (2, True)


def test_a_task_that_was_asked_to_stop_is_stopped_by_the_next_runner_too() -> None:
    """The kill is in the journal: a runner that takes over does not start over with a TERM."""
    task = Task.shell(STUBBORN, "--id", "it", "--stop-pause", "60s")
    agent = task.agent_pid()
    assert task.ask("stop", "--no-wait").returncode == 0
    task.kill_runner()
    assert processes.is_alive(agent)
    assert task.ask("stop", "--no-wait").returncode == 0
    eventually(lambda: not processes.is_alive(agent), what="the agent is killed")
    task.wait_for("killed")
