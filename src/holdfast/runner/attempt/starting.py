"""An execution whose start is not journalled: its directory says whether the process exists."""

from __future__ import annotations

import os

from holdfast.model.attempt_table import Reading
from holdfast.runner.attempt import kinship, reading
from holdfast.runner.attempt.alive import Alive
from holdfast.runner.attempt.ended import Ended
from holdfast.runner.attempt.open import Opened
from holdfast.runner.attempt.reading import AttemptRecords
from holdfast.runner.attempt.record_wait import RecordWait
from holdfast.runner.attempt.subject import Subject
from holdfast.runner.plan.facts import ExecutionFacts
from holdfast.store import process


def could_not_execute(records: AttemptRecords) -> bool:
    """Whether the program could not be executed: there was never an agent."""
    exit_record = records.exit
    return (
        records.reading is Reading.SPAWN_FAILED
        and exit_record is not None
        and exit_record.exec_errno is not None
    )


class Starting:
    """It was just forked, or another runner left it."""

    def __init__(self, subject: Subject, opened: Opened | None) -> None:
        self._subject = subject
        self.record = RecordWait()
        #: Readable once the agent was executed or failed to be. Watched last, when nothing can fail any more.
        self._pipe, self._pipe_name = -1, subject.name("started")
        self._records: AttemptRecords | None = None
        self._recorder = process.identify(opened.recorder_pid) if opened is not None else None
        if opened is not None:
            self._pipe = opened.started_fd
            subject.close_later(self._forget_pipe)
            subject.waiter.watch(self._pipe, self._pipe_name)

    @property
    def records(self) -> AttemptRecords:
        """The records that were read last."""
        assert self._records is not None
        return self._records

    def advance(self, ready: set[str]) -> Starting | Ended:
        """Look at its directory."""
        if self._pipe_name in ready:
            self._forget_pipe()
        self._records = reading.find_end(self._subject.directory, self._subject.execution.started)
        if not could_not_execute(self._records):
            return self
        self._forget_pipe()
        return Ended(self._subject, self._records)

    def facts(self, ready: set[str]) -> ExecutionFacts:
        """What its directory says."""
        records = self.records
        is_awaited = records.reading is Reading.STARTING
        facts = self.record.facts(is_watched=False) if is_awaited else ExecutionFacts()
        return facts.evolve(reading=records.reading, exit=records.exit)

    def begin(self) -> Alive | Ended:
        """The start is journalled: watch the process, or take note of an end that is already there."""
        records = self.records
        self._forget_pipe()
        # The recorder takes the status first: a record beside a process is the agent's own.
        is_there = records.identity is not None and process.is_unreaped(records.identity)
        if records.exit is not None and not is_there:
            return Ended(self._subject, records)
        assert records.identity is not None
        if records.reading is Reading.ORPHANED and self._is_foreign(records):
            return Ended(self._subject, records.evolve(is_foreign=True))
        return Alive(self._subject, records.identity, self._recorder)

    def _is_foreign(self, records: AttemptRecords) -> bool:
        """Whether its process lives and was started from another home. While its lock is held, it was not."""
        identity = records.identity
        assert identity is not None
        return process.is_alive(identity) and kinship.is_foreign(
            identity, self._subject.directory, records.born
        )

    def _forget_pipe(self) -> None:
        """The agent was executed, or failed to be: the pipe stays readable and says nothing more."""
        if self._pipe >= 0:
            self._subject.waiter.unwatch(self._pipe)
            os.close(self._pipe)
            self._pipe = -1
