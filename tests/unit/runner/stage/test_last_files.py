"""The last files of a task: what exists when `_task.done` does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from holdfast.model import events as ev
from holdfast.model.status import Status
from holdfast.runner.stage import last_files
from holdfast.workspace import room_places
from tests.support.bench import Bench, put, text_of

STARTED = ev.RunnerStarted(pid=4321, boot_id="b", start_time=1, version="0")

Make = Callable[..., Bench]


def manifest(task: Bench) -> dict[str, object]:
    return json.loads(text_of(task.packet.manifest) or "")


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.KILLED])
def test_an_ended_task_has_a_final_manifest_a_summary_and_the_marker(bench: Make, status: Status) -> None:
    task = bench().ran().move(status, reason="because")
    put(task.packet.output_log, "the last line\n")
    last_files.write(task.ledger)
    marker = json.loads(text_of(task.packet.task_done) or "")
    assert (marker["status"], marker["run"]) == (status, 1)
    assert manifest(task)["status"] == status
    assert manifest(task)["output_tail"] == "the last line"
    assert os.path.exists(task.packet.summary)
    assert os.path.exists(task.packet.current_session)


def test_of_a_long_output_the_manifest_has_the_last_lines(bench: Make) -> None:
    task = bench().ran().move(Status.COMPLETED)
    put(task.packet.output_log, "".join(f"{number}\n" for number in range(150)))
    last_files.write(task.ledger)
    assert str(manifest(task)["output_tail"]).split("\n") == [str(number) for number in range(50, 150)]


def test_the_runner_leaves_before_the_marker_is_written(bench: Make) -> None:
    task = bench().tell(STARTED).ran().move(Status.COMPLETED)
    last_files.write(task.ledger)
    assert task.recorded().runner is None
    assert manifest(task)["runner"] is None


def test_after_a_kill_the_rest_is_written_and_no_event_twice(bench: Make) -> None:
    task = bench().tell(STARTED).ran().move(Status.COMPLETED)
    last_files.write(task.ledger)
    length = task.ledger.journal_bytes
    os.unlink(task.packet.task_done)
    os.unlink(task.packet.summary)
    last_files.write(task.ledger)
    assert task.ledger.journal_bytes == length
    assert os.path.exists(task.packet.task_done)
    assert os.path.exists(task.packet.summary)


def test_the_captured_environment_is_removed(bench: Make) -> None:
    task = bench().ran().move(Status.COMPLETED)
    assert os.path.exists(task.packet.env)
    last_files.write(task.ledger)
    assert not os.path.exists(task.packet.env)


def test_the_work_item_has_the_end_of_the_task(bench: Make) -> None:
    task = bench(work={"id": "W-1", "details": "d"}).ran().move(Status.FAILED)
    last_files.write(task.ledger)
    item = json.loads(text_of(task.packet.work) or "")
    assert (item["id"], item["status"]) == ("W-1", "failed")


def test_clean_rooms_of_a_killed_gate_are_removed(bench: Make) -> None:
    task = bench().ran().move(Status.COMPLETED)
    room = room_places.new_room(task.packet)
    put(f"{room}/file", "")
    last_files.write(task.ledger)
    assert not os.path.exists(room)
