"""An agent that dies is resumed: the ordinary crash is the first thing that supervision is for."""

from __future__ import annotations

import json
import os
import signal

import pytest

from holdfast.testing import Scenario
from tests.support.tasks import Task
from tests.support.waiting import eventually


@pytest.mark.req("W-A1", "TST-3", "TST-7", "RES-4", "RES-5", "SUP-13", "SUP-16", "W-A6")
def test_a_sigkilled_agent_is_resumed_in_the_same_session(home: str) -> None:
    scenario = Scenario().fail_if_running().write("one.txt", "1").hang(once=True).write("two.txt", "2")
    task = Task.play(scenario, prompt="write two files")
    eventually(lambda: "steps[2]" in task.memory().begun_steps(), what="the agent is busy", journal=task.packet)
    os.kill(task.agent_pid(), signal.SIGKILL)
    manifest = task.wait_for("completed")

    first, second = task.memory().starts()
    assert (first.is_resume, second.is_resume) == (False, True)
    assert first.cwd == second.cwd
    assert first.prompt == "write two files"
    assert "killed by signal 9" in second.prompt
    # It went on behind the step at which it died: the first file was written once.
    assert [effect["path"] for effect in task.memory().effects()] == ["one.txt", "two.txt"]
    assert task.memory().overlaps() == []
    assert (manifest["attempt"], manifest["total_retries"], manifest["exit_code"]) == (2, 1, 0)
    ended = task.events("attempt.ended")
    assert [(e["outcome"], e["exit_signal"], e["exit_code"]) for e in ended] == [
        ("crashed", signal.SIGKILL, 137),
        ("success", None, 0),
    ]
    assert task.moves()[:4] == ["running", "crashed", "spawning", "running"]
    # Both attempts left the same kinds of record.
    records = [sorted(os.listdir(path)) for path in task.attempts()]
    assert records[0] == records[1]
