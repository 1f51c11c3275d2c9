"""Schedules: `submit --every` queues a task again and again, also through kills of the keeper."""

from __future__ import annotations

import json
import os

import jsonschema
import pytest

from contracts import schema
from holdfast import clock
from holdfast.queue import schedule
from holdfast.store.layout import Home
from tests.support import keepers, loops
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("with_keeper")


def add(*args: str) -> str:
    done = holdfast("submit", *args, "--", "sh", "-c", "echo $FROM_ENV >> ran", cwd=workspace())
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def ran() -> list[str]:
    try:
        with open(os.path.join(workspace(), "ran"), encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def make_due(home: str, name: str, *, ago_s: float) -> str:
    """Let a schedule be as old as this; returns the id of the run that is due."""
    made = schedule.read(Home(home), name)
    assert made is not None
    made = made.evolve(created_at=clock.iso(clock.now() - ago_s))
    schedule.write(Home(home), made)
    due = schedule.missed_at(made, clock.now())
    assert due is not None
    return schedule.run_id(made, due)


def test_a_run_names_its_schedule(home: str) -> None:
    done = holdfast("submit", "--every", "6h", "--id", "tick", "--", "false", cwd=workspace())
    assert done.returncode == 0, done.stderr
    run = make_due(home, "tick", ago_s=6 * 3600 + 60)
    assert holdfast("up").returncode == 0
    eventually(lambda: os.path.exists(os.path.join(home, "tasks", run)), 20, "the run exists")
    Task(os.path.join(home, "tasks", run)).wait_for("failed")
    assert "schedule  tick, every 6h; 'holdfast queue rm tick' ends it" in holdfast("show", run).stdout
    report = holdfast("report").stdout
    assert "; a run of the schedule tick (every 6h)" in report
    assert "→ holdfast queue rm tick (end it)" in report
    assert holdfast("queue", "rm", "tick").returncode == 0
    assert "schedule" not in holdfast("show", run).stdout
    assert "chedule" not in holdfast("report").stdout


def test_a_schedule_is_listed_and_can_be_removed(home: str) -> None:
    assert add("--every", "day@02:00", "--id", "deps") == "deps"
    shown = holdfast("queue", "list")
    assert "deps" in shown.stdout
    assert "day@02:00" in shown.stdout
    listed = json.loads(holdfast("queue", "ls", "--json").stdout)
    jsonschema.validate(listed, schema.schemas()["queue"])
    assert [each["name"] for each in listed["schedules"]] == ["deps"]
    again = holdfast("submit", "--every", "6h", "--id", "deps", "--", "true", cwd=workspace())
    assert again.returncode == 2
    assert "'holdfast queue rm deps'" in again.stderr
    assert holdfast("queue", "rm", "deps").returncode == 0
    assert json.loads(holdfast("queue", "ls", "--json").stdout)["schedules"] == []
    assert os.listdir(os.path.join(home, "tasks")) == []


def test_a_run_is_created_by_the_keeper_and_not_by_a_person(home: str) -> None:
    add("--every", "6h", "--id", "deps")
    run = make_due(home, "deps", ago_s=7 * 3600)
    loops.up()
    loops.task(run).wait_for("completed")
    people = holdfast("audit", "--people").stdout
    assert ("schedule.added" in people, run in people) == (True, False)
    assert "task.created" in holdfast("audit", run).stdout


def test_missed_runs_are_started_once_with_the_environment_of_the_command(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_ENV", "told")
    add("--every", "1h", "--id", "deps", "--env", "FROM_ENV")
    monkeypatch.delenv("FROM_ENV")
    # Three runs were missed.
    task_id = make_due(home, "deps", ago_s=3 * 3600 + 60)
    loops.up()
    loops.task(task_id).wait_for("completed")
    assert ran() == ["told"]
    made = schedule.read(Home(home), "deps")
    assert made is not None
    assert schedule.next_at(made) > clock.now()
    assert sorted(os.listdir(os.path.join(home, "tasks"))) == [task_id]


def test_a_keeper_killed_after_it_queued_a_run_queues_no_second_one(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("--every", "1h", "--id", "deps")
    assert holdfast("down").returncode == 0
    task_id = make_due(home, "deps", ago_s=3600 + 60)
    monkeypatch.setenv("HOLDFAST_FAILPOINT", "schedule.created=kill@1")
    holdfast("up")
    eventually(lambda: os.path.isdir(os.path.join(home, "tasks", task_id)), what="the run is queued")
    eventually(lambda: keepers.pid(home) == 0, what="the keeper is dead")
    made = schedule.read(Home(home), "deps")
    assert made is not None
    assert made.last_at is None
    monkeypatch.delenv("HOLDFAST_FAILPOINT")
    holdfast("up")
    loops.task(task_id).wait_for("completed")
    eventually(lambda: schedule.read(Home(home), "deps").last_at is not None, what="the run is recorded")
    assert os.listdir(os.path.join(home, "tasks")) == [task_id]
    assert len(ran()) == 1


def test_a_run_waits_for_the_one_before(home: str) -> None:
    done = holdfast("submit", "--every", "1m", "--id", "slow", "--", "sleep", "60", cwd=workspace())
    assert done.returncode == 0, done.stderr
    first = make_due(home, "slow", ago_s=61)
    loops.up()
    loops.task(first).agent_pid()
    made = schedule.read(Home(home), "slow")
    assert made is not None
    # Another run is due, and the first one still works.
    schedule.write(Home(home), made.evolve(created_at=clock.iso(clock.now() - 7200)))
    keepers.stays(lambda: os.listdir(os.path.join(home, "tasks")) == [first], 1.0, "one run at a time")
    holdfast("queue", "rm", "slow")
    loops.task(first).stop()
