"""holdfast down: no keeper, nothing new; what runs goes on, unless --now. (The rest is in test_keeper.)"""

from __future__ import annotations

import json
import os

import jsonschema
import pytest

from holdfast.model import schema
from tests.support import kin
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
    task.wait_for("interrupted")
    task.stop()


def test_errors() -> None:
    assert holdfast("down", "later").returncode == 2
    wrong = holdfast("down", "--nw")
    assert (wrong.returncode, "--now" in wrong.stderr) == (2, True)
