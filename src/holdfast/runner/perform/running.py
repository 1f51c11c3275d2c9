"""Steps while executions are open: record their start, read, judge, signal, record their end."""

from __future__ import annotations

from holdfast import clock
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.attempt_table import Reading
from holdfast.model.execution import Execution
from holdfast.model.status import Status
from holdfast.runner.attempt import outcome
from holdfast.runner.attempt.reading import AttemptRecords
from holdfast.runner.perform.context import Context
from holdfast.runner.perform.record import announce
from holdfast.runner.plan import policy
from holdfast.runner.plan.moves import moved_event
from holdfast.runner.plan.step import (
    Heartbeat,
    LockSession,
    ReadOutput,
    RecordEnd,
    RecordStart,
    RecordVerdict,
    Signal,
    WakeRecorder,
)
from holdfast.runner.user_files import work_item
from holdfast.watch.verdict import Kind


def record_start(context: Context, step: RecordStart) -> None:
    """Record the start, unless another runner did, and watch the process."""
    ledger, execution = context.ledger, context.execution(step.number)
    observer = context.observers.get(step.number)
    records = observer.starting.records
    events = _start_events(context, execution, records)
    _observe_start(context, records)
    # Shown before the next sleep, together with the first verdict.
    ledger.record(*events, shown=False)
    failpoint("step.record_start")
    announce(ledger, events)
    if isinstance(execution, Attempt):
        work_item.assign(ledger, execution)
    observer.begin()


def _start_events(context: Context, execution: Execution, records: AttemptRecords) -> tuple[ev.Event, ...]:
    task, born = context.ledger.task, records.born
    events: list[ev.Event] = []
    if execution.started is None and born is not None:
        events.append(
            ev.AttemptStarted(
                attempt=execution.number,
                pid=born["pid"],
                boot_id=born["boot_id"],
                start_time=born["start_time"],
                mono_s=born["mono_s"],
                started_at=born["started_at"],
            )
        )
    if task.status is Status.SPAWNING and isinstance(execution, Attempt):
        events.append(moved_event(task, Status.RUNNING, f"attempt {execution.ordinal}"))
    return tuple(events)


def _observe_start(context: Context, records: AttemptRecords) -> None:
    task, observed = context.ledger.task, context.ledger.observed
    if task.deadline_s is not None:
        lived_s = clock.mono() - records.born["mono_s"] if records.born is not None else 0.0
        left_s = task.deadline_s - task.active_s - max(0.0, lived_s)
        observed.deadline_at = clock.iso(clock.now() + left_s)
    observed.recorder_silent_s = None
    if records.reading is not Reading.ORPHANED:
        # If its process may be gone, the last time that a runner saw it alive stays.
        observed.last_checked_at = clock.iso_now()


def wake_recorder(context: Context, step: WakeRecorder) -> None:
    """A recorder owes a record for too long: it may be stopped."""
    context.ledger.observed.recorder_silent_s = context.observers.get(step.number).wake_recorder()
    failpoint("step.wake_recorder")
    context.ledger.show()


def lock_session(context: Context, step: LockSession) -> None:
    """Lock a session whose id the program chose."""
    context.observers.lock_session(step.number)
    failpoint("step.lock_session")


def read_output(context: Context, step: ReadOutput) -> None:
    """Read new output into the journal and output.log."""
    for number in step.numbers:
        observer = context.observers.get(number)
        if step.final:
            observer.ended.read_rest()
        else:
            observer.alive.read()
    failpoint("step.read_output")


def record_verdict(context: Context, step: RecordVerdict) -> None:
    """Record a new verdict. One that says that all is well is shown, not journalled."""
    judging = context.observers.get(step.number).alive.judging
    assert judging.pending is not None
    verdict = judging.pending.judgement.verdict
    context.ledger.observed.verdict = verdict.kind
    context.ledger.observed.agent_waits_for = verdict.waits_for or None
    if verdict.kind in (Kind.HUNG, Kind.QUIET, Kind.EXCUSED):
        evidence = verdict.to_evidence(judging.pending.evidence, clock.mono())
        if verdict.kind is not Kind.EXCUSED:
            evidence["pane_state"] = judging.note_screen()
        context.ledger.record(
            ev.WatchVerdict(
                attempt=step.number, verdict=verdict.kind, because=verdict.because, evidence=evidence
            )
        )
    else:
        context.ledger.show_later()
    failpoint("step.record_verdict")
    judging.accept()


def signal(context: Context, step: Signal) -> None:
    """Send the next stop signal. Before a KILL, stop everything of the attempt, in as many steps as it takes.

    An agent that lingers has succeeded: what it leaves running is not swept, and so not stopped either.
    """
    observer = context.observers.get(step.number)
    execution, alive = observer.subject.execution, observer.alive
    if alive.is_kill_next and execution.intent_name != "linger":
        from holdfast.runner.perform import ending  # few agents have to be killed

        if not ending.freeze(context, execution):
            return
    alive.signal()
    failpoint("step.signal")


def heartbeat(context: Context, step: Heartbeat) -> None:
    """Show in the manifest that a runner looks after the task."""
    context.ledger.observed.last_checked_at = clock.iso_now()
    work_item.update_progress(context.ledger)
    context.ledger.beat()
    # An excuse may have gone away without any event.
    context.observers.judge_again()
    failpoint("step.heartbeat")
    context.remembered.heartbeat_mono = clock.mono()


def record_end(context: Context, step: RecordEnd) -> None:
    """Classify the end and record it."""
    ledger, observer = context.ledger, context.observers.get(step.number)
    subject, end = observer.subject, observer.ended
    execution, records = subject.execution, end.records
    lived_s = outcome.life_s(execution, records, subject.directory.stdout, ledger.observed.last_checked_at)
    result = outcome.outcome_of(subject, records, lived_s)
    exit_record = records.exit
    made_progress = subject.ingest.raw_bytes() > 0
    ended = ev.AttemptEnded(
        attempt=execution.number,
        outcome=result.kind,
        detail=ledger.redact(result.detail) if result.detail else "",
        exit_code=exit_record.exit_code if exit_record else None,
        exit_signal=exit_record.exit_signal if exit_record else None,
        exec_errno=exit_record.exec_errno if exit_record else None,
        by=exit_record.by if exit_record else "nobody",
        lived_s=round(lived_s, 3),
        noticed_at=clock.iso(end.noticed_at),
        resets_at=result.resets_at,
        resumable=result.resumable,
        was_healthy=policy.was_healthy(lived_s, ledger.task.spec.limits, made_progress=made_progress),
    )
    failpoint("running.before_ended")
    ledger.record(ended)
    failpoint("step.record_end")
    context.observers.finish(step.number)
