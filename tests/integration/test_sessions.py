"""A session has one writer: its lock belongs to the recorder of the attempt that uses it, not to the
runner."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from holdfast.testing import Scenario
from tests.support import kin, processes
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: the tests start the runners."""
    lock = kin.alone(home)
    yield
    os.close(lock)


def is_refused(task: Task, times: int = 1) -> None:
    """The task asks for a person because its session is in use, and its agent was not started."""
    eventually(lambda: task.moves().count("interrupted") == times, what="it asks", journal=task.packet)
    assert "another attempt is using session" in task.wait_for("interrupted")["interrupt"]["reason"]
    assert task.events("attempt.started") == []


@pytest.mark.req("LCH-1", "PKT-17")
def test_a_second_task_in_a_session_is_refused_while_the_first_agent_lives_even_without_its_runner() -> None:
    go = os.path.join(workspace(), "go")
    first = Task.play(Scenario().say("at work").wait_file(go).result("ok"))
    first.wait_for_event("agent.text")
    agent = first.agent_pid()
    session = first.manifest()["session_id"]

    second = Task.play(Scenario().result("ok"), "--session", session)
    is_refused(second)

    first.kill_runner()
    assert processes.is_alive(agent)
    assert second.ask("resume").returncode == 0
    is_refused(second, times=2)

    kin.go()
    eventually(lambda: not processes.is_alive(agent), what="the first agent has ended")
    assert second.ask("resume").returncode == 0
    second.wait_for("completed")
    assert second.memory().overlaps() == []
    first.start_runner()
    first.wait_for("completed")
