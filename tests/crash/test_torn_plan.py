"""A power cut inside the record that plans a retry: crashed → retry.planned → spawning, or waiting.

Wherever the record is cut, between two events or before the first, the successor does the rest of it once.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from tests.support import kin
from tests.support.tasks import Task, workspace

RECORD = ["task.moved", "retry.planned", "task.moved"]


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: the tests start the runners."""
    lock = kin.alone(home)
    yield
    os.close(lock)


def cut(task: Task, events: int, *, onward: str) -> None:
    """Cut the journal after this many events of the record that plans the retry."""
    lines = task.read("events.jsonl").splitlines(keepends=True)
    found = [json.loads(line) for line in lines]
    planned = next(at for at, event in enumerate(found) if event["type"] == "retry.planned")
    record = found[planned - 1 : planned + 2]
    assert [event["type"] for event in record] == RECORD
    assert (record[0]["new"], record[2]["new"]) == ("crashed", onward)
    assert len({event["at"] for event in record}) == 1, "it is one record"
    with open(task.path("events.jsonl"), "wb") as file:
        file.writelines(lines[: planned - 1 + events])
    task.reseal()


def write_program(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o700)


def has_burned_one_retry(task: Task, outcomes: list[str]) -> None:
    manifest = task.wait_for("completed")
    assert manifest["total_retries"] == 1
    assert [event["outcome"] for event in task.events("attempt.ended")] == outcomes
    assert [event["total"] for event in task.events("retry.planned")] == [1]


@pytest.mark.req("PKT-10", "BUD-7")
@pytest.mark.parametrize("events", range(len(RECORD) + 1))
def test_a_plan_to_resume_at_once_that_is_torn_between_its_events_burns_one_retry(events: int) -> None:
    task = kin.make(
        "--base-interval", "0.3s", "--", "sh", "-c", "[ $HOLDFAST_RESUME_COUNT = 1 ] || kill -9 $$"
    )
    assert kin.run_runner(task, {"HOLDFAST_FAILPOINT": "attempt.made=kill@2"}) == -signal.SIGKILL
    cut(task, events, onward="spawning")
    task.start_runner()
    has_burned_one_retry(task, ["crashed", "success"])


@pytest.mark.req("PKT-10", "BUD-7")
@pytest.mark.parametrize("events", range(len(RECORD) + 1))
def test_a_plan_to_wait_that_is_torn_between_its_events_burns_one_retry(events: int) -> None:
    program = os.path.join(workspace(), "program")
    write_program(program, "#!/bin/sh\n")
    task = kin.make("--base-interval", "0.5s", "--", program)
    # What cannot be executed is not tried again at once.
    write_program(program, "#!/no/such/interpreter\n")
    task.start_runner()
    task.wait_for("waiting")
    task.kill_runner()
    write_program(program, "#!/bin/sh\n")
    cut(task, events, onward="waiting")
    task.start_runner()
    has_burned_one_retry(task, ["spawn_failed", "success"])


@pytest.mark.req("PKT-10", "BUD-7")
def test_an_end_that_is_torn_after_its_first_event_allows_no_further_attempt() -> None:
    """crashed → abandoned is one record too: without its second event, the cap still holds."""
    task = kin.make("--max-retries", "0", "--base-interval", "0.2s", "--", "sh", "-c", "kill -9 $$")
    assert kin.run_runner(task, {"HOLDFAST_FAILPOINT": "last_files.left=kill"}) == -signal.SIGKILL
    lines = task.read("events.jsonl").splitlines(keepends=True)
    moves = [json.loads(line).get("new") for line in lines]
    with open(task.path("events.jsonl"), "wb") as file:
        file.writelines(lines[: moves.index("abandoned")])
    task.reseal()
    task.start_runner()
    manifest = task.wait_for("abandoned")
    assert manifest["total_retries"] == 0
    assert len(task.events("attempt.opened")) == 1
