"""Done markers: when one is believed, and in which order the files of an end are written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.model import events as ev
from holdfast.model.spec import QualitySpec, StageSpec
from holdfast.model.status import Status
from holdfast.runner.stage import markers
from tests.support.bench import PIPELINE, Bench, put

IMPL = StageSpec(name="codex_impl", agent="codex", role="impl", writes=True)
REVIEW = StageSpec(name="claude_review", agent="claude", role="review")

Make = Callable[..., Bench]


def read(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def mark(task: Bench, **changes: Any) -> str:
    """A marker as a runner leaves it that was killed before it journalled the event."""
    marker = {"schema": "holdfast.done/1", "stage": task.stage.name, "attempt": 1, "run": 1, **changes}
    return put(task.packet.stage_done(task.stage.name), json.dumps(marker))


def judged(task: Bench, *, passed: bool, attempt: int = 1) -> None:
    task.tell(ev.GateJudged(stage=task.stage.name, attempt=attempt, passed=passed))


def nothing(task: Bench) -> None:
    """The gate has not judged the stage."""


def passed(task: Bench) -> None:
    judged(task, passed=True)


def refused(task: Bench) -> None:
    judged(task, passed=False)


def passed_before(task: Bench) -> None:
    """An earlier attempt passed, which says nothing about this one."""
    judged(task, passed=True, attempt=0)


@pytest.mark.parametrize(
    ("spec", "gate", "is_believed"),
    [
        ({}, nothing, True),
        ({"pipeline": PIPELINE}, nothing, False),
        ({"pipeline": PIPELINE}, refused, False),
        ({"pipeline": PIPELINE}, passed_before, False),
        ({"pipeline": PIPELINE}, passed, True),
        ({"quality": QualitySpec(post_work=("make test",))}, nothing, False),
        ({"quality": QualitySpec(post_work=("make test",))}, passed, True),
        ({"quality": QualitySpec(pre_work=("make test",))}, nothing, True),
    ],
)
def test_a_marker_is_believed_only_after_the_gate_that_its_task_has(
    bench: Make, spec: dict[str, Any], gate: Callable[[Bench], None], is_believed: bool
) -> None:
    task = bench(IMPL, **spec).ran()
    gate(task)
    mark(task)
    markers.adopt_markers(task.ledger)
    assert task.recorded().stages_done == ({IMPL.name: 1} if is_believed else {})


@pytest.mark.parametrize(
    "changes", [{"run": 2}, {"attempt": 2}, {"attempt": 0}, {"run": None}, {"attempt": True, "run": "1"}]
)
def test_a_marker_of_another_run_or_attempt_is_not_believed(bench: Make, changes: dict[str, Any]) -> None:
    task = bench().ran()
    mark(task, **changes)
    markers.adopt_markers(task.ledger)
    assert task.task.stages_done == {}


@pytest.mark.parametrize("content", ["", "{", "[]", "null"])
def test_a_marker_that_cannot_be_read_is_ignored(bench: Make, content: str) -> None:
    task = bench().ran()
    put(task.packet.stage_done(task.stage.name), content)
    markers.adopt_markers(task.ledger)
    assert task.task.stages_done == {}


@pytest.mark.parametrize("attempt", [0, 1])
def test_a_marker_is_not_believed_if_no_attempt_succeeded(bench: Make, attempt: int) -> None:
    task = bench().ran(1, "crashed")
    mark(task, attempt=attempt)
    markers.adopt_markers(task.ledger)
    assert task.task.stages_done == {}


def test_a_marker_is_journalled_once(bench: Make) -> None:
    task = bench().ran()
    mark(task)
    markers.adopt_markers(task.ledger)
    length = task.ledger.journal_bytes
    markers.adopt_markers(task.ledger)
    assert task.ledger.journal_bytes == length


def repairing(task: Bench) -> Bench:
    """The work of the first stage passed; the second refused it, and the first repairs it."""
    task.ran()
    passed(task)
    task.tell(
        ev.StageDone(stage=IMPL.name, attempt=1),
        ev.RepairPlanned(stage=IMPL.name, after=1, failed_stage=REVIEW.name, number=1),
    )
    return task


def test_the_marker_of_a_stage_that_is_repaired_is_removed(bench: Make) -> None:
    task = repairing(bench(IMPL, REVIEW, pipeline=PIPELINE))
    path = mark(task)
    markers.adopt_markers(task.ledger)
    assert not os.path.exists(path)
    assert task.task.stages_done == {}


def test_void_markers_are_removed_and_those_of_done_stages_stay(bench: Make) -> None:
    task = bench(IMPL, REVIEW, pipeline=PIPELINE).finish(IMPL.name)
    kept = mark(task)
    void = put(task.packet.stage_done(REVIEW.name), "{}")
    markers.drop_void(task.ledger)
    assert (os.path.exists(kept), os.path.exists(void)) == (True, False)


def test_a_new_run_keeps_the_end_of_the_old_one_and_the_markers_of_done_stages(bench: Make) -> None:
    task = bench(IMPL, REVIEW, pipeline=PIPELINE).finish(IMPL.name).move(Status.FAILED)
    kept = mark(task)
    void = put(task.packet.stage_done(REVIEW.name), "{}")
    put(task.packet.task_done, "the end")
    task.tell(ev.RunOpened(run=2, request="r"))
    for _ in range(2):  # the second time as after a kill
        markers.reopen(task.ledger)
        assert (os.path.exists(kept), os.path.exists(void)) == (True, False)
        assert not os.path.exists(task.packet.task_done)
        with open(f"{task.packet.past_run(1)}/_task.done", encoding="utf-8") as file:
            assert file.read() == "the end"
        assert os.stat(task.packet.runs).st_mode & 0o777 == 0o700


def test_a_stage_is_marked_on_disk_and_in_the_journal(bench: Make) -> None:
    task = bench(IMPL, REVIEW, pipeline=PIPELINE).ran(3)
    markers.mark_stage(task.ledger, task.attempt(3))
    marker = read(task.packet.stage_done(IMPL.name))
    assert (marker["stage"], marker["attempt"], marker["run"]) == (IMPL.name, 3, 1)
    assert task.recorded().stages_done == {IMPL.name: 3}
    assert os.path.exists(task.packet.summary), "a task with several stages has a summary after each"


def test_the_evidence_of_a_plain_run_names_its_attempt(bench: Make) -> None:
    task = bench().ran(2)
    markers.write_plain_evidence(task.ledger, task.attempt(2))
    evidence = read(task.packet.gate_result(task.stage.name))
    assert (evidence["passed"], evidence["attempt"]) == (True, 2)
    assert evidence["reasons"] == ["attempt 2 ended with success"]


def test_the_record_of_an_attempt_has_its_whole_life(bench: Make) -> None:
    task = bench(IMPL).open(1, mode="resume", session_id="S")
    task.start().tell(ev.StopIntended(attempt=1, intent="hang", reason="silent")).end(1, "hung")
    task.tell(ev.AttemptSwept(attempt=1, killed=[], spared=[], proof="empty"))
    markers.write_attempt(task.ledger, task.attempt())
    record = read(task.directory().record)
    assert (record["mode"], record["session_id"], record["attempt_id"]) == ("resume", "S", "ses_1")
    assert record["started"]["pid"] == 4321
    assert record["stopped_for"]["reason"] == "silent"
    assert record["ended"]["outcome"] == "hung"
    assert record["swept"]["proof"] == "empty"


def test_the_record_of_a_chore_has_no_session(bench: Make) -> None:
    task = bench(IMPL).open(1, kind="gate", agent="command")
    markers.write_attempt(task.ledger, task.chore)
    record = read(task.directory().record)
    assert (record["mode"], record["session_id"], record["ended"]) == ("fresh", None, None)


def test_the_record_of_an_attempt_whose_directory_is_gone_is_not_written(bench: Make) -> None:
    task = bench(IMPL).ran()
    shutil.rmtree(task.packet.attempts)
    markers.write_attempt(task.ledger, task.attempt())
    assert not os.path.exists(task.packet.attempts)
