"""Deadline, retries and backoff: counted in the journal, so that no restart forgets or repeats them."""

from __future__ import annotations

import itertools
import os

import pytest

from holdfast import clock
from holdfast.testing import Scenario
from tests.support.tasks import Task
from tests.support.waiting import eventually

DIES = "kill -KILL $$"


@pytest.mark.req("BUD-1", "TST-3", "SUP-4")
def test_at_the_deadline_the_agent_is_stopped_and_the_task_abandoned(home: str) -> None:
    task = Task.shell("sleep 60", env={"MONITOR_DEADLINE": "0.5"})
    pid = task.agent_pid()
    assert task.ask("wait").returncode == 5
    manifest = task.wait_for("abandoned")
    assert not os.path.exists(f"/proc/{pid}")
    assert "deadline" in manifest["abandon_reason"]
    assert 0.5 <= manifest["active_s"] < 5
    assert task.events("stop.intended")[0]["intent"] == "deadline"


@pytest.mark.req("BUD-1")
def test_without_a_word_the_deadline_is_five_hours(home: str) -> None:
    task = Task.shell("sleep 60")
    task.agent_pid()
    manifest = task.manifest()
    left_s = clock.parse_iso(manifest["deadline_at"]) - clock.parse_iso(manifest["started_at"])
    assert 5 * 3600 - 5 < left_s < 5 * 3600 + 5
    task.stop()


@pytest.mark.req("BUD-1", "TST-7", "W-A6")
def test_the_deadline_is_of_active_time_and_survives_restarts(home: str) -> None:
    """Each runner is killed; the agent's time counts across runners."""
    task = Task.shell("sleep 60", "--deadline", "2s")
    task.agent_pid()
    for _ in range(2):
        task.kill_runner()
        task.start_runner()
    manifest = task.wait_for("abandoned")
    assert 2 <= manifest["active_s"] < 8
    # Pauses between attempts do not count; the lifetime of earlier attempts does.
    task = Task.shell(
        "sleep 0.4; " + DIES, "--deadline", "1s", "--base-interval", "0.5s", "--max-interval", "0.5s"
    )
    manifest = task.wait_for("abandoned")
    assert "deadline" in manifest["abandon_reason"]
    assert 1 <= manifest["active_s"] < 4
    assert len(task.attempts()) >= 2
    lived_s = [event["lived_s"] for event in task.events("attempt.ended")]
    assert manifest["active_s"] == pytest.approx(sum(lived_s), abs=0.01)


@pytest.mark.req("BUD-1", "RES-5")
def test_retry_with_another_deadline_goes_on_in_the_same_session(home: str) -> None:
    task = Task.play(Scenario().write("a.txt", "a").hang(once=True).write("b.txt", "b"), "--deadline", "1s")
    first = task.wait_for("abandoned")
    assert task.ask("retry", "--deadline", "10m", "-m", "you have more time now").returncode == 0
    second = task.wait_for("completed")
    assert second["session_id"] == first["session_id"]
    assert second["run"] == 2
    assert [effect["path"] for effect in task.memory().effects()] == ["a.txt", "b.txt"]
    start = task.memory().starts()[1]
    assert start.is_resume
    assert "you have more time now" in start.prompt
    assert "deadline" in start.prompt
    assert os.path.exists(task.path("runs", "1", "_task.done"))
    assert "abandoned_at" not in second


@pytest.mark.req("BUD-7", "SUP-5", "SUP-6")
def test_retries_are_counted_twice_and_capped(home: str) -> None:
    env = {"MONITOR_BASE_INTERVAL": "0.2", "MONITOR_MAX_INTERVAL": "0.5", "MONITOR_MAX_RETRIES": "4"}
    task = Task.shell(DIES, env=env)
    manifest = task.wait_for("abandoned")
    planned = task.events("retry.planned")
    assert [event["delay_s"] for event in planned] == [0.0, 0.2, 0.4, 0.5]
    assert [event["consecutive"] for event in planned] == [1, 2, 3, 4]
    assert [event["total"] for event in planned] == [1, 2, 3, 4]
    assert len(task.attempts()) == 5
    assert manifest["total_retries"] == 4
    assert "4 retries" in manifest["abandon_reason"]
    assert "killed by signal 9" in manifest["abandon_reason"]
    opened = [clock.parse_iso(event["at"]) for event in task.events("attempt.opened")]
    pauses_s = [later - sooner for sooner, later in itertools.pairwise(opened)]
    for pause_s, planned_s in zip(pauses_s, (0.0, 0.2, 0.4, 0.5), strict=True):
        assert pause_s >= planned_s


@pytest.mark.req("BUD-7", "SUP-6")
def test_health_resets_the_backoff_but_not_the_total(home: str) -> None:
    """It works for longer than a base interval before it dies: each failure is a first one."""
    script = "echo working; sleep 0.3; " + DIES
    task = Task.shell(script, "--base-interval", "0.2s", "--max-retries", "3", "--stale", "none")
    manifest = task.wait_for("abandoned")
    planned = task.events("retry.planned")
    assert [event["consecutive"] for event in planned] == [1, 1, 1]
    assert [event["total"] for event in planned] == [1, 2, 3]
    assert [event["delay_s"] for event in planned] == [0, 0, 0]
    assert manifest["total_retries"] == 3


@pytest.mark.req("BUD-7", "TST-7", "W-A6", "PKT-21")
def test_backoff_and_counters_survive_the_runner(home: str) -> None:
    task = Task.shell(DIES, "--base-interval", "1.5s", "--max-retries", "3")
    before = task.wait_for("waiting")
    wake_at = before["wake_at"]
    task.kill_runner()
    task.start_runner()
    eventually(lambda: len(task.events("runner.started")) >= 2, what="the next runner")
    after = task.manifest()
    assert (after["status"], after["wake_at"]) == ("waiting", wake_at)
    assert (after["retry_count"], after["total_retries"]) == (2, 2)
    third = task.wait_for_event("attempt.opened", 3)
    assert third["at"] >= wake_at
    # The death of a runner burned nothing.
    assert [event["total"] for event in task.events("retry.planned")][:2] == [1, 2]
    task.stop()


def test_a_waiting_task_is_woken_by_a_person(home: str) -> None:
    task = Task.shell(
        "[ $HOLDFAST_RESUME_COUNT = 2 ] || " + DIES, "--base-interval", "1h", "--max-interval", "1h"
    )
    task.wait_for("waiting")
    assert task.ask("resume").returncode == 0
    manifest = task.wait_for("completed")
    assert manifest["attempt"] == 3


def test_a_waiting_task_can_be_stopped_and_interrupted(home: str) -> None:
    slow = ("--base-interval", "1h", "--max-interval", "1h")
    task = Task.shell(DIES, *slow)
    task.wait_for("waiting")
    task.stop()
    task = Task.shell(DIES, *slow)
    task.wait_for("waiting")
    assert task.ask("interrupt", "-m", "why?").returncode == 0
    assert task.wait_for("interrupted")["interrupt"]["reason"] == "why?"
    task.stop()


def test_at_its_last_turn_the_agent_is_stopped_and_a_person_is_asked(home: str) -> None:
    task = Task.play(Scenario().say("one").say("two").say("three").hang(), "--max-turns", "2")
    manifest = task.wait_for("interrupted")
    assert "more than 2 turns" in manifest["interrupt"]["reason"]
    assert task.events("stop.intended")[0]["intent"] == "budget"
