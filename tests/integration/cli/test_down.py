"""holdfast down: no keeper, nothing new; what runs goes on, unless --now. (The rest is in test_keeper.)"""

from __future__ import annotations

import json
import os

import jsonschema
import pytest

from holdfast.errors import Unanswered
from holdfast.model import schema
from holdfast.store import lock as locks
from holdfast.store.layout import Home
from holdfast.views.cli.commands import down
from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def test_it_leaves_a_durable_flag_and_can_be_given_twice(home: str) -> None:
    for _ in range(2):
        done = holdfast("down")
        assert (done.returncode, done.stdout) == (0, "")
    with open(os.path.join(home, "down"), encoding="utf-8") as file:
        jsonschema.validate(json.load(file), schema.schemas()["down"])
    assert "down" in holdfast("status").stdout


def test_now_interrupts_what_runs_and_says_how_to_go_on() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    Task.shell("true", "--id", "ended").wait_for("completed")
    done = holdfast("down", "--now")
    assert (done.returncode, done.stdout) == (0, "")
    assert "interrupted it; 'holdfast resume it' goes on" in done.stderr
    assert "ended" not in done.stderr
    task.stop()


def test_now_returns_when_what_it_says_is_true(home: str) -> None:
    # It takes a moment to leave: what is said before that would not be so.
    task = Task.shell(f"trap 'sleep 0.7; exit 1' TERM; echo on; {kin.WAIT}", "--id", "slow")
    task.wait_for_log("on")
    agent = task.agent_pid()
    done = holdfast("down", "--now")
    assert task.status() == "interrupted"
    assert not processes.is_alive(agent)
    assert not locks.is_held(task.path("runner.lock"))
    assert (done.returncode, "interrupted slow" in done.stderr) == (0, True)
    task.stop()


def test_a_task_that_takes_too_long_is_named_and_the_request_stands(
    home: str, capsys: pytest.CaptureFixture[str]
) -> None:
    task = Task.shell(f"trap '' TERM; echo on; {kin.WAIT}", "--id", "deaf", "--stop-pause", "5s")
    task.wait_for_log("on")
    assert down.interrupt_all(Home(home), within_s=0.5) == Unanswered.exit_status
    said = capsys.readouterr().err
    assert "interrupted deaf" not in said
    assert "deaf is still being interrupted" in said
    task.wait_for("interrupted")
    task.stop()


def test_errors() -> None:
    assert holdfast("down", "later").returncode == 2
    wrong = holdfast("down", "--nw")
    assert (wrong.returncode, "--now" in wrong.stderr) == (2, True)
