"""Evidence, done markers and attempt.json of stages.

The order at the end of a stage is: event → attempt.json → gate evidence → marker → event. Every function here
may run again after a kill and then does what is missing.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import CorruptFile, DiskFull, HoldfastError
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.execution import Execution
from holdfast.runner.ledger import Ledger
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def write_attempt(ledger: Ledger, execution: Execution) -> None:
    """attempt.json: derived from the journal."""
    started, ended = execution.started, execution.ended
    record: dict[str, Any] = {
        "schema": "holdfast.attempt/1",
        "attempt": execution.number,
        "attempt_id": execution.attempt_id,
        "stage": execution.stage,
        "agent": execution.agent,
        "mode": execution.mode if isinstance(execution, Attempt) else "fresh",
        "session_id": execution.session_id if isinstance(execution, Attempt) else None,
        "started": started.to_json() if started else None,
        "stopped_for": execution.intent.to_json() if execution.intent else None,
        "ended": ended.to_json() if ended else None,
        "swept": execution.swept.to_json() if execution.swept else None,
    }
    try:
        atomic.write_json(ledger.packet.attempt(execution.dirname).record, record, durable=False)
    except DiskFull:
        raise
    except HoldfastError:
        return  # only informative: the agent removed its directory, and the journal has everything


def write_plain_evidence(ledger: Ledger, attempt: Execution) -> None:
    """The evidence of a plain run's gate: the attempt's own success."""
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


def mark_stage(ledger: Ledger, attempt: Execution) -> None:
    """The gate passed and its evidence is on disk: write the marker, then the event."""
    marker = {
        "schema": "holdfast.done/1",
        "stage": attempt.stage,
        "attempt": attempt.number,
        "run": ledger.task.run,
        "at": clock.iso_now(),
    }
    atomic.write_json(ledger.packet.stage_done(attempt.stage), marker, durable=True)
    failpoint("markers.stage_done")
    ledger.record(ev.StageDone(stage=attempt.stage, attempt=attempt.number))
    failpoint("markers.recorded")
    if len(ledger.task.spec.stages) > 1:
        from holdfast.runner.user_files import reports

        reports.write(ledger)


def adopt_markers(ledger: Ledger) -> None:
    """Journal the markers of this run that the journal lacks: their writer was killed in between.

    A marked stage never runs again.
    """
    task = ledger.task
    for stage in task.spec.stages:
        if stage.name in task.stages_done:
            continue
        if task.stage_state(stage.name).repair is not None:
            atomic.remove(ledger.packet.stage_done(stage.name))
            continue
        try:
            marker = atomic.read_json(ledger.packet.stage_done(stage.name))
        except CorruptFile:
            continue
        if marker is None or marker.get("run") != task.run:
            continue
        # Only for an attempt that succeeded and passed its gate: an agent can write such a file too.
        state, quality = task.stage_state(stage.name), task.spec.quality
        is_judged = task.spec.pipeline is not None or (quality is not None and quality.looks_after)
        if is_judged and (state.gate_result is None or not state.gate_result.passed):
            continue
        if state.gate_attempt and marker.get("attempt") == state.gate_attempt:
            ledger.record(ev.StageDone(stage=stage.name, attempt=marker["attempt"]))


def drop_void(ledger: Ledger) -> None:
    """Remove the markers of stages that are done again for a repair. One that is left is not believed."""
    for stage in ledger.task.spec.stages:
        if stage.name not in ledger.task.stages_done:
            atomic.remove(ledger.packet.stage_done(stage.name))


def reopen(ledger: Ledger) -> None:
    """After `run.opened`: put the old run's end aside and drop the markers of stages that run again."""
    packet, task = ledger.packet, ledger.task
    drop_void(ledger)
    if os.path.exists(packet.task_done):
        folder = packet.past_run(task.run - 1)
        # Not where a link of an agent leads.
        atomic.make_packet_directory(folder)
        atomic.move(packet.task_done, os.path.join(folder, os.path.basename(packet.task_done)))
        atomic.sync_directory(packet.done)
