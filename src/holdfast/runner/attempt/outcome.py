"""How an execution ended: the adapter's classification, overruled where holdfast stopped it."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.agents import endings
from holdfast.agents.base import End
from holdfast.agents.command import by_exit_status
from holdfast.model.attempt import Attempt
from holdfast.model.execution import Execution
from holdfast.model.outcome import SUCCESS, Outcome
from holdfast.model.process import Exit
from holdfast.runner.attempt.reading import AttemptRecords
from holdfast.runner.attempt.subject import Subject

#: Outcomes by the intent of a stop, whatever the dying process reports; None: what it reports counts.
_BY_INTENT = {"hang": "hung", "session": "unknown_session", "timeout": "timeout", "linger": None}


def outcome_of(subject: Subject, records: AttemptRecords, lived_s: float) -> Outcome:
    """How the execution ended, after `lived_s`."""
    execution, exit_record = subject.execution, records.exit
    if exit_record is not None and exit_record.exec_errno is not None:
        detail = f"{os.strerror(exit_record.exec_errno)} (errno {exit_record.exec_errno})"
        return Outcome(kind="spawn_failed", detail=detail)
    classified = _classified(subject, records, lived_s)
    intent = execution.intent
    if intent is None:
        return classified
    is_limited = isinstance(execution, Attempt) and execution.is_limited
    if intent.intent == "limit" or (intent.intent == "hang" and is_limited):
        return _limited(execution, classified)
    kind = _BY_INTENT.get(intent.intent, "stopped")
    if kind is None or _ended_before(execution.intended_at, records):
        return classified
    return Outcome(kind=kind, detail=intent.reason, resumable=classified.resumable)


def _limited(execution: Execution, classified: Outcome) -> Outcome:
    limit = execution.rate_limit if isinstance(execution, Attempt) else None
    return classified.evolve(
        kind="rate_limit",
        detail="it waited for a rate limit",
        resets_at=limit.resets_at if limit is not None else None,
    )


def _classified(subject: Subject, records: AttemptRecords, lived_s: float) -> Outcome:
    """How the adapter classifies the end, whatever caused it."""
    if records.exit is None:
        return _without_status(subject, records)
    stderr_tail, adapter = subject.stderr_tail(), subject.adapter
    if isinstance(subject.execution, Attempt):
        end = End(exit=records.exit, stderr_tail=stderr_tail, is_torn=subject.ingest.is_torn)
        outcome = adapter.classify(end, subject.execution)
        if subject.ledger.task.spec.fan_out is not None:
            outcome = _of_conductor(subject, outcome)
    else:
        outcome = by_exit_status(records.exit)
    # That a plain command failed quickly says nothing by itself.
    is_telling = bool(adapter.capabilities.program or stderr_tail.strip())
    return endings.early(outcome, lived_s, stderr_tail) if is_telling else outcome


def _of_conductor(subject: Subject, outcome: Outcome) -> Outcome:
    """A fan-out that failed says what became of its items, or its last error, instead of an exit status."""
    if outcome.kind != "failed":
        return outcome
    from holdfast.packet import fan_out  # few tasks are one

    errors = [line for line in subject.stderr_tail().splitlines() if line.startswith("error: ")]
    told = errors[-1].removeprefix("error: ") if errors else fan_out.conclusion(subject.ledger.packet)
    return outcome.evolve(detail=told) if told else outcome


def _without_status(subject: Subject, records: AttemptRecords) -> Outcome:
    """The exit status is unknown. A final result without an error is a success; nothing else is guessed."""
    execution = subject.execution
    if records.is_foreign:
        assert records.identity is not None
        agent = f"its agent (pid {records.identity.pid})"
        detail = f"{agent} belongs to another home, of which this one is a copy"
        # Its session belongs to that home too.
        return Outcome(kind="lost", detail=f"{detail}; it was left alone", resumable=False)
    if isinstance(execution, Attempt) and execution.result is not None and not execution.result.is_error:
        unknown = Exit(by="nobody", wait_status=0, exit_code=0, at=clock.iso_now())
        end = End(exit=unknown, stderr_tail=subject.stderr_tail(), is_torn=subject.ingest.is_torn)
        outcome = subject.adapter.classify(end, execution)
        if outcome.kind in SUCCESS:
            return outcome.evolve(detail="its exit status is unknown, but it reported a result")
    return Outcome(kind="lost", detail="recorder and runner were gone when it ended")


def _ended_before(intended_at: str, records: AttemptRecords) -> bool:
    """Whether the agent was gone before the stop was intended; in the same millisecond it was not."""
    return records.exit is not None and records.exit.at < intended_at


def life_s(execution: Execution, records: AttemptRecords, stdout: str, checked_at: str | None) -> float:
    """How long it lived."""
    started, exit_record = execution.started, records.exit
    if started is None:
        return 0.0
    if exit_record is not None and exit_record.boot_id == started.boot_id:
        return max(0.0, exit_record.mono_s - started.mono_s)
    # Lost, or across a reboot: it lived at least until its last output or the last check.
    last = clock.parse_iso(checked_at) if checked_at else 0.0
    try:
        last = max(last, os.stat(stdout).st_mtime)
    except FileNotFoundError:
        pass
    return max(0.0, last - clock.parse_iso(started.started_at))
