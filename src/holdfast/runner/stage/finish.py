"""Ends: the gate of a plain stage, markers with their evidence, and the last files of a task.

Order at the end of a stage: event → attempt.json → gate evidence → marker → event. At the end of a task: event →
manifest.json → summary → `_task.done`. Every function here may be called again after a kill and does what is missing.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import CorruptFile
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.runner.people import notices, work_item
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.runner.ledger import Ledger

TAIL_LINES = 100


def write_attempt(ledger: Ledger, attempt: Attempt) -> None:
    """attempt.json: derived, for people."""
    started, ended = attempt.started, attempt.ended
    record: dict[str, Any] = {
        "schema": "holdfast.attempt/1",
        "attempt": attempt.number,
        "attempt_id": attempt.attempt_id,
        "stage": attempt.stage,
        "agent": attempt.agent,
        "mode": attempt.mode,
        "session_id": attempt.session_id,
        "started": started.to_json() if started else None,
        "stopped_for": attempt.intent.to_json() if attempt.intent else None,
        "ended": ended.to_json() if ended else None,
        "swept": attempt.swept.to_json() if attempt.swept else None,
    }
    atomic.write_json(ledger.packet.attempt(attempt.dirname).record, record, durable=False)


def pass_plain_gate(ledger: Ledger, attempt: Attempt) -> None:
    """The gate of a plain run: the attempt's own proof of success. Writes the evidence, then the marker, then the event."""
    assert attempt.ended is not None
    evidence = {
        "schema": "holdfast.gate/1",
        "stage": attempt.stage,
        "passed": True,
        "reasons": [f"attempt {attempt.number} ended with {attempt.ended.outcome}"],
        "attempt": attempt.number,
        "timestamp": clock.iso_now(),
    }
    atomic.write_json(ledger.packet.gate_result(attempt.stage), evidence, durable=True)
    failpoint("finish.evidence")
    mark_stage(ledger, attempt)


def mark_stage(ledger: Ledger, attempt: Attempt) -> None:
    """The gate has passed, and its evidence is on disk: write the marker, then the event."""
    marker = {
        "schema": "holdfast.done/1",
        "stage": attempt.stage,
        "attempt": attempt.number,
        "run": ledger.task.run,
        "at": clock.iso_now(),
    }
    atomic.write_json(ledger.packet.stage_done(attempt.stage), marker, durable=True)
    failpoint("finish.marker")
    ledger.record(ev.StageDone(stage=attempt.stage, attempt=attempt.number))
    if len(ledger.task.spec.stages) > 1:
        report(ledger)


def adopt_markers(ledger: Ledger) -> None:
    """Journal the markers of this run that the journal lacks: their writer was killed in between, and a marked stage never
    runs again."""
    task = ledger.task
    for stage in task.spec.stages:
        if stage.name in task.stages_done:
            continue
        try:
            marker = atomic.read_json(ledger.packet.stage_done(stage.name))
        except CorruptFile:
            continue
        if marker is not None and marker.get("run") == task.run and isinstance(marker.get("attempt"), int):
            ledger.record(ev.StageDone(stage=stage.name, attempt=marker["attempt"]))


def end_task(ledger: Ledger) -> None:
    """The task is in one of its ends: write what its readers wait for, `_task.done` last."""
    task, packet = ledger.task, ledger.packet
    if os.path.exists(packet.task_done):
        return
    if task.runner is not None:
        # Before the marker, behind which nothing changes: no runner is started again to mend a manifest.
        ledger.record(ev.RunnerLeft(pid=os.getpid(), reason=str(task.status)))
        failpoint("finish.left")
    work_item.close(ledger)
    ledger.seen["output_tail"] = ledger.tail(TAIL_LINES)
    ledger.show()
    ledger.catch_up()
    failpoint("finish.manifest")
    report(ledger)
    notices.post(ledger, str(task.status))
    # The captured environment may hold keys, and nobody needs it any more.
    atomic.remove(packet.env)
    failpoint("finish.before_task_done")
    record = {"schema": "holdfast.done/1", "status": task.status, "run": task.run, "at": clock.iso_now()}
    atomic.write_json(packet.task_done, record, durable=True)
    failpoint("finish.task_done")


def reopen(ledger: Ledger) -> None:
    """After `run.opened`: put the old run's end aside and drop the markers of the stages that run again."""
    packet, task = ledger.packet, ledger.task
    for stage in task.spec.stages:
        if stage.name not in task.stages_done:
            atomic.remove(packet.stage_done(stage.name))
    if os.path.exists(packet.task_done):
        folder = os.path.join(packet.runs, str(task.run - 1))
        # makedirs would give its mode to the last of them only.
        os.makedirs(packet.runs, mode=0o700, exist_ok=True)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.rename(packet.task_done, os.path.join(folder, "_task.done"))
        atomic.sync_directory(packet.done)


def report(ledger: Ledger) -> None:
    """Summary, statistics, the last failure: what people and brains read."""
    from holdfast.runner.people import reports  # once a stage: the agent's start does not wait for it to load

    reports.write(ledger)
