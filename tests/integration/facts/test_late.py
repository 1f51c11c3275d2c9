"""Output that is read late keeps its time: in the journal, in the log's index, and in what views show."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Iterator

import pytest

from holdfast import clock
from holdfast.store.layout import Packet
from holdfast.testing import Scenario
from holdfast.views.facts import log, timeline
from tests.support import kin
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually

#: How long ago the agent of a test seems to have printed.
AGO_S = 3600.0


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: the tests start the runners."""
    workspace()
    lock = kin.alone(home)
    yield
    os.close(lock)


def backdate(task: Task) -> float:
    """Let the agent's output seem old."""
    (stdout,) = glob.glob(task.path("attempts", "001-*", "stdout.log"))
    then = time.time() - AGO_S
    os.utime(stdout, (then, then))
    return then


def test_events_that_are_read_after_an_adoption_keep_their_time() -> None:
    scenario = (
        Scenario().say("before").wait_file("go").say("while nobody listened").tool("Bash", output="made it")
    )
    task = Task.play(scenario.result("done"))
    task.wait_for_log("before")
    task.kill_runner()
    kin.go()
    eventually(lambda: os.path.exists(os.path.join(task.attempts()[0], "done")), what="the agent has ended")
    then = backdate(task)
    task.start_runner()
    task.wait_for("completed")
    first, second = task.events("agent.text")
    assert "said_at" not in first
    assert abs(clock.parse_iso(second["said_at"]) - then) < 1
    assert clock.parse_iso(second["at"]) - then > AGO_S - 60
    (finished,) = task.events("agent.tool_finished")
    assert finished["result"] == "made it"
    found = log.window(Packet(task.packet))
    assert abs(clock.parse_iso(found["begin_at"]) - time.time()) < 60


def test_a_window_shows_the_log_as_it_was() -> None:
    task = Task.shell(
        f"echo first; {kin.WAIT} echo second; {kin.WAIT.replace('! -e go', '! -e on')} echo third"
    )
    packet = Packet(task.packet)
    task.wait_for_log("first")
    between = clock.iso_now()
    eventually(lambda: clock.iso_now() > clock.iso(clock.parse_iso(between) + 1.1), what="a second later")
    kin.go()
    task.wait_for_log("second")
    kin.go("on")
    task.wait_for("completed")
    then = log.window(packet, at=between)
    assert then["text"] == "first\n"
    assert then["size"] == len(task.read("output.log"))
    assert then["end_at"] <= between
    whole = log.window(packet)
    assert "third" in whole["text"]
    assert whole["end_at"] > between
    assert log.window(packet, at="2000-01-01T00:00:00Z")["text"] == ""
    moment = log.moment(packet, between)
    assert moment is not None
    assert (moment["log_bytes"], moment["attempt"]) == (6, 1)
    assert 0 < moment["journal_bytes"] < os.path.getsize(task.path("events.jsonl"))
    os.unlink(task.path("output.idx"))
    unknown = log.window(packet, at=between)
    assert (unknown["begin_at"], unknown["end_at"]) == (None, None)
    assert "third" in unknown["text"]
    assert timeline.gather(packet)["spans"]
