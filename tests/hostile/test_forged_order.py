"""An agent that can write files starts no queued task before those that it waits for, and ends none."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable

import pytest

from holdfast import clock, ids
from tests.support import loops
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


def plant(task: Task, verb: str, **args: object) -> str:
    """A request that no command sent. Returns its id."""
    name = ids.new_ulid()
    request = {"schema": "holdfast.request/1", "id": name, "verb": verb, "args": args, "by": "keeper"}
    request |= {"asker": "holdfast", "at": clock.iso_now()}
    with open(task.path("inbox", f"{name}.json"), "w", encoding="utf-8") as file:
        json.dump(request, file)
    return name


def waiting(home: str, *options: str) -> Task:
    """A task that waits for `first`, which works until the file `go` exists."""
    loops.submit("--id", "first", "--", "sh", "-c", "until [ -e go ]; do sleep 0.1; done")
    return loops.submit("--id", "second", "--after", "first", *options, "--", "touch", "ran")


def ran() -> bool:
    return os.path.exists(os.path.join(workspace(), "ran"))


def _no_waits(home: str, task: Task) -> None:
    with sqlite3.connect(os.path.join(home, "queue.db")) as rows:
        rows.execute("DELETE FROM waits")
        rows.execute("UPDATE items SET waits = 0, after = '[]'")
    rows.close()


def _after_json(home: str, task: Task) -> None:
    with open(task.path("after.json"), "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.after/1", "completed": ["first"]}, file)
    os.unlink(os.path.join(home, "queue.db"))


def _has_run(home: str, task: Task) -> None:
    manifest = {**task.manifest(), "begun_at": clock.iso_now(), "attempt": 1}
    with open(task.path("manifest.json"), "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    os.unlink(os.path.join(home, "queue.db"))


@pytest.mark.parametrize("forge", [_no_waits, _after_json, _has_run])
def test_what_the_queue_says_starts_nothing_early(
    home: str, monkeypatch: pytest.MonkeyPatch, forge: Callable[[str, Task], None]
) -> None:
    task = waiting(home)
    forge(home, task)
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up", "--slots", "4").returncode == 0
    loops.task("first").wait_for("running")
    marker = holdfast("submit", "--id", "third", "--", "true", cwd=workspace())
    assert marker.returncode == 0
    loops.task("third").wait_for("completed")
    assert not ran()
    assert task.status() == "queued"
    with open(os.path.join(workspace(), "go"), "w", encoding="utf-8"):
        pass
    task.wait_for("completed", within_s=40)  # the keeper compares every 15 s


@pytest.mark.parametrize("verb", ["start", "done"])
def test_a_planted_request(home: str, verb: str) -> None:
    task = waiting(home)
    name = plant(task, verb)
    task.start_runner()
    eventually(lambda: not os.path.exists(task.path("inbox", f"{name}.json")), what="it is answered")
    assert task.status() == "queued"
    assert not ran()
    refused = task.events("request.refused")
    assert refused, task.events()
    assert "no command of holdfast" in json.dumps(refused[-1])


def test_a_person_may_start_it_anyway(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`queue retry` of a task whose dependency has failed, also if the queue is made again afterwards."""
    loops.submit("--id", "first", "--", "false")
    task = loops.submit("--id", "second", "--after", "first", "--", "touch", "ran")
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up").returncode == 0
    eventually(lambda: "held" in holdfast("queue", "ls", "--json").stdout, what="it is held")
    assert holdfast("queue", "pause").returncode == 0
    assert holdfast("queue", "retry", "second").returncode == 0
    assert holdfast("down").returncode == 0
    os.unlink(os.path.join(home, "queue.db"))
    assert holdfast("up").returncode == 0
    assert holdfast("queue", "resume").returncode == 0
    task.wait_for("completed", within_s=40)
    assert ran()
